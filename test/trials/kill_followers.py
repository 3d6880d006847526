#!/usr/bin/env python3
"""Kills stores that follow a training run through Kafka, 100 times at random. Finally all tables must equal the trainer's.

usage: kill_followers.py BIN [--kills 100] [--stores 2] [--seed 1]
BIN: the folder of huge_ctr, data_generator and kafka_mock_cluster.
"""
import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[2] / "samples/deepfm/config.json"


def run(*words, cwd):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def rows_of(bin_folder, store, table, keys, cwd):
    return run(bin_folder / "huge_ctr", "store", "get", store, "--table", table, "--keys", ",".join(map(str, keys)), cwd=cwd)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=lambda text: Path(text).resolve())
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--stores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        work = Path(name)
        samples = 100 * 256
        run(options.bin / "data_generator", "--config", CONFIG, "--samples", samples, "--eval-samples", 1000, cwd=work)
        broker = subprocess.Popen([options.bin / "kafka_mock_cluster", "1", "deltas:64"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        brokers = broker.stdout.readline().strip()
        stream = {"brokers": brokers, "topic": "deltas"}
        sets = ["solver.snapshot_prefix=out/", "solver.snapshot_delta=2", "solver.batchsize=256", "solver.num_epochs=2",
                "solver.eval_interval=0", "optimizer.update_type=Local", "solver.publish=" + json.dumps(stream)]
        trainer = subprocess.Popen([options.bin / "huge_ctr", "--train", CONFIG, "--device", "cpu", "--run-dir", "run",
                                    *[word for one in sets for word in ("--set", one)]], cwd=work,
                                   stdout=subprocess.DEVNULL, stderr=open(work / "train.err", "w"))
        manifest = None
        while not manifest:
            if trainer.poll():
                sys.exit((work / "train.err").read_text())
            manifest = next(iter(sorted(work.glob("out/_model_*.json"))), None)
            time.sleep(0.02)
        tables = [{"name": table["name"], "dim": table["embedding_vec_size"],
                   "by_slot": table["identity"] == "slot_and_key"}
                  for table in json.loads(manifest.read_text())["tables"]]
        for number in range(options.stores):
            (work / f"store{number}.json").write_text(json.dumps(
                {"folder": f"store{number}", "models": [{"name": "m", "tables": tables, "stream": stream}]}))
        kills = 0
        followers = {}
        while kills < options.kills or trainer.poll() is None:
            for number in range(options.stores):
                if number not in followers:
                    followers[number] = subprocess.Popen(
                        [options.bin / "huge_ctr", "store", "follow", f"store{number}.json"], cwd=work,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0.01, 0.4))
            if kills < options.kills:
                number = random.randrange(options.stores)
                follower = followers.pop(number)
                if follower.poll() is not None:
                    sys.exit(f"a store has ended with {follower.returncode} after {kills} kills")
                follower.send_signal(signal.SIGKILL)
                follower.wait()
                kills += 1
        for follower in followers.values():
            follower.terminate()
            follower.wait()
        if trainer.returncode:
            sys.exit((work / "train.err").read_text())
        iteration = max(int(file.stem.rsplit("_", 1)[1]) for file in work.glob("out/_model_*.json"))
        (work / "right.json").write_text(json.dumps({"models": [{"name": "m", "tables": [
            {**table, "model_file": f"out/{t}_sparse_{iteration}.model"} for t, table in enumerate(tables)]}]}))
        for number in range(options.stores):
            shown = run(options.bin / "huge_ctr", "store", "load", f"store{number}.json", cwd=work)
            print(shown.splitlines()[0])
            for table in tables:
                keys = range(0, 3000)
                right = rows_of(options.bin, "right.json", table["name"], keys, work)
                if right != rows_of(options.bin, f"store{number}.json", table["name"], keys, work):
                    sys.exit(f"store {number}, table {table['name']}: other rows than the trainer's")
                print(f"store {number}, table {table['name']}: {right.count(chr(10)) - right.count('no row')} rows equal")
        broker.stdin.close()
        broker.wait()
        print(f"{kills} kills")


main()
