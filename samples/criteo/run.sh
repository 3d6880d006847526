#!/usr/bin/env bash
# Criteo's rows, straight from TSV, to a trained Wide & Deep. Usage: samples/criteo/run.sh ROWS.tsv[.gz] [huge_ctr option...]
# Wants the programs built (samples/quickstart/run.sh or test/run.sh does that).
set -euo pipefail
[ $# -ge 1 ] || { sed -n 2,3p "$0"; exit 2; }
rows=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
bin=${HCTR_BIN_DIR:-build/cpu/bin}
[ -z "${HCTR_BIN_DIR:-}" ] && [ -x build/cuda/bin/huge_ctr ] && bin=build/cuda/bin
"$bin/criteo2hugectr" --tsv "$rows" --out runs/criteo/data --wide all --integers both --min-count 4 --holdout 0.1
"$bin/huge_ctr" --train samples/criteo/config.json --run-dir runs/criteo/run "$@"
