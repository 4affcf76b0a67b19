#!/usr/bin/env bash
# The GPU campaign on a machine with an H200 (nvcc, g++, cmake, ninja) and no network:
#   scripts/gpu.sh [--release] [--sanitize] [--only "STEP..."] PACKAGES_DIR [OUT_DIR] [RUN_OPTION...]
# PACKAGES_DIR holds the libraries (`scripts/setup.sh --download PACKAGES_DIR`, where there is a
# network); they are unpacked beside the build, not installed. Steps: doctor, digests, quick;
# --release adds release, --sanitize adds sanitize; --only names the steps instead, of which there is
# also layer. OUT_DIR (out/gpu without one) gets doctor.json, digests.json, report.{html,json},
# {release,layer}.{html,json} and sanitizer.json. RUN_OPTIONs go to the release and layer runs, which
# go on where earlier ones stopped: `--timeout 500` for sittings. NUMGATE_COMMIT names the commit
# where the tree is no clone.
set -euo pipefail
steps="doctor digests quick"
while [[ "${1:-}" == --* ]]; do
  case $1 in
    --release) steps+=" release" ;;
    --sanitize) steps+=" sanitize" ;;
    --only) steps=$2; shift ;;
    *) echo "gpu: unknown option $1" >&2; exit 1 ;;
  esac
  shift
done
[ -d "${1:-}" ] || { echo "gpu: PACKAGES_DIR '${1:-}' is not a folder" >&2; exit 1; }
packages=$(realpath "$1")
out=$(realpath -m "${2:-$(dirname "$0")/../out/gpu}")
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/.."
mkdir -p "$out"

# Runs a step, says how long it took; what fails is told at the end, so that one call shows all.
failed=()
step() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" || status=$?
  echo "gpu: $name took $((SECONDS - start)) s$([ $status = 0 ] || echo ", exit code $status")"
  [ $status = 0 ] || failed+=("$name ($status)")
  return $status
}

build=build-gpu prefix=$PWD/build-gpu/packages
unpack() {
  [ -d "$prefix" ] && return
  mkdir -p "$prefix.part"
  for package in "$packages"/*.deb; do dpkg -x "$package" "$prefix.part" || return; done
  mv "$prefix.part" "$prefix"
}
configure() {
  [ -f $build/build.ninja ] || cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix/usr" -DCMAKE_CUDA_ARCHITECTURES="${NUMGATE_ARCHITECTURE:-90a}" \
    -DNUMGATE_CUDA=ON ${NUMGATE_COMMIT:+-DNUMGATE_COMMIT="$NUMGATE_COMMIT"} >/dev/null
}
libraries=$prefix/usr/lib/x86_64-linux-gnu
# As system headers: their warnings are not ours.
export CPLUS_INCLUDE_PATH=$prefix/usr/include:$prefix/usr/include/x86_64-linux-gnu${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}
export LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
step unpack unpack
step configure configure
step build cmake --build $build --target numgate

# A campaign's files stay beside the build, where a later call resumes them.
campaign() {  # NAME RECORD OPTION...
  local dir=$build/$1 record=$2 status=0
  shift 2
  $build/numgate run --backend cuda --quiet --out "$dir" "$@" || status=$?
  if [ -f "$dir/report.json" ]; then
    cp "$dir/report.html" "$out/$record.html"
    $build/numgate render "$dir/report.json" --json "$out/$record.json"
  fi
  return $status
}
for name in $steps; do
  case $name in
    doctor) step doctor $build/numgate doctor --backend cuda --out "$out/doctor.json" || true ;;
    digests) step digests $build/numgate digests --backend cuda \
      --check reports/records/h200/digests.json --out "$out/digests.json" || true ;;
    quick) step quick campaign quick report || true ;;
    release | layer) step $name campaign $name $name --profile $name --resume "$@" || true ;;
    sanitize) step sanitize scripts/sanitize_gpu.sh $build "$out/sanitizer.json" || true ;;
    *) echo "gpu: no step $name" >&2; exit 1 ;;
  esac
done
echo "gpu: all took $SECONDS s; records are in $out"
[ ${#failed[@]} = 0 ] || { echo "gpu: FAILED: ${failed[*]}" >&2; exit 1; }
