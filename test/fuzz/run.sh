#!/usr/bin/env bash
# Runs every fuzzer for some time and prints the results: test/fuzz/run.sh [SECONDS [PARALLEL_FUZZERS]]; default: 900
# and 2. Corpora and findings are stored in FUZZ_FOLDER (default: a new folder). After fixing a bug, move its crash-*
# file to test/fuzz/corpus.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/../../build/cpu-fuzz/bin
seconds=${1:-900} at_a_time=${2:-2}
folder=${FUZZ_FOLDER:-$(mktemp -d)}
run() {
  entry=$1
  mkdir -p "$folder/$entry"
  cp -n "$here/corpus/$entry"/* "$folder/$entry/" || true  # some versions of cp return 1 if a file exists
  code=0
  nice -n 19 "$bin/fuzz_$entry" -max_total_time="$seconds" -rss_limit_mb=4096 -entropic=0 -print_final_stats=1 -artifact_prefix="$folder/crash-$entry-" "$folder/$entry" > "$folder/$entry.log" 2>&1 || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$entry.log")
  echo "$entry: ${runs:-?} runs in $seconds s, exit code $code, $(ls "$folder/$entry" | wc -l) files in the corpus"
}
for program in "$bin"/fuzz_*; do
  while [ "$(jobs -rp | wc -l)" -ge "$at_a_time" ]; do wait -n; done
  name=$(basename "$program")
  run "${name#fuzz_}" &
done
wait
echo "logs, corpora and crashes: $folder"
