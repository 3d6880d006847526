#!/usr/bin/env python3
"""Checks that the Parquet files of the Spark job contain the samples of the Norm files of `preprocess`, in any order.

    spark.py PARQUET_FOLDER NORM_FOLDER
"""
import argparse
import json
import os
import sys

from pyspark.sql import SparkSession

from preprocess import read_norm


def samples_of_norm(folder, stem, told):
    offsets = [slot["offset"] for slot in told["slots"]]
    for numbers, keys in read_norm(folder, stem, argparse.Namespace(key_bits=32, check="sum")):
        yield tuple(key[0] - offset for key, offset in zip(keys, offsets)), numbers


def main():
    parquet, norm = sys.argv[1:]
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    with open(os.path.join(norm, "preprocess.json")) as text:
        told = json.load(text)
    with open(os.path.join(parquet, "preprocess.json")) as text:
        assert json.load(text)["slot_size_array"] == told["slot_size_array"], "slot sizes"
    for stem in ("train", "val"):
        with open(os.path.join(parquet, stem, "_metadata.json")) as text:
            metadata = json.load(text)
        names = [entry["col_name"] for part in ("labels", "conts", "cats") for entry in metadata[part]]
        assert [entry["index"] for part in ("labels", "conts", "cats") for entry in metadata[part]] == list(range(40))
        # read the files, not the folder, because Spark would read _metadata.json as Parquet
        files = [os.path.join(parquet, stem, entry["file_name"]) for entry in metadata["file_stats"]]
        for file, entry in zip(files, metadata["file_stats"]):
            rows = spark.read.parquet(file).count()
            assert rows == entry["num_rows"], f"{file} has {rows} rows"
        frame = spark.read.parquet(*files)
        assert frame.columns == names and [kind for _, kind in frame.dtypes] == ["float"] * 14 + ["bigint"] * 26, "columns"
        found = sorted((tuple(row[14:]), tuple(row[:14])) for row in frame.collect())
        expected = sorted(samples_of_norm(norm, stem, told))
        assert len(found) == len(expected), f"{stem}: {len(found)} rows"
        for (keys, numbers), (want_keys, want_numbers) in zip(found, expected):
            if keys != want_keys or any(abs(a - b) > 2e-6 * max(1, abs(b)) for a, b in zip(numbers, want_numbers)):
                sys.exit(f"{stem}: {keys} {numbers}, expected {want_keys} {want_numbers}")
        print(f"{stem}: {len(found)} rows as expected")


if __name__ == "__main__":
    main()
