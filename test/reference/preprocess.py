#!/usr/bin/env python3
"""Computes the expected output of `preprocess` row by row in plain Python, and compares it with the actual output.

    preprocess.py make ROWS FILE                  random rows as Criteo's click logs have them
    preprocess.py compare RESULT FILE... [--eval-input FILE...] [options of preprocess]
"""
import argparse
import csv
import json
import math
import os
import random
import struct
import sys
from collections import Counter

MASK = (1 << 64) - 1


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def text_code(text, category):
    """The hash of a text in category number `category`, as in the Csv reader."""
    data = text.encode()
    code = mix64((mix64(category) + len(data)) & MASK)
    for at in range(0, len(data), 8):
        code = mix64(code ^ int.from_bytes(data[at : at + 8], "little"))
    return code + 2 if code < 2 else code


def make(rows, path):
    draw = random.Random(7)
    with open(path, "w") as out:
        for _ in range(rows):
            fields = [str(int(draw.random() < 0.3))]
            fields += ["" if draw.random() < 0.2 else str(int(draw.lognormvariate(2, 2)) - 2) for _ in range(13)]
            fields += ["" if draw.random() < 0.1 else f"{mix64(int(draw.paretovariate(0.4)) % 5000 * 100 + c) >> 32:08x}" for c in range(26)]
            out.write("\t".join(fields) + "\n")


class Row:
    def __init__(self, index, labels, dense, codes, split):
        self.index, self.labels, self.dense, self.codes, self.split = index, labels, dense, codes, split


def number(text):
    return float(text) if text else None


def rows_of(files, options):
    """All rows, with the categories as lists of codes in slot order."""
    def limited(code):
        return 2 + (code - 2) % options.modulo if options.modulo and code >= 2 else code

    index = 0
    for path in files:
        with open(path, newline="") as lines:
            if options.criteo:
                table = (dict(zip(options.columns, line.rstrip("\n").split("\t"))) for line in lines)
            else:
                table = csv.DictReader(lines)
            for row in table:
                of = (lambda text, _: 2 + int(text, 16)) if options.criteo else text_code
                single = {name: limited(of(row[name], place)) if row[name] else 0 for place, name in enumerate(options.categories)}
                codes = [[max(mix64(single[a] ^ mix64(single[b])), 2)] for a, b in options.pairs]
                codes += [[single[name]] for name in options.categories]
                first = len(options.categories)
                codes += [[limited(text_code(part, first + i)) for part in row[name].split("|") if part] for i, name in enumerate(options.lists)]
                split = float(row[options.split[0]]) if options.split else 0
                yield Row(index, [float(row[name]) for name in options.label], [number(row[name]) for name in options.dense], codes, split)
                index += 1


def divide(rows, options):
    """Returns (training rows, evaluation rows)."""
    if options.split:
        trains = lambda row: row.split < options.split[1]
    elif options.random:
        trains = lambda row: (mix64(mix64(options.seed) ^ row.index) >> 11) * 2.0**-53 >= options.holdout
    else:
        first = len(rows) - int(math.floor(len(rows) * options.holdout + 0.5))
        trains = lambda row: row.index < first
    return [row for row in rows if trains(row)], [row for row in rows if not trains(row)]


def ids_of(train, slot, options):
    """Returns a map from code to id, and the number of ids."""
    if options.passes == 1 and not options.criteo and not options.modulo and slot >= len(options.pairs):
        return (lambda code: (code * options.range) >> 64), options.range
    if options.passes == 1:
        return (lambda code: code if code < 2 else 2 + mix64(code) % (options.range - 2)), options.range
    counts = Counter(code for row in train for code in row.codes[slot] if code)
    kept = sorted((code for code in counts if counts[code] >= options.min_count), key=lambda code: (-counts[code], code))
    table = {code: 2 + i for i, code in enumerate(kept)}
    return (lambda code: table.get(code, 1) if code else 0), 2 + len(kept)


def scaled_with(train, column, options):
    log = (lambda v: math.log1p(max(v, 0))) if options.log else (lambda v: v)
    there = [row.dense[column] for row in train if row.dense[column] is not None]
    fill = sum(there) / len(there) if options.fill == "mean" else float(options.fill)
    value = lambda v: log(fill if v is None else v)
    if options.normalize == "none":
        return value
    values = [value(row.dense[column]) for row in train]
    least, mean = min(values), sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    shift, width = (least, max(values) - least) if options.normalize == "minmax" else (mean, deviation)
    return lambda v: (value(v) - shift) / width if width else 0.0


def read_norm(folder, stem, options):
    """Yields (label and dense values, [keys of each slot]) for every record."""
    with open(os.path.join(folder, stem + ".txt")) as text:
        files = text.read().split("\n")[1:-1]
    width, kind = options.key_bits // 8, "I" if options.key_bits == 32 else "q"
    for name in files:
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        at, framed = 0, options.check == "sum"

        def block(at, size):
            if framed:
                size = struct.unpack_from("<i", data, at)[0]
                assert data[at + 4 + size] == sum(data[at + 4 : at + 4 + size]) % 256, "check sum"
                return at + 4, at + 5 + size
            return at, at + size

        header, at = block(0, 64)
        _, count, labels, dense, slots, *_ = struct.unpack_from("<8q", data, header)
        for _ in range(count):
            p, after = block(at, 0)
            numbers = struct.unpack_from(f"<{labels + dense}f", data, p)
            p += 4 * (labels + dense)
            keys = []
            for _ in range(slots):
                nnz = struct.unpack_from("<i", data, p)[0]
                keys.append(list(struct.unpack_from(f"<{nnz}{kind}", data, p + 4)))
                p += 4 + nnz * width
            yield numbers, keys
            at = after if framed else p
        assert at == len(data), "bytes behind the last record"


def read_raw(folder, stem, options, numbers, slots):
    kind = "i" if options.integers else "f"
    with open(os.path.join(folder, stem + ".bin"), "rb") as file:
        for record in struct.iter_unpack(f"<{numbers}{kind}{slots}i", file.read()):
            yield record[:numbers], [[key] for key in record[numbers:]]


def compare(options):
    rows = list(rows_of(options.files, options))
    train, held = divide(rows, options)
    held += list(rows_of(options.eval_input, options))
    slots, pairs = len(train[0].codes), len(options.pairs)
    ids, sizes = zip(*(ids_of(train, slot, options) for slot in range(slots)))
    raw = options.format == "Raw"
    offsets = [0 if raw else sum(sizes[:slot]) for slot in range(slots)]
    if options.integers:
        scaled = [lambda v: max(v or 0, 0)] * len(options.dense)
    else:
        scaled = [scaled_with(train, column, options) for column in range(len(options.dense))]
    with open(os.path.join(options.result, "preprocess.json")) as text:
        told = json.load(text)
    assert [slot["size"] for slot in told["slots"]] == list(sizes), "slot sizes"
    assert (told["train"]["rows"], told["eval"]["rows"]) == (len(train), len(held)), "numbers of rows"
    numbers = len(options.label) + len(options.dense)
    for stem, expected in (("train", train), ("val", held)):
        if not expected:
            continue
        found = read_raw(options.result, stem, options, numbers, slots) if raw else read_norm(options.result, stem, options)
        count = 0
        for row, (values, keys) in zip(expected, found):
            want = row.labels + [scale(v) for scale, v in zip(scaled, row.dense)]
            for a, b in zip(want, values):
                if abs(a - b) > 2e-6 * max(1, abs(a)):
                    sys.exit(f"{stem} row {row.index}: numbers {values}, expected {want}")
            wanted = [[offsets[slot] + ids[slot](code) for code in codes] for slot, codes in enumerate(row.codes)]
            if pairs and not raw:
                wanted = [sum(wanted[:pairs], [])] + wanted[pairs:]
            if keys != wanted:
                sys.exit(f"{stem} row {row.index}: keys {keys}, expected {wanted}")
            count += 1
        assert count == len(expected) and next(iter(found), None) is None, f"{stem}: {count} records"
    print(f"{len(train)} and {len(held)} rows as expected")


def main():
    if sys.argv[1] == "make":
        return make(int(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser()
    parser.add_argument("compare")
    parser.add_argument("result")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--csv", dest="criteo", action="store_false")
    parser.add_argument("--eval-input", nargs="*", default=[])
    for name in ("label", "dense", "categories", "lists"):
        parser.add_argument("--" + name, type=lambda text: text.split(","), default=[])
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--range", type=int, default=1000000)
    parser.add_argument("--min-count", type=int, default=1)
    parser.add_argument("--modulo", type=int, default=0)
    parser.add_argument("--cross", nargs="*", default=[])
    parser.add_argument("--fill", default="0")
    parser.add_argument("--log", action="store_true")
    parser.add_argument("--normalize", default="none")
    parser.add_argument("--holdout", type=float, default=0)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split", default="")
    parser.add_argument("--format", default="Norm")
    parser.add_argument("--integers", action="store_true")
    parser.add_argument("--key-bits", type=int, default=32)
    parser.add_argument("--check", default="sum")
    options = parser.parse_args()
    if options.criteo:
        options.label, options.dense = ["label"], [f"I{i}" for i in range(1, 14)]
        options.categories = [f"C{i}" for i in range(1, 27)]
        options.columns = options.label + options.dense + options.categories
    options.pairs = [cross.split("x") for cross in options.cross]
    if options.split:
        name, value = options.split.split("=")
        options.split = (name, float(value))
    compare(options)


if __name__ == "__main__":
    main()
