#!/usr/bin/env bash
# Sets up, builds and runs every test this machine can run. Usage: test/run.sh [--fast]   (--fast: no sanitizers)
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
  # Nothing here runs it: compiling for one architecture suffices, without assembler optimizations or debug names.
  options=(-DHCTR_ONLY_SM90=ON "-DCMAKE_CUDA_FLAGS=-Xptxas -O1" "-DCMAKE_CUDA_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG")
fi

# Test programs run concurrently, unless they would share a GPU.
jobs=$(nproc)
[ -z "$gpu" ] || jobs=1

# If Clang has its sanitizers: it compiles sanitized code in two thirds of GCC's time.
sanitized_options=()
if [ ! -e build/cpu-asan/CMakeCache.txt ] &&
   echo 'int main() {}' | clang++ -x c++ -std=c++20 -fsanitize=address,undefined -o /dev/null - 2>/dev/null; then
  sanitized_options=(-DCMAKE_CXX_COMPILER=clang++)
fi

build() {  # build PRESET [cmake option...]
  local preset=$1; shift
  [ -e "build/$preset/CMakeCache.txt" ] || set -- "$@" -DHCTR_UNITY=ON  # an existing build folder stays as it is
  cmake --preset "$preset" "$@" >"build-$preset-configure.log" 2>&1 || { cat "build-$preset-configure.log"; return 1; }
  grep -E '^--   (CUDA|NCCL|MPI|BLAS|Parquet|sanitizers):' "build-$preset-configure.log" || true
  rm -f "build-$preset-configure.log"
  cmake --build --preset "$preset"
}
run_tests() {  # run_tests PRESET
  echo "== $1: testing, after $((SECONDS / 60)) min"
  ctest --preset "$1" --parallel "$jobs"
}

echo "== $main: building"
build "$main" ${options[@]+"${options[@]}"}
if [ "${1:-}" = --fast ]; then
  run_tests "$main"
else
  # Many tests wait for a peer or a disk: meanwhile the sanitized programs are built.
  log=$(mktemp)
  # A new session gets its own share of the processors, despite "nice", until its autogroup is made nice too.
  setsid nice -n 19 bash -c "$(declare -f build); { echo 19 >/proc/self/autogroup; } 2>/dev/null || true; build cpu-asan ${sanitized_options[*]-}" >"$log" 2>&1 &
  building=$!
  trap 'kill -- "-$building" 2>/dev/null || true; rm -f "$log"' EXIT
  run_tests "$main"
  echo "== cpu-asan: building, after $((SECONDS / 60)) min"
  built=0
  wait "$building" || built=$?
  cat "$log"
  [ "$built" -eq 0 ]
  run_tests cpu-asan
fi
echo "All tests passed (${main}${gpu:+, with $gpu}$([ "${1:-}" = --fast ] || echo ', and under the address and undefined-behaviour sanitizers')) in $((SECONDS / 60)) min."
