#!/usr/bin/env bash
# Trains DeepFM on MovieLens ratings, from a fresh clone.
# Usage: samples/movielens/run.sh [FOLDER] [huge_ctr option...]
# FOLDER is ml-1m or ml-100k; default: ml-1m in HCTR_SHARED_DATA or ../shared/data.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${HCTR_SHARED_DATA:-$here/../../../shared/data}/ml-1m
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  folder=$1
  shift
fi
if [ ! -e "$folder/u.data" ] && [ ! -e "$folder/u.data.gz" ] && [ ! -e "$folder/users.dat" ] && [ ! -e "$folder/users.dat.gz" ]; then
  echo "No ratings of MovieLens in $folder."
  sed -n '/^## The data/,/^## /p' "$here/README.md" | sed '/^## /d'
  exit 2
fi >&2
folder=$(realpath "$folder")
programs=preprocess
. "$here/../common.sh"

echo "== Making samples"
python3 samples/movielens/prepare.py "$folder" "$out/ratings.csv"
"$bin/preprocess" --csv "$out/ratings.csv" --out "$out/data" --force --label click --dense age,year --categories user,movie,gender,occupation \
  --lists genres --fill mean --normalize standard --holdout 0.1 --random >/dev/null
train "$@"
