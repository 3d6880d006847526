#!/usr/bin/env bash
# Trains two tasks on a shared bottom, on planted data, from a fresh clone. Options are passed to huge_ctr (for example:
# --device cpu).
set -euo pipefail
. "$(dirname "$0")/../common.sh"
: "${SAMPLES:=3000000}"
make_data --vocabulary 100 --related 0.7
train "$@"
