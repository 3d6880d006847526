#!/usr/bin/env bash
# Deep & Cross on planted data, from a fresh clone. Options go to huge_ctr (for example: --device cpu).
set -euo pipefail
. "$(dirname "$0")/../common.sh"
: "${SAMPLES:=3000000}"
make_data --vocabulary 100
train "$@"
