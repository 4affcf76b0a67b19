#!/usr/bin/env bash
# Installs what is missing and builds into build/. Arguments: targets (all without any).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
[ -f build/build.ninja ] || cmake --preset release >build.log.tmp 2>&1 || { cat build.log.tmp >&2; exit 1; }
rm -f build.log.tmp
targets=()
for target in "$@"; do targets+=(--target "$target"); done
cmake --build build "${targets[@]}"
