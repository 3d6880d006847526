#!/usr/bin/env bash
# From a fresh clone to a trained model: sets up, builds, makes data, trains Wide & Deep, says what came of it.
# Uses the GPU when there is one. Options go to huge_ctr (for example: --device cpu). With HCTR_BIN_DIR the programs are taken
# from there and nothing is built; SAMPLES makes another number of training rows.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
make_data --vocabulary 100 --interactions 0.03
train "$@"

cat <<TXT

Next:
  look at the run        $out/run/summary.json, $out/run/metrics.jsonl
  change the model       $config, then run this again; $bin/huge_ctr --check $config judges it first
  other models           samples/
  train on Criteo rows   samples/criteo/README.md
  all options            $bin/huge_ctr --help
TXT
