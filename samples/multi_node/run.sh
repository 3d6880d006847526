#!/usr/bin/env bash
# Trains one model with two processes on this machine, from a fresh clone. README.md describes several hosts. Options
# are passed to huge_ctr (for example: --device cpu). Uses two GPUs if the machine has them, otherwise the CPU.
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
# By default, mpirun refuses to run as root and to start more processes than cores. The variables and --oversubscribe
# allow both.
echo "== Training in two processes"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none -np 2 \
  "$bin/huge_ctr" --train "$config" --run-dir "$out/run" ${options[@]+"${options[@]}"} "$@"
