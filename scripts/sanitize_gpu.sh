#!/usr/bin/env bash
# compute-sanitizer's four tools over every kernel on small shapes, and the registers and stack of
# each kernel, into one record:
#   scripts/sanitize_gpu.sh BUILD_DIR OUT_FILE
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?sanitize_gpu: BUILD_DIR is missing} out=${2:?sanitize_gpu: OUT_FILE is missing}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/numgate" digests --backend cuda --spread --out "$work/plain.json" >/dev/null
for tool in memcheck racecheck initcheck synccheck; do
  # The log carries the summary; a tool that could not attach leaves none, which the record shows.
  compute-sanitizer --tool $tool "$build/numgate" digests --backend cuda --spread \
    --check "$work/plain.json" >"$work/$tool.log" 2>&1 || true
  grep -E 'SUMMARY|differ' "$work/$tool.log" | sed "s/^[= ]*/$tool: /" || tail -3 "$work/$tool.log"
done
cuobjdump --dump-resource-usage "$build/numgate" >"$work/usage.txt"
scripts/sanitizer_record.py "$work" "$out"
