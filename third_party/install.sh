#!/usr/bin/env bash
# Installs the system packages the build needs and that are missing (Debian, Ubuntu).
# Says nothing and touches no network when all are there. A package whose headers were put in place by other
# means (a site-wide /usr/local, a cluster image) counts as there.
set -euo pipefail

# package : a file, looked for under the usual prefixes, or a program (bin:NAME), that shows the package is there
needs=(
  "g++:bin:c++"
  "cmake:bin:cmake"
  "ninja-build:bin:ninja"
  "nlohmann-json3-dev:include/nlohmann/json.hpp"
  "libcli11-dev:include/CLI/CLI.hpp"
  "libopenblas-dev:lib/libopenblas.so"
  "zlib1g-dev:include/zlib.h"
  "libzstd-dev:include/zstd.h"
  "libgtest-dev:include/gtest/gtest.h"
  "python3:bin:python3"
)

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

missing=()
for need in "${needs[@]}"; do
  have "${need#*:}" || missing+=("${need%%:*}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "huge_ctr needs these packages, and this system has no apt-get to install them with: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "huge_ctr needs these packages; ask your administrator to run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}"
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
       apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "The packages could not be installed; the whole log is $log" >&2
  exit 1
fi
rm -f "$log"
