#!/usr/bin/env bash
# Builds and runs the tests. --slow also runs those labelled slow (exhaustive sweeps: hours).
set -euo pipefail
cd "$(dirname "$0")/.."
label=(-LE slow)
[ "${1:-}" = --slow ] && label=()
scripts/build.sh
exec ctest --test-dir build -j "$(nproc)" --output-on-failure "${label[@]}"
