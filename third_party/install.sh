#!/usr/bin/env bash
# Installs missing system packages that the build needs (Debian, Ubuntu). --lint also installs clang-tidy. --all also
# installs optional packages, skips packages that cannot be installed, and installs Arrow with pip (pyarrow), unless
# HCTR_PARQUET=OFF is set. If all packages are installed, the script prints nothing and uses no network. A package whose
# headers were installed by other means (/usr/local, a cluster image) counts as installed.
set -euo pipefail

# package : a file below the usual prefixes, or a program (bin:NAME), whose existence shows that the package is
# installed
needs=(
  "g++:bin:c++"
  "cmake:bin:cmake"
  "ninja-build:bin:ninja"
  "nlohmann-json3-dev:include/nlohmann/json.hpp"
  "libcli11-dev:include/CLI/CLI.hpp"
  "libopenblas-dev:lib/libopenblas.so"
  "zlib1g-dev:include/zlib.h"
  "libzstd-dev:include/zstd.h"
  "libyaml-cpp-dev:include/yaml-cpp/yaml.h"
  "libgtest-dev:include/gtest/gtest.h"
  "python3:bin:python3"
)

[ "${1:-}" != --lint ] || needs+=("clang-tidy:bin:clang-tidy")
wants=(
  "libopenmpi-dev:bin:mpicxx"
  "openmpi-bin:bin:mpirun"
  "librocksdb-dev:include/rocksdb/db.h"
  "libhiredis-dev:include/hiredis/read.h"
  "libssl-dev:include/openssl/ssl.h"
  "redis-server:bin:redis-server"
  "redis-tools:bin:redis-cli"
  "librdkafka-dev:include/librdkafka/rdkafka.h"
  "libgrpc++-dev:include/grpcpp/generic/async_generic_service.h"
)

# Arrow for Parquet data, optional: the wheel contains headers and libraries.
want_arrow() {
  [ "${HCTR_PARQUET:-}" != OFF ] || return 0
  python3 -c "import pyarrow" >/dev/null 2>&1 && return
  ! have include/parquet/arrow/reader.h || return 0
  local pip=(python3 -m pip --quiet --disable-pip-version-check --no-input --retries 1 --timeout 15 install)
  echo "Installing: pyarrow"
  "${pip[@]}" pyarrow >/dev/null 2>&1 || "${pip[@]}" --user --break-system-packages pyarrow >/dev/null 2>&1 ||
    echo "Going on without Arrow, which Parquet data needs (pip install pyarrow did not work)"
}

prefixes=(/usr /usr/local ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//[:;]/ }})
triplet="$(uname -m)-linux-gnu"

have() {
  case "$1" in
    bin:*) command -v "${1#bin:}" >/dev/null 2>&1 ;;
    *) local prefix
       for prefix in "${prefixes[@]}"; do
         [ -e "$prefix/$1" ] || [ -e "$prefix/${1/\//\/$triplet\/}" ] && return 0
       done
       return 1 ;;
  esac
}

missing_of() {  # missing_of NEED...: prints the missing packages, one per line
  local need
  for need in "$@"; do
    have "${need#*:}" || echo "${need%%:*}"
  done
}

mapfile -t missing < <(missing_of "${needs[@]}")
wanted=()
[ "${1:-}" != --all ] || mapfile -t wanted < <(missing_of "${wants[@]}")
if [ $((${#missing[@]} + ${#wanted[@]})) -eq 0 ]; then
  [ "${1:-}" != --all ] || want_arrow
  exit 0
fi

as_root=()
refusal=""
if ! command -v apt-get >/dev/null 2>&1; then
  refusal="this system has no apt-get to install them with"
elif [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo)
  command -v sudo >/dev/null 2>&1 || refusal="ask your administrator to run apt-get install"
fi

log=$(mktemp)
install() {
  [ -z "$refusal" ] || { echo "$refusal" >"$log"; return 1; }
  echo "Installing: $*"
  { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1
}

if [ ${#missing[@]} -gt 0 ] && ! install "${missing[@]}"; then
  tail -20 "$log" >&2
  echo "huge_ctr needs these packages, and they could not be installed: ${missing[*]}" >&2
  exit 1
fi
[ ${#wanted[@]} -eq 0 ] || install "${wanted[@]}" || echo "Going on without: ${wanted[*]} ($(tail -1 "$log"))"
rm -f "$log"
[ "${1:-}" != --all ] || want_arrow
