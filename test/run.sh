#!/usr/bin/env bash
# Configures, builds and runs every test that this machine can run. Usage: test/run.sh [--fast]   (--fast: no
# sanitizers)
set -euo pipefail
cd "$(dirname "$0")/.."
SECONDS=0
third_party/install.sh --all

nvcc=$(command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; } || true)
gpu=$(nvidia-smi -L 2>/dev/null | head -1 || true)
options=()
if [ -z "$nvcc" ]; then
  main=cpu
elif [ -n "$gpu" ]; then
  main=cuda
  options=(-DCMAKE_CUDA_ARCHITECTURES=native -DCMAKE_CUDA_FLAGS=)
else
  main=cuda
  # Without a GPU the CUDA code is only compiled: for one architecture, with few optimizations and no debug names.
  case $("$nvcc" --help) in
    *--Ofast-compile*) fast=--Ofast-compile=max ;;
    *) fast="-Xptxas -O1" ;;  # CUDA is older
  esac
  options=(-DHCTR_ONLY_SM90=ON "-DCMAKE_CUDA_FLAGS=$fast" "-DCMAKE_CUDA_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG")
fi

# Test programs run concurrently on a CPU, and one at a time on a GPU.
jobs=$(nproc)
[ -z "$gpu" ] || jobs=1

# Uses Clang if its sanitizers are installed, because Clang compiles sanitized code in two thirds of GCC's time.
sanitized_options=()
if [ ! -e build/cpu-asan/CMakeCache.txt ] &&
   echo 'int main() {}' | clang++ -x c++ -std=c++20 -fsanitize=address,undefined -o /dev/null - 2>/dev/null; then
  sanitized_options=(-DCMAKE_CXX_COMPILER=clang++)
fi

build() {  # build PRESET [cmake option...]
  local preset=$1; shift
  [ -e "build/$preset/CMakeCache.txt" ] || set -- "$@" -DHCTR_UNITY=ON  # an existing build folder keeps its options
  cmake --preset "$preset" "$@" >"build-$preset-configure.log" 2>&1 || { cat "build-$preset-configure.log"; return 1; }
  grep -E '^--   (CUDA|NCCL|MPI|BLAS|Parquet|sanitizers):' "build-$preset-configure.log" || true
  rm -f "build-$preset-configure.log"
  cmake --build --preset "$preset"
}
run_tests() {  # run_tests PRESET JOBS
  echo "== $1: testing, after $((SECONDS / 60)) min"
  ctest --preset "$1" --parallel "$2"
}

echo "== $main: building"
# With few optimizations, ptxas informs of wgmma instructions that do not overlap.
build "$main" ${options[@]+"${options[@]}"} | { grep -v '^ptxas info ' || true; }
if [ "${1:-}" = --fast ]; then
  run_tests "$main" "$jobs"
else
  # Many tests wait for a peer or a disk. Meanwhile the sanitized programs are built.
  log=$(mktemp)
  # setsid creates a new autogroup, which gets a full share of the processors despite "nice". Writing 19 to
  # /proc/self/autogroup lowers the priority of the autogroup.
  setsid nice -n 19 bash -c "$(declare -f build); { echo 19 >/proc/self/autogroup; } 2>/dev/null || true; build cpu-asan ${sanitized_options[*]-}" >"$log" 2>&1 &
  building=$!
  trap 'kill -- "-$building" 2>/dev/null || true; rm -f "$log"' EXIT
  run_tests "$main" "$jobs"
  echo "== cpu-asan: building, after $((SECONDS / 60)) min"
  built=0
  wait "$building" || built=$?
  cat "$log"
  [ "$built" -eq 0 ]
  run_tests cpu-asan $(($(nproc) + 1))  # one more test than cores: while one waits for a disk or a peer, another runs
fi
echo "All tests passed (${main}${gpu:+, with $gpu}$([ "${1:-}" = --fast ] || echo ', and under the address and undefined-behaviour sanitizers')) in $((SECONDS / 60)) min."
