#!/usr/bin/env bash
# Sequences of items to a trained Deep Interest Network, and beside it the same model without attention.
# Usage: samples/din/run.sh [FOLDER] [huge_ctr option...]
# FOLDER holds sequences.txt.gz and item2attributes.json.gz; left out: amazon_sports in HCTR_SHARED_DATA or ../shared/data.
# SEEDS="1 2 3" and MODELS="din no_attention" say what is trained, USERS=5000 takes fewer users, INNER=1 holds out the last
# training event of each user instead of the last event: for choosing settings.
# Wants the programs built (samples/quickstart/run.sh or test/run.sh does that).
set -euo pipefail
given=
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  given=$(realpath "$1")
  shift
fi
cd "$(dirname "$0")/../.."
folder=${given:-${HCTR_SHARED_DATA:-../shared/data}/amazon_sports}
if [ ! -e "$folder/sequences.txt.gz" ]; then
  echo "No sequences.txt.gz in $folder."
  sed -n '/^## The data/,/^## /p' samples/din/README.md | sed '/^## /d'
  exit 2
fi >&2
bin=${HCTR_BIN_DIR:-build/cpu/bin}
[ -z "${HCTR_BIN_DIR:-}" ] && [ -x build/cuda/bin/huge_ctr ] && bin=build/cuda/bin

python3 samples/din/prepare.py "$folder" runs/din/data --users "${USERS:-0}" ${INNER:+--inner}
for seed in ${SEEDS:-1 2 3}; do
  for model in ${MODELS:-din no_attention}; do
    "$bin/huge_ctr" --train "samples/din/$model.json" --run-dir "runs/din/$model-$seed" --seed "$seed" "$@"
  done
done
python3 - "${SEEDS:-1 2 3}" "${MODELS:-din no_attention}" <<'PY'
import json
import sys

seeds, models = (text.split() for text in sys.argv[1:])
print("\nHeld-out AUC, seeds", *seeds)
for model in models:
    values = [json.load(open(f"runs/din/{model}-{seed}/summary.json"))["metrics"]["AUC"] for seed in seeds]
    print(f"  {model:<12}", *(f"{value:.5f}" for value in values), f" mean {sum(values) / len(values):.5f}")
PY
