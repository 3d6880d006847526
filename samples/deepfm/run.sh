#!/usr/bin/env bash
# Trains DeepFM on planted data, from a fresh clone. Options are passed to huge_ctr (for example: --device cpu).
set -euo pipefail
. "$(dirname "$0")/../common.sh"
make_data --vocabulary 100
train "$@"
