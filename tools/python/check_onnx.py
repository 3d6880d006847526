#!/usr/bin/env python3
"""Scores rows with an exported ONNX model and compares the scores with those of huge_ctr.

    huge_ctr --export onnx runs/first --out served --rows 10000
    check_onnx.py served

Needs NumPy and onnxruntime. Exit code 1 when a score differs by more than --tolerance.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

LARGEST_ROWS_ONE_BY_ONE = 256


def largest_difference(session, rows, batch):
    """Scores rows in batches. Returns the largest difference of a score, over all outputs and rows, and the number of
    scored rows.
    """
    inputs, outputs = [i.name for i in session.get_inputs()], [o.name for o in session.get_outputs()]
    count = len(rows[outputs[0]])
    if batch == 1:
        count = min(count, LARGEST_ROWS_ONE_BY_ONE)
    largest = 0.0
    for begin in range(0, count, batch):
        some = slice(begin, min(begin + batch, count))
        scores = session.run(outputs, {name: rows[name][some] for name in inputs})
        for name, score in zip(outputs, scores):
            difference = np.abs(score.astype(np.float64) - rows[name][some])
            largest = max(largest, float(np.max(difference, initial=0.0)))
            if not np.all(np.isfinite(score)):
                largest = float("inf")
    return largest, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="the folder that huge_ctr --export onnx --rows N has written")
    parser.add_argument("--batch", type=int, action="append", help="rows per call; repeatable; default: 1 and 4096")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    options = parser.parse_args()
    for name in ("model.onnx", "rows.npz"):
        if not (options.folder / name).is_file():
            sys.exit(f"error: there is no '{options.folder / name}': huge_ctr --export onnx ... --rows N writes it")
    try:
        import onnxruntime
    except ImportError:
        sys.exit("error: this needs onnxruntime: pip install onnxruntime")
    rows = dict(np.load(options.folder / "rows.npz"))
    session = onnxruntime.InferenceSession(str(options.folder / "model.onnx"), providers=["CPUExecutionProvider"])
    worst = 0.0
    for batch in options.batch or [1, 4096]:
        largest, count = largest_difference(session, rows, batch)
        print(f"batch {batch}: {count} rows, largest difference {largest:.3g}")
        worst = max(worst, largest)
    if not worst <= options.tolerance:
        sys.exit(f"error: scores differ by more than {options.tolerance:g}")


if __name__ == "__main__":
    main()
