#!/usr/bin/env bash
# Trains a Deep Interest Network on sequences of items, and the same model without attention, from a fresh clone.
# Usage: samples/din/run.sh [FOLDER] [huge_ctr option...]
# FOLDER has sequences.txt.gz and item2attributes.json.gz; default: amazon_sports in HCTR_SHARED_DATA or ../shared/data.
# SEEDS="1 2 3" and MODELS="din no_attention" select runs. USERS=5000 uses fewer users. INNER=1 holds out the last
# training event of each user instead of the last event, for choosing settings.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${HCTR_SHARED_DATA:-$here/../../../shared/data}/amazon_sports
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  folder=$1
  shift
fi
if [ ! -e "$folder/sequences.txt.gz" ]; then
  echo "No sequences.txt.gz in $folder."
  sed -n '/^## The data/,/^## /p' "$here/README.md" | sed '/^## /d'
  exit 2
fi >&2
folder=$(realpath "$folder")
. "$here/../common.sh"

echo "== Making samples"
python3 samples/din/prepare.py "$folder" "$out/data" --users "${USERS:-0}" ${INNER:+--inner}
echo "== Training"
for seed in ${SEEDS:-1 2 3}; do
  for model in ${MODELS:-din no_attention}; do
    "$bin/huge_ctr" --train "samples/din/$model.json" --run-dir "$out/$model-$seed" --seed "$seed" "$@"
  done
done
python3 - "$out" "${SEEDS:-1 2 3}" "${MODELS:-din no_attention}" <<'PY'
import json
import sys

out, seeds, models = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
print("\nHeld-out AUC, seeds", *seeds)
for model in models:
    values = [json.load(open(f"{out}/{model}-{seed}/summary.json"))["metrics"]["AUC"] for seed in seeds]
    print(f"  {model:<12}", *(f"{value:.5f}" for value in values), f" mean {sum(values) / len(values):.5f}")
PY
