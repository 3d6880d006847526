#!/usr/bin/env bash
# DCN-v2 on planted data, from a fresh clone. Options go to huge_ctr (for example: --device cpu).
set -euo pipefail
. "$(dirname "$0")/../common.sh"
make_data --vocabulary 100
train "$@"
