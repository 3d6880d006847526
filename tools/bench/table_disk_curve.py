#!/usr/bin/env python3
"""Measures training speed as a function of the fraction of a table's rows that fit in memory; the other rows are on
disk.

    tools/bench/table_disk_curve.py FOLDER [--gb 2] [--shares 100,50,20,10,5] [--alpha 1.05] [--device cpu|gpu] [--beyond GB] [--bin build/cpu/bin]

Writes config, data, the rows on disk and run folders into FOLDER. Rows have 256 floats and Adam's states: 3,072 bytes.
Host budgets are a third larger than the rows that fit, because up to a quarter of a budget is for the map of the rows
on disk. The first samples contain every key once, so that all rows exist; later keys follow a power law. Rates are
means over the last half of the power-law samples; memory is the process's peak. With a GPU, the fraction counts rows on
the GPU, host memory holds twice as many, and keys and index are on the GPU. With --beyond the run is in a separate
memory cgroup, which needs root. Its limit is this many GB above the rows in memory, for the program, the map of rows on
disk and the system's file cache. 0.25 leaves little or nothing for the file cache.
"""
import argparse
import array
import json
import os
import pathlib
import random
import subprocess
import sys

SLOTS, DIM = 8, 256
ROW_BYTES = DIM * 4 * 3
KEY_BYTES = 72  # maximum bytes per row besides the vector: key, index, statistics, marks


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gb", type=float, default=2, help="size of all rows in GB (10^9 bytes)")
    parser.add_argument("--shares", default="100,50,20,10,5", help="percentages of the rows that fit in memory")
    parser.add_argument("--alpha", type=float, default=1.05, help="exponent of the power law of keys")
    parser.add_argument("--steps", type=int, default=200, help="steps after all rows exist")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--beyond", type=float, help="limit of a memory cgroup, in GB above the rows in memory")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/cpu/bin"))
    return parser.parse_args()


def write_data(path, keys_of_slot, steps, alpha, batch):
    """Writes samples of a label and one dense value, both float32, and one int32 key per slot. Returns the number of
    samples.
    """
    draw, power = random.Random(1), 1 / (1 - alpha)
    least = keys_of_slot ** (1 - alpha) - 1
    fill = -(-keys_of_slot // batch) * batch
    with open(path, "wb") as file:
        for sample in range(fill + steps * batch):
            array.array("f", [float(draw.random() < 0.5), draw.random()]).tofile(file)
            if sample < fill:
                keys = [slot * keys_of_slot + sample % keys_of_slot for slot in range(SLOTS)]
            else:
                keys = [slot * keys_of_slot + min(keys_of_slot - 1, int((least * draw.random() + 1) ** power) * 7919 % keys_of_slot)
                        for slot in range(SLOTS)]
            array.array("i", keys).tofile(file)
    return fill + steps * batch


def config(samples, share, row_bytes, batch, device):
    part = int(row_bytes * (share / 100 if share < 100 else 1.3))
    with_map = lambda rows: f"{rows * 4 // 3}B"
    keys_and_index = 3 * part // ROW_BYTES * KEY_BYTES + (64 << 20)
    memory = {"host": with_map(part)} if device == "cpu" else {"gpu": f"{part + keys_and_index}B", "host": with_map(2 * part)}
    return {
        "solver": {"lr_policy": "fixed", "display": 10, "max_iter": samples // batch, "gpu": [0], "batchsize": batch, "snapshot": 0,
                   "eval_interval": 0, "final_snapshot": False, "table_memory": {**memory, "disk": "rows"}},
        "optimizer": {"type": "Adam", "update_type": "Local",
                      "adam_hparam": {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
        "layers": [
            {"name": "data", "type": "Data", "format": "Raw", "source": "train.raw", "num_samples": samples, "float_label_dense": True,
             "eval_source": "train.raw", "eval_num_samples": batch,
             "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
             "sparse": [{"top": "keys", "type": "DistributedSlot", "max_feature_num_per_sample": SLOTS, "slot_num": SLOTS}]},
            {"name": "embedding", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "embedding",
             "sparse_embedding_hparam": {"embedding_vec_size": DIM, "combiner": 0}},
            {"name": "flat", "type": "Reshape", "bottom": "embedding", "top": "flat", "leading_dim": SLOTS * DIM},
            {"name": "concat", "type": "Concat", "bottom": ["flat", "dense"], "top": "concat"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "concat", "top": "fc1", "fc_param": {"num_output": 32}},
            {"name": "relu", "type": "ReLU", "bottom": "fc1", "top": "relu"},
            {"name": "fc2", "type": "InnerProduct", "bottom": "relu", "top": "fc2", "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}]}


def cgroup_of(limit):
    """Returns the path of a new memory cgroup with this limit in bytes."""
    second = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = pathlib.Path("/sys/fs/cgroup", *(() if second else ("memory",)), f"table_disk_curve_{os.getpid()}")
    group.mkdir()
    (group / ("memory.max" if second else "memory.limit_in_bytes")).write_text(str(int(limit)))
    return group


def main():
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    keys_of_slot = int(given.gb * 1e9 / ROW_BYTES / SLOTS)
    samples = write_data(given.folder / "train.raw", keys_of_slot, given.steps, given.alpha, given.batch)
    program = given.bin.resolve() / "huge_ctr"
    print(f"{'in memory':>10} {'budget GB':>10} {'k samples/s':>12} {'rows from disk':>15} {'waits for it':>13} {'filling':>9} {'peak GB':>8}")
    for share in map(float, given.shares.split(",")):
        run = f"run_{share:g}"
        (given.folder / "config.json").write_text(json.dumps(config(samples, share, keys_of_slot * SLOTS * ROW_BYTES, given.batch, given.device), indent=1))
        command = [program, "--train", "config.json", "--run-dir", run] + (["--device", "cpu"] if given.device == "cpu" else [])
        rows_in_memory = keys_of_slot * SLOTS * ROW_BYTES * min(share, 100) / 100
        group = cgroup_of(rows_in_memory + given.beyond * 1e9) if given.beyond is not None else None
        enter = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if group else None
        process = subprocess.Popen(command, cwd=given.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=enter)
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if group:
            group.rmdir()
        if status != 0:
            sys.exit(said)
        lines = [json.loads(line) for line in (given.folder / run / "metrics.jsonl").read_text().splitlines()]
        trained = [line for line in lines if line["kind"] == "train"]
        last = [line for line in trained if line["iteration"] > samples // given.batch - given.steps // 2]
        filled = [line for line in trained if line["iteration"] <= samples // given.batch - given.steps]
        mean = lambda some, name, missing: sum(line.get(name, missing) for line in some) / max(1, len(some))
        print(f"{share:>8g} % {rows_in_memory / 1e9:>10.2f} "
              f"{mean(last, 'samples_per_second', 0) / 1e3:>12.1f} {100 * mean(last, 'rows_from_disk', 0):>13.1f} % "
              f"{100 * mean(last, 'disk_wait', 0):>11.0f} % {mean(filled, 'samples_per_second', 0) / 1e3:>9.1f} "
              f"{usage.ru_maxrss * 1024 / 1e9:>8.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
