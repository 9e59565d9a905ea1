#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the named groups need and this machine lacks: Debian or Ubuntu packages, with sudo
# when not root, and Python packages into the private environment .venv. If nothing is missing, it
# asks dpkg once and returns, so that every `make` can begin with it.
#
#   scripts/install_dependencies.sh build check
set -eu
cd "$(dirname "$0")/.."

compilers="g++ cmake ninja-build ccache pkg-config"
libraries="libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev liblcms2-dev zlib1g-dev libpng-dev
  libjpeg-dev libwebp-dev libavif-dev libjxl-dev libtiff-dev libopenexr-dev libzimg-dev
  libhdf5-dev libisal-dev libjs-chart.js"
vulkan="glslang-tools spirv-tools spirv-cross libvulkan-dev"
# Opens the pages of reports in tests. Ubuntu's is a snap, which containers cannot install.
browser=$(sed -n 's/^ID=debian$/chromium/p' /etc/os-release 2>/dev/null || true)
tests="python3 libgtest-dev libgmock-dev librapidcheck-dev libdlpack-dev"

packages_of() {
  case $1 in
    build) echo "$compilers $libraries $vulkan $tests" ;;
    check) echo "python3-venv binutils gcc clang-format-14 ffmpeg libvulkan1 mesa-vulkan-drivers
      zsh fish valgrind $browser" ;;
    docs) echo "python3-venv doxygen" ;;
    demo) echo "libjpeg-turbo-progs webp libavif-bin" ;;
    fuzz) echo "clang-14 libclang-rt-14-dev llvm-14 lld" ;;
    gpu-builds) echo "hipcc" ;;
    gpu-on-cpu) echo "libboost-context-dev" ;;
    bench) echo "python3-venv libbenchmark-dev" ;;
    tidy) echo "clang-tidy-14" ;;
    python) echo "python3-venv" ;;
    wheel) echo "python3-venv" ;;
    *) echo "install_dependencies.sh: there is no group \"$1\"" >&2; exit 2 ;;
  esac
}

requested=""
for group in "$@"; do
  requested="$requested $(packages_of "$group")"
done

# One line for each requested package that is not installed.
missing_packages() {
  # shellcheck disable=SC2086
  dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' $requested 2>/dev/null |
    sed -n 's/^installed //p' | sort -u >"$installed_list"
  # shellcheck disable=SC2086
  printf '%s\n' $requested | sort -u | comm -23 - "$installed_list"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else
    echo "similis needs these packages, and this user is neither root nor has sudo:" $missing >&2
    exit 1
  fi
}

install_packages() {
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
    install --yes --no-install-recommends $missing >"$apt_log" 2>&1
}

install_missing_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "This is neither Debian nor Ubuntu; install these packages' counterparts:" $requested >&2
    return
  fi
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  echo "Installing packages:" $missing
  # The package lists may be absent or out of date: fetched only once the install has failed.
  if ! install_packages; then
    as_root apt-get -qq update
    if ! install_packages; then
      cat "$apt_log" >&2
      exit 1
    fi
  fi
}

# scripts/python/GROUP.txt, where it exists, lists the Python packages of a group; what
# GROUP-if-offered.txt lists may be missing from the package index. The list's copy inside the
# environment says that they are there.
install_missing_python() {
  for group in "$@"; do
    install_list "$group"
    install_list "$group-if-offered" 2>"$pip_log" ||
      echo "The package index does not offer them; \`make check-python\` installs what there is"
  done
}

install_list() {
  list=scripts/python/$1.txt
  [ -f "$list" ] || return 0
  if [ -x .venv/bin/python ] && cmp -s "$list" ".venv/$1.txt"; then return 0; fi
  if [ ! -x .venv/bin/python ]; then
    python3 -c 'import ensurepip' 2>/dev/null && base=python3 || base=/usr/bin/python3
    "$base" -m venv .venv
  fi
  echo "Installing Python packages into .venv:" $(sed '/^#/d' "$list")
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$list" &&
    cp "$list" ".venv/$1.txt"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed_list=$scratch/installed
apt_log=$scratch/apt.log pip_log=$scratch/pip.log
install_missing_packages
install_missing_python "$@"
