#!/bin/bash
#SBATCH --job-name=huge_ctr
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
# Trains on all GPUs of two hosts; needs no MPI.
#   sbatch samples/multi_node/slurm.sh CONFIG [OPTIONS]        OPTIONS are passed to huge_ctr
# CONFIG must have "gpu": "all" and a "checkpoint". Two minutes before the time limit, training saves a checkpoint and
# exits with 75; the job is then requeued and resumes.
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: sbatch $0 CONFIG [OPTIONS]" >&2; exit 2; }
# A secret that only the tasks of this job know. Without it anybody could join, because the port follows from the
# public job number.
if [ -z "${HCTR_JOB_SECRET_FILE:-}" ]; then
  export HCTR_JOB_SECRET="${HCTR_JOB_SECRET:-$(od -An -vN32 -tx1 /dev/urandom | tr -d ' \n')}"
fi
# With several networks: export NCCL_SOCKET_IFNAME=ib0
srun --kill-on-bad-exit=1 "${HUGE_CTR:-huge_ctr}" --train "$1" --resume latest --run-dir "run-${SLURM_JOB_ID:-0}" "${@:2}"
code=$?
[ "$code" -eq 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit "$code"
