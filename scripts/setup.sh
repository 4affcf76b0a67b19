#!/usr/bin/env bash
# The one list of packages. Installs what is missing; does nothing where all is there.
#   --download DIR  fetches the libraries as .deb files instead, with what they need to run, for
#                   machines without a network (scripts/gpu.sh)
set -euo pipefail

tools=(g++ cmake ninja-build git ca-certificates xz-utils)
libraries=(
  libmpfr-dev libmpfi-dev libgmp-dev libboost-dev libboost-context-dev libeigen3-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev librandom123-dev libpugixml-dev libvalijson-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libjs-chart.js
)

# Of a -dev package's dependencies those of the same name are its library and its newest version;
# the others come with a compiler or are for other uses of the package.
download() {
  mkdir -p "$1" && cd "$1"
  local wanted=("${libraries[@]}") i package
  for ((i = 0; i < ${#wanted[@]}; ++i)); do
    while read -r package; do
      [[ " ${wanted[*]} " == *" $package "* ]] || wanted+=("$package")
    done < <(apt-cache depends "${wanted[i]}" |
      awk -v stem="${wanted[i]%-dev}" '$1 == "Depends:" && index($2, stem) == 1 {print $2}')
  done
  apt-get download -qq -o APT::Sandbox::User="$(id -un)" "${wanted[@]}"
  echo "setup: ${#wanted[@]} packages in $PWD"
}
if [ "${1:-}" = --download ]; then
  download "${2:?setup: --download needs a folder}"
  exit
fi

packages=("${tools[@]}" "${libraries[@]}")
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
