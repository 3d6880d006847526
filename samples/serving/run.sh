#!/usr/bin/env bash
# From rows to a service: trains on clicks, serves the model, requests scores with curl and Python, continues training,
# and updates the model while it is served. Options are passed to huge_ctr train (for example: --max-iter 100). PORT
# sets the port; 0: any free port.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
folder=$PWD/$out
here=$PWD/samples/serving
case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
cd "$folder"

echo "== Rows"
awk 'BEGIN { srand(1); split("berlin paris rome oslo", city); print "clicked,city,price,tags"
  for (i = 0; i < 4000; ++i) { c = city[int(rand() * 4) + 1]; p = int(rand() * 1000) / 100
    print (rand() < (c == "paris" ? 0.7 : 0.2) + p / 50 ? 1 : 0) "," c "," p "," (rand() < 0.5 ? "new" : "new|sale") } }' >clicks.csv

echo "== Training"
"$bin/huge_ctr" init clicks.csv --label clicked --out config.json >/dev/null
"$bin/huge_ctr" train config.json --run-dir first "$@" 2>first.log || { cat first.log; exit 1; }
ln -sfn first current

echo "== Serving"
"$bin/huge_ctr" serve ctr=current --model-control poll --poll-seconds 0.2 --http-port "${PORT:-8000}" \
  --grpc-port -1 --metrics-port -1 >serve.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until grep -q '^ready' serve.log; do
  kill -0 $server 2>/dev/null || { cat serve.log; exit 1; }
  sleep 0.1
done
url=$(sed -n 's/^HTTP: //p' serve.log)/models/ctr

echo "== Asking"
request='{"inputs": [
  {"name": "city",  "datatype": "BYTES", "shape": [2], "data": ["paris", "oslo"]},
  {"name": "price", "datatype": "FP64",  "shape": [2], "data": [9.5, 1]},
  {"name": "tags",  "datatype": "BYTES", "shape": [2], "data": ["new|sale", "new"]}]}'
if command -v curl >/dev/null; then
  curl -s "$url/infer" -d "$request"
  echo
  outputs='[{"name": "loss.logits"}, {"name": "embedding.city"}]'
  curl -s "$url/infer" -d "{\"outputs\": $outputs, ${request#\{}"
  echo
fi
python3 "$here/ask.py" "$url" config.eval.csv | tee before.txt

echo "== Updating"
"$bin/huge_ctr" train config.json --run-dir second --seed 2 "$@" 2>second.log || { cat second.log; exit 1; }
ln -sfn second next && mv -T next current
for _ in $(seq 300); do
  python3 "$here/ask.py" "$url" config.eval.csv >after.txt
  cmp -s before.txt after.txt || break
  sleep 0.1
done
cat after.txt

kill $server
wait $server
trap - EXIT
echo "Done in $SECONDS s, everything included."
