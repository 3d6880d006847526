#!/usr/bin/env bash
# Trains a model, serves it from a parameter server, and continues training while changed rows reach the service:
# through Kafka if there is a broker, otherwise through files. Redis is a cache above a RocksDB database. Both are
# optional, and the script prints what it uses instead. Options are passed to huge_ctr train (for example: --max-iter
# 100). Variables: PORT of the service (default: 8000) and REDIS_PORT (default: 6390), 0 for any free port; BROKERS:
# addresses of Kafka.
set -euo pipefail
targets=plugins
. "$(dirname "$0")/../common.sh"
ask=$PWD/samples/serving/ask.py
case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
cd "$out"
rm -rf first models database levels store.json job.json

started=()
end_servers() {
  for one in ${started[@]+"${started[@]}"}; do kill "$one" 2>/dev/null || true; done
}
trap end_servers EXIT

echo "== Servers"
redis='' database='"folder": "levels"' stream=''
if command -v redis-server >/dev/null && [ -e "$bin/libhuge_ctr_redis.so" ]; then
  port=${REDIS_PORT:-6390}
  [ "$port" != 0 ] || port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --maxmemory-policy noeviction >redis.log 2>&1 &
  started+=($!)
  until grep -q 'eady to accept connections' redis.log; do
    kill -0 "${started[-1]}" 2>/dev/null || { cat redis.log; exit 1; }
    sleep 0.1
  done
  redis="\"redis\": {\"addresses\": [\"127.0.0.1:$port\"]}, "
  echo "Redis: port $port"
else
  echo "No Redis (packages redis-server and libhiredis-dev): rows are in memory and on the disk."
fi
if [ -e "$bin/libhuge_ctr_rocksdb.so" ]; then
  database='"rocksdb": {"folder": "database"}'
else
  echo "No RocksDB (package librocksdb-dev): rows are in files of huge_ctr."
fi
brokers=${BROKERS:-}
if [ -z "$brokers" ] && [ -x "$bin/kafka_mock_cluster" ]; then
  mkfifo -m 600 commands.$$
  "$bin/kafka_mock_cluster" 1 clicks-deltas:2 <commands.$$ >brokers.txt &
  started+=($!)
  exec 9>commands.$$
  rm commands.$$
  until [ -s brokers.txt ]; do sleep 0.1; done
  brokers=$(head -n 1 brokers.txt)
fi
if [ -n "$brokers" ]; then
  stream="\"brokers\": \"$brokers\", \"topic\": \"clicks-deltas\""
  echo "Kafka: $brokers"
else
  echo "No Kafka (BROKERS=host:port): rows reach the service through files."
fi

echo "== Rows"
awk 'BEGIN { srand(1); split("berlin paris rome oslo", city); print "clicked,city,price,tags"
  for (i = 0; i < 4000; ++i) { c = city[int(rand() * 4) + 1]; p = int(rand() * 1000) / 100
    print (rand() < (c == "paris" ? 0.7 : 0.2) + p / 50 ? 1 : 0) "," c "," p "," (rand() < 0.5 ? "new" : "new|sale") } }' >clicks.csv
"$bin/huge_ctr" init clicks.csv --label clicked --out config.json >/dev/null
publish='' follow=''
if [ -n "$stream" ]; then publish=", \"publish\": {$stream}" follow="\"stream\": {$stream}, "; fi
cat >job.json <<END
{"include": "config.json",
 "solver": {"num_epochs": 1, "snapshot_prefix": "models/", "snapshot_delta": 5, "checkpoint": {"folder": "models/ckpt"}$publish}}
END
cat >store.json <<END
{$redis$database,
 "models": [{"name": "ctr", "model": "first", $follow"updates": "models/"}]}
END

echo "== 1. Train"
"$bin/huge_ctr" train job.json --run-dir first "$@" 2>first.log || { cat first.log; exit 1; }

echo "== 2. Serve"
"$bin/huge_ctr" serve ctr=first --store store.json --http-port "${PORT:-8000}" --grpc-port -1 --metrics-port 0 \
  >serve.log 2>&1 &
server=$!
started+=($server)
until grep -q '^ready' serve.log; do
  kill -0 $server 2>/dev/null || { cat serve.log; exit 1; }
  sleep 0.1
done
url=$(sed -n 's/^HTTP: //p' serve.log)/models/ctr
metrics=$(sed -n 's/^metrics: //p' serve.log)
python3 "$ask" "$url" config.eval.csv | tee before.txt

echo "== 3. Train on, and publish"
"$bin/huge_ctr" train job.json --run-dir first --resume latest --set solver.num_epochs=3 "$@" 2>second.log ||
  { cat second.log; exit 1; }
for _ in $(seq 300); do
  python3 "$ask" "$url" config.eval.csv >after.txt
  cmp -s before.txt after.txt || break
  sleep 0.1
done
cat after.txt
python3 - "$metrics" <<'END'
import sys, urllib.request
wanted = ("hctr_store_iteration", "hctr_store_update_age_seconds", "hctr_stream_deltas", "hctr_store_level_rows")
for line in urllib.request.urlopen(sys.argv[1]).read().decode().splitlines():
    if line.startswith(wanted):
        print(line)
END

kill $server
wait $server
echo "Done in $SECONDS s, everything included."
