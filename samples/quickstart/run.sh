#!/usr/bin/env bash
# From a fresh clone to a trained model: sets up, builds, makes data, trains Wide & Deep, says what came of it.
# Uses the GPU when there is one. Options go to huge_ctr (for example: --device cpu). With HCTR_BIN_DIR the programs are taken
# from there and nothing is built; SAMPLES makes another number of training rows.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=samples/quickstart out=runs/quickstart
third_party/install.sh

mkdir -p "$out"
preset=cpu options=()
bin=${HCTR_BIN_DIR:-}
if nvidia-smi -L >/dev/null 2>&1 && { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null; then
  preset=cuda
  options=(-DCMAKE_CUDA_ARCHITECTURES=native)
fi
if [ -z "$bin" ]; then
  echo "== Building ($preset)"
  cmake --preset "$preset" ${options[@]+"${options[@]}"} >"$out/configure.log" 2>&1 || { cat "$out/configure.log"; exit 1; }
  cmake --build --preset "$preset" --target huge_ctr data_generator
  bin=build/$preset/bin
fi

echo "== Making data"
"$bin/data_generator" --config $here/config.json --samples "${SAMPLES:-2000000}" --eval-samples 100000 --vocabulary 100 --interactions 0.03

echo "== Training"
"$bin/huge_ctr" --train $here/config.json --run-dir "$out/run" "$@"

cat <<TXT

Next:
  look at the run        $out/run/summary.json, $out/run/metrics.jsonl
  change the model       $here/config.json, then run this again; $bin/huge_ctr --check $here/config.json judges it first
  train on Criteo rows   samples/criteo/README.md
  all options            $bin/huge_ctr --help
TXT
