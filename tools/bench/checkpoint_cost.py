#!/usr/bin/env python3
"""Measures the cost of one checkpoint: how long training stops, the time until the checkpoint is complete, and the step
time meanwhile.

    tools/bench/checkpoint_cost.py build/cpu/bin --gigabytes 0.2 --device cpu
    tools/bench/checkpoint_cost.py build/cuda/bin --gigabytes 20 --folder /on/the/disk

The model is one table of this size, whose rows all exist from the start, and two dense layers. One checkpoint is saved
in the middle of the run; the checkpoint at the end is not measured. For comparison, prints the bytes per second of `cp`
of the checkpoint's largest file, and of `dd` with its data flushed, to the same folder.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SLOTS, DIM = 8, 128


def config(given):
    rows = max(1000, int(given.gigabytes * 1e9 / (4 * DIM * (3 if given.optimizer == "Adam" else 1)) / SLOTS))
    hparam = {"Adam": {"adam_hparam": {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
              "SGD": {"sgd_hparam": {"learning_rate": 0.01}}}[given.optimizer]
    return {
        "solver": {"lr_policy": "fixed", "display": given.display, "max_iter": 2 * given.at - 1, "gpu": [0], "batchsize": given.batch, "snapshot": 0,
                   "snapshot_prefix": "model/", "eval_interval": 0, "seed": 1, "final_snapshot": False,
                   "checkpoint": {"every": given.at, "keep_last": 1, "folder": "ckpt"}},
        "optimizer": {"type": given.optimizer, "update_type": "Local", **hparam},
        "layers": [
            {"name": "data", "type": "Data", "source": "train.txt", "check": "Sum", "slot_size_array": [rows] * SLOTS,
             "label": {"top": "label", "label_dim": 1},
             "dense": {"top": "dense", "dense_dim": 4},
             "sparse": [{"top": "keys", "type": "LocalizedSlot", "max_feature_num_per_sample": SLOTS, "max_nnz": 1, "slot_num": SLOTS}]},
            {"name": "vectors", "type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors",
             "sparse_embedding_hparam": {"index": "direct", "slot_size_array": [rows] * SLOTS, "embedding_vec_size": DIM, "combiner": 0}},
            {"name": "flat", "type": "Reshape", "bottom": "vectors", "top": "flat", "leading_dim": SLOTS * DIM},
            {"name": "all", "type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "all", "top": "fc1", "fc_param": {"num_output": 256}},
            {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
            {"name": "fc2", "type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}]}


def run(command, folder):
    done = subprocess.run([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with code {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


class Watch(threading.Thread):
    """Records when the checkpoint's folder appears, and when it is renamed after completion."""

    def __init__(self, folder, iteration):
        super().__init__(daemon=True)
        self.whole = folder / f"iteration_{iteration:06d}"
        self.part = folder / (self.whole.name + ".part")
        self.began = self.ended = None

    def run(self):
        while self.ended is None:
            if self.began is None and (self.part.exists() or self.whole.exists()):
                self.began = time.time()
            if self.whole.exists():
                self.ended = time.time()
            time.sleep(0.002)


def steps_of(lines):
    """Returns (first step, last step, milliseconds per step) for the steps between each two displays."""
    trained = [line for line in lines if line.get("kind") == "train"]
    found = []
    for before, after in zip(trained, trained[1:]):
        steps = after["iteration"] - before["iteration"]
        found.append((before["iteration"], after["iteration"], 1000 * (after["seconds"] - before["seconds"]) / steps))
    return found


def rate(size, command, folder):
    begin = time.time()
    run(command, folder)
    return size / (time.time() - begin)


def show(what, value):
    print(f"{what:<46}{value}")


def measure(given, folder):
    (folder / "config.json").write_text(json.dumps(config(given)))
    run([given.bin / "data_generator", "--config", "config.json", "--samples", given.samples], folder)
    watch = Watch(folder / "ckpt", given.at)
    watch.start()
    text = run([given.bin / "huge_ctr", "--train", "config.json", "--run-dir", "run", "--device", given.device], folder)
    watch.join(timeout=5)
    if watch.ended is None:
        sys.exit("no checkpoint was saved; give a larger --at:\n" + text[-2000:])
    stopped = [line for line in text.splitlines() if "training stopped for" in line]
    if not stopped:
        sys.exit("the run ended before the checkpoint was whole; give a larger --at:\n" + text[-2000:])
    kept = sorted((folder / "ckpt").glob("iteration_*"))[-1]
    size = sum(file.stat().st_size for file in kept.iterdir())
    took = watch.ended - watch.began
    steps = steps_of([json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()])
    before = [ms for first, last, ms in steps if last <= given.at][1:]
    after = [ms for first, last, ms in steps if first >= given.at + given.display]
    show("checkpoint", f"{size / 1e9:.3f} GB")
    show("training stopped for", stopped[0].split("training stopped for ")[1].rstrip(" )"))
    show("whole after", f"{took:.3f} s, {size / took / 1e9:.2f} GB/s")
    largest = max(kept.iterdir(), key=lambda file: file.stat().st_size)
    bytes_of = largest.stat().st_size
    show("cp, data flushed", f"{rate(bytes_of, ['/bin/sh', '-c', f'cp {largest} copy && sync copy'], folder) / 1e9:.2f} GB/s")
    blocks = max(1, bytes_of >> 20)
    show("dd, data flushed", f"{rate(blocks << 20, ['dd', 'if=/dev/zero', 'of=zeros', 'bs=1M', f'count={blocks}', 'conv=fsync'], folder) / 1e9:.2f} GB/s")
    if before:
        show("a step before it", f"{statistics.median(before):.3f} ms (median of {len(before)} displays)")
    if after:
        during = after[:max(1, int(took * 1000 / (statistics.median(after) * given.display)))]
        show("a step while it is written", f"{statistics.median(during):.3f} ms (median of {len(during)}, longest {max(during):.3f})")
        rest = after[len(during):]
        if rest:
            show("a step behind it", f"{statistics.median(rest):.3f} ms (median of {len(rest)})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=lambda path: pathlib.Path(path).resolve(), help="folder of the programs")
    parser.add_argument("--gigabytes", type=float, default=0.2, help="GB of rows and their optimizer states")
    parser.add_argument("--optimizer", choices=["SGD", "Adam"], default="Adam")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--samples", type=int, default=100000, help="generated samples, which are read repeatedly")
    parser.add_argument("--at", type=int, default=200, help="the step after which the checkpoint is written; the run has 2 AT - 1 steps")
    parser.add_argument("--display", type=int, default=5, help="steps that are timed together")
    parser.add_argument("--folder", help="folder on the disk to be measured; default: the temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure(given, pathlib.Path(folder))


if __name__ == "__main__":
    main()
