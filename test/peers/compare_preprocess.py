#!/usr/bin/env python3
"""Runs `preprocess` and pandas_preprocess.py on the same rows alternately, and prints medians of wall and CPU seconds. Both must write the same bytes.

    compare_preprocess.py SAMPLE.tsv.gz [COPIES [ROUNDS]]        the sample repeated COPIES (12) times, ROUNDS (5) rounds
"""
import filecmp
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PREPROCESS = os.path.join(HERE, "../../build/cpu/bin/preprocess")
OPTIONS = "--min-count 6 --log --normalize minmax --cross C1xC2 C3xC4 --holdout 0.1 --force --key-bits 32 --rows-per-file 1000000000".split()


def seconds(command):
    start, before = time.time(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return time.time() - start, after.children_user - before.children_user, after.children_system - before.children_system


def main():
    sample, copies, rounds = sys.argv[1], int(sys.argv[2] if len(sys.argv) > 2 else 12), int(sys.argv[3] if len(sys.argv) > 3 else 5)
    with tempfile.TemporaryDirectory() as folder:
        rows, ours, theirs = (os.path.join(folder, name) for name in ("rows.tsv", "ours", "theirs"))
        text = gzip.open(sample).read()
        with open(rows, "wb") as file:
            for _ in range(copies):
                file.write(text)
        commands = {"preprocess": [PREPROCESS, "--criteo", rows, "--out", ours] + OPTIONS, "pandas": [sys.executable, os.path.join(HERE, "pandas_preprocess.py"), rows, theirs]}
        taken = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                taken[name].append(seconds(command))
        same = all(filecmp.cmp(os.path.join(ours, name), os.path.join(theirs, name), shallow=False) for name in ("train.0.data", "val.0.data"))
        print(f"{len(text) * copies / 1e6:.0f} MB of text, {os.cpu_count()} cores, {rounds} rounds; the same bytes: {'yes' if same else 'NO'}")
        medians = {name: [statistics.median(column) for column in zip(*times)] for name, times in taken.items()}
        for name, (wall, user, system) in medians.items():
            print(f"{name:10}  wall {wall:7.2f} s   processors {user + system:7.2f} s ({user:.2f} user, {system:.2f} system)")
        a, b = medians["pandas"], medians["preprocess"]
        print(f"preprocess is {a[0] / b[0]:.1f} times faster by the clock, {(a[1] + a[2]) / (b[1] + b[2]):.1f} times in processor seconds")


if __name__ == "__main__":
    main()
