#!/usr/bin/env bash
# Trains Wide & Deep in its classic size on planted data, from a fresh clone. Options are passed to huge_ctr (for
# example: --device cpu). ITERATIONS: number of iterations with 16384 samples each; default: 300.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
bin=$(realpath "$bin") config=$PWD/samples/wdl/wdl.json
cd "$out"  # the paths in the config are relative
out=.
make_data --vocabulary 100 --interactions 0.03
train --max-iter "${ITERATIONS:-300}" "$@"
