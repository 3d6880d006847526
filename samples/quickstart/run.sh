#!/usr/bin/env bash
# From a fresh clone to a trained model: sets up, builds, makes data, trains Wide & Deep, prints the result.
# Uses a GPU if there is one. Options are passed to huge_ctr (for example: --device cpu). With HCTR_BIN_DIR the programs
# in that folder are used, and nothing is built. SAMPLES sets the number of training rows.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
make_data --vocabulary 100 --interactions 0.03
train "$@"
echo "Done in $SECONDS s, everything included."

cat <<TXT

Next:
  look at the run        $out/run/summary.json, $out/run/metrics.jsonl
  change the model       $config, then run this again; $bin/huge_ctr --check $config checks it first
  other models           samples/
  train on Criteo rows   samples/criteo/run.sh ROWS.tsv
  all options            $bin/huge_ctr --help
TXT
[ -z "${preset:-}" ] || echo "  build everything       cmake --build --preset $preset"
