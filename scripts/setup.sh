#!/usr/bin/env bash
# The one list of packages. Installs what is missing; does nothing where all is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build git ca-certificates xz-utils
  libmpfr-dev libmpfi-dev libgmp-dev libboost-dev libboost-context-dev libeigen3-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev librandom123-dev libpugixml-dev libvalijson-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libjs-chart.js
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: not root and no sudo; install: ${missing[*]}" >&2; exit 1; }
  sudo=sudo
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
