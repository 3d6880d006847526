# Sourced by the run.sh of each sample. Uses the programs in HCTR_BIN_DIR, or installed programs of this tree's version.
# Otherwise installs missing dependencies and builds huge_ctr, data_generator, the programs in $programs and the CMake
# targets in $targets, with CUDA if there is a GPU. Afterwards the working folder is the root of the repository. Sets
# $name, $config, $out, $bin and the functions below, and $preset if something was built.
SECONDS=0
name=$(basename "$(cd "$(dirname "$0")" && pwd)")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
config=samples/$name/config.json out=runs/$name
mkdir -p "$out"

# Prints the folder of installed programs of this version, if it has all the needed programs.
installed_programs() {
  local found version program
  found=$(command -v huge_ctr) || return 0
  version=$(sed -n 's/^project(huge_ctr VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)
  for program in huge_ctr data_generator ${programs:-}; do
    [ -x "$(dirname "$found")/$program" ] || return 0
  done
  [ "$("$found" --version | head -n 1)" = "huge_ctr $version" ] || return 0
  dirname "$found"
}

bin=${HCTR_BIN_DIR:-$(installed_programs)}
if [ -z "$bin" ]; then
  third_party/install.sh
  preset=cpu options=()
  if nvidia-smi -L >/dev/null 2>&1 && { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null; then
    preset=cuda options=(-DCMAKE_CUDA_ARCHITECTURES=native)
  fi
  [ -e "build/$preset/CMakeCache.txt" ] || options+=(-DHCTR_UNITY=ON)
  echo "== Building ($preset)"
  cmake --preset "$preset" ${options[@]+"${options[@]}"} >"$out/configure.log" 2>&1 || { cat "$out/configure.log"; exit 1; }
  cmake --build --preset "$preset" --target huge_ctr data_generator ${programs:-} ${targets:-}
  bin=build/$preset/bin
  echo "Built in $SECONDS s."
fi

# make_data [data_generator option...]: makes SAMPLES training rows (default: two million), and EVAL_SAMPLES evaluation
# rows (default: 100,000).
make_data() {
  echo "== Making data"
  "$bin/data_generator" --config "$config" --samples "${SAMPLES:-2000000}" --eval-samples "${EVAL_SAMPLES:-100000}" "$@"
}

# train [huge_ctr option...]
train() {
  echo "== Training"
  "$bin/huge_ctr" --train "$config" --run-dir "$out/run" "$@"
}
