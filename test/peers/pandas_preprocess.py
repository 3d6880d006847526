#!/usr/bin/env python3
"""Does the work of `preprocess` on Criteo rows with pandas and numpy, as a baseline for measurements.

    pandas_preprocess.py ROWS.tsv OUT_FOLDER        as preprocess --criteo ROWS.tsv --out OUT_FOLDER --min-count 6 --log --normalize minmax
                                                    --cross C1xC2 C3xC4 --holdout 0.1
"""
import os
import sys
import time

import numpy as np
import pandas as pd

INTEGERS = [f"I{i}" for i in range(1, 14)]
CATEGORIES = [f"C{i}" for i in range(1, 27)]
CROSSES = [("C1", "C2"), ("C3", "C4")]


def mix64(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def codes_of(column):
    """Returns 2 + the value of each hexadecimal text, and 0 for a missing text. Converts each distinct text once."""
    places, texts = pd.factorize(column)
    values = np.array([2 + int(text, 16) for text in texts] + [0], dtype=np.uint64)
    return values[places]


def ids_of(codes, train, min_count):
    values, counts = np.unique(codes[:train], return_counts=True)
    keep = (counts >= min_count) & (values != 0)
    values, counts = values[keep], counts[keep]
    order = np.lexsort((values, -counts))
    table = pd.Series(np.arange(2, 2 + len(order)), index=values[order])
    ids = pd.Series(codes).map(table).fillna(1).to_numpy(np.int64, copy=True)
    ids[codes == 0] = 0
    return ids, 2 + len(order)


def write_norm(folder, stem, label, dense, slots):
    """`slots`: for each slot an array [rows, keys]."""
    fields = [("length", "<i4"), ("label", "<f4"), ("dense", "<f4", (dense.shape[1],))]
    for i, keys in enumerate(slots):
        fields += [(f"n{i}", "<i4"), (f"k{i}", "<u4", (keys.shape[1],))]
    records = np.zeros(len(label), dtype=fields + [("sum", "u1")])
    records["length"], records["label"], records["dense"] = records.dtype.itemsize - 5, label, dense
    for i, keys in enumerate(slots):
        records[f"n{i}"], records[f"k{i}"] = keys.shape[1], keys
    payload = records.view(np.uint8).reshape(len(records), -1)[:, 4:-1]
    records["sum"] = payload.sum(axis=1, dtype=np.uint64).astype(np.uint8)
    header = np.array([1, len(label), 1, dense.shape[1], len(slots), 0, 0, 0], dtype="<i8").tobytes()
    with open(os.path.join(folder, f"{stem}.0.data"), "wb") as file:
        file.write(np.int32(64).tobytes() + header + bytes([sum(header) & 255]))
        records.tofile(file)
    with open(os.path.join(folder, f"{stem}.txt"), "w") as file:
        file.write(f"1\n{stem}.0.data\n")


def main():
    path, folder = sys.argv[1:]
    start = time.time()
    types = {"label": np.float32} | {name: np.float64 for name in INTEGERS} | {name: str for name in CATEGORIES}
    rows = pd.read_csv(path, sep="\t", names=list(types), dtype=types)
    train = len(rows) - int(np.floor(len(rows) * 0.1 + 0.5))
    dense = np.log1p(np.maximum(rows[INTEGERS].fillna(0).to_numpy(), 0))
    least, most = dense[:train].min(axis=0), dense[:train].max(axis=0)
    dense = ((dense - least) * (1 / (most - least))).astype(np.float32)
    codes = {name: codes_of(rows[name]) for name in CATEGORIES}
    with np.errstate(over="ignore"):
        crosses = [np.maximum(mix64(codes[a] ^ mix64(codes[b])), np.uint64(2)) for a, b in CROSSES]
    keys, offset = [], 0
    for column in crosses + [codes[name] for name in CATEGORIES]:
        ids, size = ids_of(column, train, 6)
        keys.append(ids + offset)
        offset += size
    slots = [np.stack(keys[:2], axis=1)] + [column[:, None] for column in keys[2:]]
    os.makedirs(folder, exist_ok=True)
    label = rows["label"].to_numpy()
    write_norm(folder, "train", label[:train], dense[:train], [keys[:train] for keys in slots])
    write_norm(folder, "val", label[train:], dense[train:], [keys[train:] for keys in slots])
    print(f"{len(rows)} rows in {time.time() - start:.2f} s")


if __name__ == "__main__":
    main()
