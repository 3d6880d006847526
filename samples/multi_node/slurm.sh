#!/bin/bash
#SBATCH --job-name=huge_ctr
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
# Trains on all GPUs of two hosts; needs no MPI. Two minutes before its time is over, training saves a checkpoint, stops
# and exits with 75; the job then goes back to the queue and goes on from there. CONFIG names the config, which has
# "gpu": "all" and a "checkpoint".
set -uo pipefail
config=${CONFIG:-samples/multi_node/config.json}
# With several networks: export NCCL_SOCKET_IFNAME=ib0
srun "${HUGE_CTR:-huge_ctr}" --train "$config" --resume latest --run-dir "run-${SLURM_JOB_ID:-0}" "$@"
code=$?
[ "$code" -eq 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit "$code"
