#!/usr/bin/env bash
# Trains Wide & Deep directly on Criteo's TSV rows, from a fresh clone.
# Usage: samples/criteo/run.sh ROWS.tsv[.gz] [huge_ctr option...]
set -euo pipefail
[ $# -ge 1 ] || { sed -n 2,3p "$0"; exit 2; }
rows=$(realpath "$1")
shift
programs=criteo2hugectr
. "$(dirname "$0")/../common.sh"
echo "== Converting rows"
"$bin/criteo2hugectr" --tsv "$rows" --out "$out/data" --wide all --integers both --min-count 4 --holdout 0.1
train "$@"
