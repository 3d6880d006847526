#!/usr/bin/env python3
"""Fits an L2-regularized logistic regression to the features of Norm files: the score that a linear model reaches.

Every key of the chosen slots is one feature. The penalty is chosen with the training rows alone: models are fitted on
the first 8/9 and evaluated on the last 1/9. Then the model with the best penalty is fitted again on all training rows.
Needs numpy, scipy and scikit-learn.

    yardstick.py TRAIN_LIST EVAL_LIST [--slots 0] [--key-bytes 8]
"""
import argparse
import os
import struct

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score


def records(list_path, key_bytes):
    """Yields (label, dense, [keys of each slot]) for every record in the listed files."""
    lines = open(list_path).read().split("\n")
    key_type = np.dtype("<i8" if key_bytes == 8 else "<u4")
    for path in lines[1 : 1 + int(lines[0])]:
        if not os.path.exists(path):
            path = os.path.join(os.path.dirname(list_path), path)
        data = open(path, "rb").read()
        summed = struct.unpack_from("<i", data, 0)[0] == 64 and data[68] == sum(data[4:68]) % 256
        at = 4 if summed else 0
        _, count, label_dim, dense_dim, slots = struct.unpack_from("<5q", data, at)
        at += 65 if summed else 64
        for _ in range(count):
            at += 4 if summed else 0
            values = np.frombuffer(data, "<f4", label_dim + dense_dim, at)
            at += 4 * (label_dim + dense_dim)
            keys = []
            for _ in range(slots):
                nnz = struct.unpack_from("<i", data, at)[0]
                keys.append(np.frombuffer(data, key_type, nnz, at + 4))
                at += 4 + nnz * key_bytes
            at += 1 if summed else 0
            yield values[0], values[label_dim:], keys


def matrix(list_path, key_bytes, slots, columns=None):
    """Returns labels, one-hot rows, and the column of each (slot, key). `columns`: the columns of an earlier call; keys
    without a column are ignored."""
    grow = columns is None
    columns = {} if grow else columns
    labels, indices, starts = [], [], [0]
    for label, _, keys in records(list_path, key_bytes):
        labels.append(label)
        for slot in slots:
            for key in keys[slot]:
                column = columns.setdefault((slot, int(key)), len(columns)) if grow else columns.get((slot, int(key)))
                if column is not None:
                    indices.append(column)
        starts.append(len(indices))
    rows = sp.csr_matrix((np.ones(len(indices), np.float64), indices, starts), shape=(len(labels), len(columns)))
    return np.array(labels), rows, columns


def fit(x, y, strength):
    model = LogisticRegression(C=strength, solver="lbfgs", tol=1e-6, max_iter=5000)
    model.fit(x, y)
    if model.n_iter_[0] >= 5000:
        raise SystemExit(f"no convergence at C = {strength}")
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("train_list")
    parser.add_argument("eval_list")
    parser.add_argument("--slots", type=int, nargs="+", default=[0])
    parser.add_argument("--key-bytes", type=int, choices=(4, 8), default=8)
    arguments = parser.parse_args()
    y, x, columns = matrix(arguments.train_list, arguments.key_bytes, arguments.slots)
    y_eval, x_eval, _ = matrix(arguments.eval_list, arguments.key_bytes, arguments.slots, columns)
    inner = len(y) * 8 // 9
    print(f"{len(y)} training rows, {len(y_eval)} evaluation rows, {len(columns)} features")
    best = None
    for strength in (0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5):
        auc = roc_auc_score(y[inner:], fit(x[:inner], y[:inner], strength).decision_function(x[inner:]))
        print(f"  C = {strength}: inner AUC {auc:.5f}", flush=True)
        if best is None or auc > best[0]:
            best = (auc, strength)
    model = fit(x, y, best[1])
    print(f"C = {best[1]}: AUC {roc_auc_score(y_eval, model.decision_function(x_eval)):.5f}, "
          f"log loss {log_loss(y_eval, model.predict_proba(x_eval)[:, 1]):.5f}")


if __name__ == "__main__":
    main()
