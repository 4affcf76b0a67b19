#!/usr/bin/env bash
# Installs what is missing and builds into build/. Arguments: targets (all without any).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
# Without a GPU the CUDA backend could not run: it is left out, which saves a third of the build.
cuda=OFF
command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 && cuda=ON
[ -f build/build.ninja ] || cmake --preset release -DNUMGATE_CUDA=$cuda >build.log.tmp 2>&1 || { cat build.log.tmp >&2; exit 1; }
rm -f build.log.tmp
targets=()
for target in "$@"; do targets+=(--target "$target"); done
cmake --build build "${targets[@]}"
