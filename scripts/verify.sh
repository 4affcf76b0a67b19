#!/usr/bin/env bash
# From a fresh machine to a verdict: installs what is missing, builds, runs the quick campaign on the
# CPU backend and says where the report is. Arguments go to `numgate run`.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh numgate
out=out/verify
for argument in "$@"; do [ "$argument" = --out ] && out=; done
exec build/numgate run ${out:+--out "$out"} "$@"
