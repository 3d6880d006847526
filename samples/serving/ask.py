#!/usr/bin/env python3
"""Asks a service for the scores of a CSV file's rows: ask.py URL FILE. Each column is sent as a tensor of texts."""

import csv
import json
import sys
import urllib.request


def main():
    url, path = sys.argv[1:3]
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    inputs = [{"name": name, "datatype": "BYTES", "shape": [len(rows)], "data": [row[name] for row in rows]}
              for name in rows[0]]
    with urllib.request.urlopen(url + "/infer", json.dumps({"inputs": inputs}).encode()) as answer:
        scores = json.load(answer)["outputs"][0]["data"]
    print(f"{len(scores)} rows, mean score {sum(scores) / len(scores):.9f}")


if __name__ == "__main__":
    main()
