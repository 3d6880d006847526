#!/usr/bin/env python3
"""Trains on arriving files and publishes deltas while three servers follow, and restarts every process again and again.

usage: rolling_restarts.py BIN [--minutes 60] [--pause 3] [--quiet 8] [--seed 1] [--keep FOLDER]
BIN: the folder of huge_ctr and kafka_mock_cluster.

Restarts servers, the trainer and Redis by SIGTERM or SIGKILL, and disconnects brokers. The servers use Redis above
RocksDB, memory above files, and memory. After every fourth delta a full model is saved; then the scores of each server
must equal the scores of `huge_ctr predict` for this model, bit for bit. Between these deltas a client compares the
answers of servers that have the same iteration of rows and dense weights. An error of a running server, or an
iteration that decreases, is a failure.
"""
import argparse
import csv
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

BATCH, DELTA, FULL = 32, 5, 20  # BATCH: samples; DELTA, FULL: iterations from one delta or full model to the next
WAIT = 600  # longest wait for a process, in seconds: long, because the machine may be busy

DIM, WIDTH = 8, 32
MODEL = [
    {"name": "data", "type": "Data", "format": "Csv", "source": "in", "eval_source": "probe.csv", "follow": True,
     "csv": {"labels": ["clicked"], "dense": [{"columns": ["price"]}],
             "slots": [{"columns": [name]} for name in ("user", "city", "item")]},
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
     "sparse": [{"top": "keys", "slot_num": 3, "max_nnz": 1}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "rows",
     "sparse_embedding_hparam": {"embedding_vec_size": DIM, "combiner": "sum", "expire_after": 8 * FULL}},
    {"type": "Reshape", "bottom": "rows", "top": "flat", "leading_dim": 3 * DIM},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "features"},
    {"type": "InnerProduct", "bottom": "features", "top": "fc1", "fc_param": {"num_output": WIDTH}},
    {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"type": "InnerProduct", "bottom": "relu1", "top": "logits", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logits", "label"], "top": "loss"}]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def bits(scores):
    return struct.pack(f"{len(scores)}f", *scores)


def until(process, what, holds):
    end = time.time() + WAIT
    while not (value := holds()):
        if time.time() > end:
            raise RuntimeError(f"{process.name} {what} after {WAIT} s:\n{process.tail()}")
        time.sleep(0.05)
    return value


class Process:
    """A process that can be ended and started again with the same command."""

    def __init__(self, name, work, words, **more):
        self.name, self.words, self.more = name, [str(word) for word in words], more
        self.log = open(work / f"{name}.log", "a+")
        self.work, self.process, self.starts = work, None, 0

    def start(self):
        self.starts += 1
        self.process = subprocess.Popen(self.words, cwd=self.work, stdout=self.log, stderr=self.log, **self.more)

    def end(self, how, codes):
        self.expect_running()
        self.process.send_signal(how)
        code = self.process.wait(WAIT)
        if how != signal.SIGKILL and code not in codes:
            raise RuntimeError(f"{self.name} ended with {code} after signal {how}:\n{self.tail()}")

    def expect_running(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended by itself with {self.process.returncode}:\n{self.tail()}")

    def tail(self):
        return (self.work / f"{self.name}.log").read_text()[-3000:]


class Server(Process):
    def __init__(self, name, work, program, store, stream):
        store["models"] = [{"name": "ctr", "model": "models/", "stream": stream}]
        (work / f"{name}.json").write_text(json.dumps(store))
        self.port, self.metrics_port = free_port(), free_port()
        super().__init__(name, work, [
            program, "serve", "ctr=models/", "--store", f"{name}.json", "--http-port", self.port, "--metrics-port",
            self.metrics_port, "--grpc-port", -1, "--model-control", "poll", "--poll-seconds", 0.5, "--threads", 1,
            "--instances", 1, "--device", "cpu"])
        self.up = False

    def ready(self):
        self.expect_running()
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/health/ready", timeout=WAIT).status == 200
        except OSError:
            return False

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=WAIT) as page:
            lines = page.read().decode().splitlines()
        sums = {}
        for line in lines:
            if not line.startswith("#"):
                name, value = line.split("{")[0].split(" ")[0], line.rsplit(" ", 1)[1]
                sums[name] = sums.get(name, 0) + float(value)
        return sums

    def scores(self, request):
        """Returns the iteration of the rows (None if it changes during the request), the iteration of the dense
        weights, and the scores.
        """
        before = self.metrics()["hctr_store_iteration"]
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/models/ctr/infer", request, timeout=WAIT) as reply:
            answer = json.load(reply)
        same = self.metrics()["hctr_store_iteration"] == before
        return int(before) if same else None, int(answer["model_version"]), bits(answer["outputs"][0]["data"])


class Trial:
    def __init__(self, options, work):
        self.options, self.work, self.chance = options, work, random.Random(options.seed)
        self.program = options.bin / "huge_ctr"
        self.problems, self.answers, self.seen_on, self.published, self.visible = [], {}, {}, {}, {}
        self.counts = {"restarts": {}, "answers": 0, "compared": 0, "checks": 0}
        self.done, self.disturbed_until, self.lock = threading.Event(), 0.0, threading.Lock()

    # Half of the users come and go, so that rows expire.
    def chunk(self, number, rows):
        of = random.Random(1000 * self.options.seed + number)
        lines = ["clicked,user,city,item,price"]
        for _ in range(rows):
            user = of.randrange(500) if of.random() < 0.5 else of.randrange(500 + 40 * number, 2500 + 40 * number)
            city, item = of.randrange(20), of.randrange(300)
            price = of.uniform(0, 9)
            lines.append(f"{int(of.random() < 0.2 + 0.4 * (city % 3 == 0) + price / 50)},u{user},c{city},i{item},{price:.2f}")
        return "\n".join(lines) + "\n"

    def feed(self, number):
        (self.work / "in/.next").write_text(self.chunk(number, BATCH * DELTA))
        os.rename(self.work / "in/.next", self.work / f"in/part{number:06d}.csv")

    def prepare(self):
        (self.work / "in").mkdir()
        (self.work / "models").mkdir()
        (self.work / "probe.csv").write_text(self.chunk(5, 200))
        with open(self.work / "probe.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.request = json.dumps({"inputs": [
            {"name": name, "datatype": "BYTES", "shape": [len(rows)], "data": [row[name] for row in rows]}
            for name in ("user", "city", "item", "price")]}).encode()
        self.broker = subprocess.Popen([self.options.bin / "kafka_mock_cluster", "3", "deltas:4"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        stream = {"brokers": self.broker.stdout.readline().strip(), "topic": "deltas",
                  "librdkafka": ["reconnect.backoff.ms=20", "reconnect.backoff.max.ms=500"]}
        (self.work / "config.json").write_text(json.dumps({
            "solver": {"batchsize": BATCH, "batchsize_eval": 256, "eval_interval": 0, "display": 1000, "seed": 1,
                       "input_key_type": "I64", "snapshot": FULL, "snapshot_delta": DELTA, "snapshot_prefix": "models/",
                       "checkpoint": {"every": 2 * DELTA, "folder": "checkpoints"}, "publish": stream},
            "optimizer": {"type": "Adam", "update_type": "Local", "adam_hparam": {"learning_rate": 0.01}},
            "layers": MODEL}))
        self.trainer = Process("trainer", self.work, [self.program, "train", "config.json", "--run-dir", "run", "--device",
                                                      "cpu", "--threads", 1, "--resume", "latest"])
        levels = [{"folder": "files1"}, {"folder": "files2", "most_rows": 500}, {}]
        self.redis = None
        if shutil.which("redis-server") and (self.options.bin / "libhuge_ctr_redis.so").exists():
            port = free_port()
            self.redis = Process("redis", self.work, ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
                                                      "--appendonly", "no"])
            self.redis.start()
            levels[0].update(redis={"addresses": [f"127.0.0.1:{port}"]}, memory=False)
        else:
            print("no Redis: the first server has no level in Redis")
        if (self.options.bin / "libhuge_ctr_rocksdb.so").exists():
            del levels[0]["folder"]
            levels[0]["rocksdb"] = {"folder": "database"}
        else:
            print("no RocksDB: the first server has its rows in files of huge_ctr")
        self.servers = [Server(f"server{n}", self.work, self.program, level, stream) for n, level in enumerate(levels)]

    # Restarts one process at a time.
    def restart(self, process, codes):
        kill = self.chance.random() < 0.5
        process.end(signal.SIGKILL if kill else signal.SIGTERM, codes)
        time.sleep(self.chance.uniform(0, self.options.pause))
        process.start()
        return "killed" if kill else "ended"

    def disturb(self):
        victims = [*self.servers, self.trainer, "broker"] + ([self.redis] if self.redis else [])
        while True:
            self.chance.shuffle(victims)  # a round restarts each process once
            for victim in victims:
                if self.done.wait(self.chance.uniform(0.2, 1.8) * self.options.quiet):
                    return
                self.disturbed_until = float("inf")
                if victim == "broker":
                    what = self.disconnect()
                elif victim in self.servers:
                    victim.up = False
                    what = f"{victim.name} {self.restart(victim, [0])}"
                    until(victim, "is not ready", victim.ready)
                    victim.up = True
                else:
                    what = f"{victim.name} {self.restart(victim, [75] if victim is self.trainer else [0])}"
                self.disturbed_until = time.time() + 2
                self.counts["restarts"][what] = self.counts["restarts"].get(what, 0) + 1

    def disconnect(self):
        brokers = self.chance.choice([[1], [2], [3], [1, 2, 3]])
        for word in ("down", "up"):
            for broker in brokers:
                self.broker.stdin.write(f"{word} {broker}\n")
                self.broker.stdin.flush()
                if self.broker.stdout.readline() != "ok\n":
                    raise RuntimeError("kafka_mock_cluster does not obey")
            if word == "down":
                time.sleep(self.chance.uniform(0.5, 2) * self.options.pause)
        return "all brokers disconnected" if len(brokers) > 1 else "one broker disconnected"

    # A client. Answers from the same state of rows and weights must be equal, whichever server gives them.
    def ask(self):
        while not self.done.wait(self.options.pause / 10):
            server = self.chance.choice(self.servers)
            start = server.starts
            if not server.up:
                continue
            try:
                rows, dense, scores = server.scores(self.request)
            except urllib.error.HTTPError as error:  # the server runs, and answers with an error
                raise RuntimeError(f"{server.name} answered {error.code}: {error.read()[:500]}") from error
            except OSError as error:
                if server.up and server.starts == start:
                    raise RuntimeError(f"{server.name} does not answer: {error}") from error
                continue
            self.compare(server, rows, dense, scores)

    def compare(self, server, rows, dense, scores):
        with self.lock:
            self.counts["answers"] += 1
            if rows is None:
                return
            first = self.answers.setdefault((rows, dense), (server.name, scores))
            self.counts["compared"] += first[0] != server.name
            if first[1] != scores:
                self.problems.append(f"rows of iteration {rows}, weights of {dense}: {server.name} and {first[0]} differ")

    # Records when the folder of a delta appears, and when each server has the delta's rows.
    def watch(self):
        iterations = {}
        while not self.done.wait(0.1):
            now = time.time()
            for path in (self.work / "models").glob("_delta_*"):
                if (name := path.name.rsplit("_", 1)[1]).isdigit():
                    self.published.setdefault(int(name), (now, self.disturbed_until))
            for server in self.servers:
                start = server.starts
                try:
                    metrics = server.metrics() if server.up else {}
                    iteration = int(metrics.get("hctr_store_iteration", -1))
                except OSError:
                    continue
                if not server.up or server.starts != start or iteration < 0:
                    continue
                key = (server.name, start)
                if iteration < iterations.get(key, -1):
                    self.problems.append(f"{server.name}: rows went from iteration {iterations[key]} to {iteration}")
                if metrics["hctr_stream_stopped"]:
                    raise RuntimeError(f"{server.name}: its stream has ended:\n{server.tail()}")
                for delta in range(iterations.get(key, iteration) + 1, iteration + 1):
                    if delta in self.published:
                        self.visible.setdefault((server.name, delta), (time.time(), self.disturbed_until))
                iterations[key] = iteration

    def latencies(self):
        """Seconds from a delta's folder to the delta's rows on a server: for all deltas, and for deltas without a
        restart in that time or in the 2 s before it.
        """
        everything, quiet = [], []
        for (_, delta), (seen, disturbed) in self.visible.items():
            begin, disturbed_before = self.published[delta]
            everything.append(seen - begin)
            if disturbed_before < begin and disturbed < begin:
                quiet.append(seen - begin)
        return sorted(everything), sorted(quiet)

    def predicted(self, iteration):
        out = self.work / "predicted.csv"
        done = subprocess.run([self.program, "predict", "config.json", "--model", f"models/@{iteration}", "--data", "probe.csv",
                               "--out", out, "--device", "cpu", "--threads", "1"], cwd=self.work, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"predict at {iteration}: {done.stderr}")
        with open(out, newline="") as file:
            return bits([float(row["score"]) for row in csv.DictReader(file)])

    def check(self, iteration):
        """Each server gets to `iteration`, and then has the trainer's scores."""
        until(self.trainer, f"has not saved the model of iteration {iteration}",
              (self.work / f"models/_model_{iteration}.json").exists)
        right = self.predicted(iteration)
        for server in self.servers:
            def has_iteration():
                try:
                    found = server.scores(self.request) if server.up else None
                except OSError:
                    return None
                return found if found and found[:2] == (iteration, iteration) else None
            rows, dense, scores = until(server, f"does not have iteration {iteration}", has_iteration)
            self.compare(server, rows, dense, scores)
            if scores != right:
                self.problems.append(f"{server.name} at iteration {iteration}: other scores than predict")
            self.counts["checks"] += 1
        if self.answers[(iteration, iteration)][1] != right:
            self.problems.append(f"an answer at iteration {iteration} differs from predict")
        self.answers = {key: value for key, value in self.answers.items() if key[0] >= iteration - FULL}
        self.final = right

    def first_model_or_end(self):
        self.trainer.expect_running()
        return (self.work / f"models/_model_{FULL}.json").exists()

    def in_thread(self, work):
        def guarded():
            try:
                work()
            except Exception as error:  # the main thread reports this error, and fails
                self.problems.append(f"{work.__name__}: {error}")
        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def run(self):
        self.prepare()
        self.feed(1)
        self.trainer.start()
        parts, all_scores, threads, begin = 1, set(), [], time.time()
        while not self.problems:
            while parts * DELTA % FULL:
                parts += 1
                self.feed(parts)
                time.sleep(self.options.pause)
            if not threads:
                until(self.trainer, "has saved no full model", self.first_model_or_end)
                for server in self.servers:
                    server.start()
                    until(server, "is not ready", server.ready)
                    server.up = True
                threads = [self.in_thread(work) for work in (self.disturb, self.ask, self.watch)]
            self.check(parts * DELTA)
            all_scores.add(self.final)
            if self.counts["checks"] // len(self.servers) % 10 == 0:
                self.report(parts, begin)
            if time.time() - begin > 60 * self.options.minutes:
                break
            parts += 1
            self.feed(parts)
        self.done.set()
        for thread in threads:
            thread.join(WAIT)
        if not self.problems:
            (self.work / "in/_END").touch()
            if self.trainer.process.wait(WAIT):
                self.problems.append(f"the trainer ended with {self.trainer.process.returncode}:\n{self.trainer.tail()}")
            self.check(parts * DELTA)
            for server in self.servers:
                server.end(signal.SIGTERM, [0])
            if len(all_scores) < self.counts["checks"] // len(self.servers) - 1:
                self.problems.append("scores did not change with each model")
        self.report(parts, begin)

    def report(self, parts, begin):
        load = os.getloadavg()[0]
        print(f"{(time.time() - begin) / 60:.1f} min: {parts} deltas; {self.counts['checks']} scores of servers compared with "
              f"predict; {self.counts['answers']} answers, {self.counts['compared']} compared with another server's; load {load:.1f}")
        print("  restarts:", ", ".join(f"{number} x {what}" for what, number in sorted(self.counts["restarts"].items())))
        for name, seconds in zip(("all", "undisturbed"), self.latencies()):
            if seconds:
                print(f"  publish to visible, {name}: {len(seconds)}, p50 {seconds[len(seconds) // 2]:.2f} s, "
                      f"p99 {seconds[int(0.99 * len(seconds))]:.2f} s, longest {seconds[-1]:.2f} s")
        sys.stdout.flush()

    def close(self):
        self.done.set()
        for one in [*getattr(self, "servers", []), getattr(self, "trainer", None), getattr(self, "redis", None)]:
            if one and one.process and one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        self.broker.stdin.close()
        self.broker.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=lambda text: Path(text).resolve())
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--pause", type=float, default=3, help="seconds between two deltas")
    parser.add_argument("--quiet", type=float, default=8, help="mean seconds between two restarts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for all files, which is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        work = Path(options.keep or name).resolve()
        work.mkdir(parents=True, exist_ok=True)
        trial = Trial(options, work)
        try:
            trial.run()
        except RuntimeError as error:
            trial.problems.append(str(error))
        finally:
            trial.close()
        for problem in trial.problems[:10]:
            print("FAILED:", problem)
        sys.exit(bool(trial.problems))


if __name__ == "__main__":
    main()
