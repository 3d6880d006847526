#!/usr/bin/env bash
# Two processes on this machine train one model, from a fresh clone; README.md has what real hosts need. Options go to huge_ctr (for
# example: --device cpu). Takes two GPUs where there are as many, else the CPU.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
: "${SAMPLES:=1000000}"
make_data --vocabulary 100

version=$("$bin/huge_ctr" --version) options=()
gpus=$(nvidia-smi -L 2>/dev/null | grep -c ^GPU || true)
visible=$(tr ',' '\n' <<<"${CUDA_VISIBLE_DEVICES-0,1}" | grep -c . || true)
[[ $gpus -le $visible ]] || gpus=$visible
[[ $gpus -ge 2 && $version == *NCCL* ]] || options=(--device cpu)
if ! command -v mpirun >/dev/null || [[ $version != *MPI* ]]; then
  echo "== Without MPI both ranks are threads of one process"
  train --device cpu "$@"
  exit
fi
# mpirun refuses what it takes for a mistake: root, and more processes than cores. Both are wanted here.
echo "== Training in two processes"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none -np 2 \
  "$bin/huge_ctr" --train "$config" --run-dir "$out/run" ${options[@]+"${options[@]}"} "$@"
