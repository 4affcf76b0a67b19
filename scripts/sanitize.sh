#!/usr/bin/env bash
# The fast tests under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
fast=(core_test simt_test tensor_core_test formats_test report_test judge_test partitioning_test)
[ -f build-asan/build.ninja ] || cmake --preset asan >/dev/null
cmake --build build-asan --target "${fast[@]}"
for test in "${fast[@]}"; do
  "$(find build-asan -type f -name "$test" -perm -u+x)" --gtest_brief=1
done
