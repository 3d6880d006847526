#!/usr/bin/env python3
"""Records the losses of each traced model over 50 steps of PyTorch in float64, and writes them to the end of <model>.json.

Usage: record.py [MODEL...]. Needs torch and numpy. The test that reads the traces does not need them. The part of a
trace before "dense_parameters" is written by hand: the config, and the source of data and initial weights.
"""
import json
import pathlib
import sys

import numpy as np
import torch

import models
from derived import Derived, is_localized

STEPS = 50


class Weights:
    """The dense weights in model file order. The first step creates the tensors; later steps reuse them."""

    def __init__(self, derived):
        self.derived, self.tensors, self.next, self.count = derived, [], 0, 0

    def __call__(self, *shape):
        if self.next == len(self.tensors):
            size = int(np.prod(shape))
            values = self.derived.weights(self.count, size).reshape(shape)
            self.tensors.append(torch.tensor(values, requires_grad=True))
            self.count += size
        tensor = self.tensors[self.next]
        assert tensor.shape == shape
        self.next += 1
        return tensor


class Sgd:
    def update(self, w, g, rate, step, rows):
        w[rows] -= rate * g[rows]


class Adam:
    def __init__(self, clause):
        self.beta1, self.beta2, self.epsilon = (clause["adam_hparam"][name] for name in ("beta1", "beta2", "epsilon"))
        self.states = {}

    def update(self, w, g, rate, step, rows):
        m, v = self.states.setdefault(id(w), (torch.zeros_like(w), torch.zeros_like(w)))
        m[rows] = self.beta1 * m[rows] + (1 - self.beta1) * g[rows]
        v[rows] = self.beta2 * v[rows] + (1 - self.beta2) * g[rows] ** 2
        alpha = rate * (1 - self.beta2**step) ** 0.5 / (1 - self.beta1**step)
        w[rows] -= alpha * m[rows] / (v[rows].sqrt() + self.epsilon)


def optimizer(clause):
    return Adam(clause) if clause["type"] == "Adam" else Sgd()


def hyper(clause):
    return clause["adam_hparam" if clause["type"] == "Adam" else "sgd_hparam"]


def scheduled(h, n):
    rate, start = h["learning_rate"], h.get("decay_start", 0)
    if n <= h.get("warmup_steps", 1):
        return rate * n / h.get("warmup_steps", 1)
    if start == 0 or n <= start:
        return rate
    left = start + h["decay_steps"] - n
    return max(h["end_lr"], rate * (left / h["decay_steps"]) ** h["decay_power"]) if left >= 0 else h["end_lr"]


class Table:
    """An embedding: pools bags of keys into vectors, and updates rows."""

    def __init__(self, derived, number, first_slot, sparse, top_clause):
        self.layer = derived.embeddings[number]
        self.derived, self.first_slot, self.sparse = derived, first_slot, sparse
        self.rows = torch.tensor(derived.table(number), requires_grad=True)
        own = self.layer.get("optimizer", top_clause)
        self.optimizer, self.is_global = optimizer(own), own.get("update_type", "Local") == "Global"
        self.rate_factor = hyper(own)["learning_rate"] / hyper(top_clause)["learning_rate"]

    def forward(self, samples):
        self.touched, bags, sizes = [], [], []
        for i, sample in enumerate(samples):
            for slot in range(self.sparse["slot_num"]):
                keys = self.derived.bag(sample, self.first_slot + slot, self.sparse["max_nnz"])
                self.touched += list(keys + self.derived.vocabulary * slot if is_localized(self.layer) else keys)
                bags += [i * self.sparse["slot_num"] + slot] * len(keys)
                sizes.append(len(keys))
        out = torch.zeros(len(sizes), self.rows.shape[1], dtype=torch.float64)
        out = out.index_add(0, torch.tensor(bags, dtype=torch.int64), self.rows[torch.tensor(self.touched, dtype=torch.int64)])
        if self.layer["sparse_embedding_hparam"]["combiner"] in (1, "mean"):
            out = out / torch.tensor(sizes).clamp(min=1)[:, None]
        return out.reshape(len(samples), self.sparse["slot_num"], -1)

    def update(self, gradient, rate, step):
        rows = slice(None) if self.is_global else torch.tensor(sorted(set(map(int, self.touched))))
        self.optimizer.update(self.rows, gradient, self.rate_factor * rate, step, rows)


def tables_of(derived, clause):
    tables = {}
    for number, layer in enumerate(derived.embeddings):
        first_slot = 0
        for sparse in derived.data["sparse"]:
            if sparse["top"] == layer["bottom"]:
                tables[layer["top"]] = Table(derived, number, first_slot, sparse, clause)
            first_slot += sparse["slot_num"]
    return tables


def record(trace, model):
    """Returns the loss of each step before its update, and the number of dense weights."""
    config = trace["config"]
    derived, clause, size = Derived(trace["derived"], config), config["optimizer"], config["solver"]["batchsize"]
    weights, tables, dense_optimizer = Weights(derived), tables_of(derived, clause), optimizer(clause)
    dense, labels = torch.tensor(derived.dense()), torch.tensor(derived.labels())
    losses = []
    for step in range(1, STEPS + 1):
        samples = np.arange((step - 1) * size, step * size) % derived.samples
        batch = {"dense": dense[samples], "label": labels[samples]}
        batch.update({name: table.forward(samples) for name, table in tables.items()})
        weights.next = 0
        loss, l2 = model(weights, batch)
        loss = loss + l2 / (2 * size) * sum((w**2).sum() for w in weights.tensors)
        losses.append(loss.item())
        learned = weights.tensors + [table.rows for table in tables.values()]
        gradients = torch.autograd.grad(loss, learned)
        rate = scheduled(hyper(clause), step)
        with torch.no_grad():
            for w, g in zip(weights.tensors, gradients):
                dense_optimizer.update(w, g, rate, step, slice(None))
            for table, g in zip(tables.values(), gradients[len(weights.tensors) :]):
                table.update(g, rate, step)
    return losses, weights.count


def main():
    here = pathlib.Path(__file__).resolve().parent
    for name in sys.argv[1:] or sorted(path.stem for path in here.glob("*.json")):
        path = here / f"{name}.json"
        text = path.read_text()
        losses, parameters = record(json.loads(text), getattr(models, name))
        lines = [", ".join(f"{loss:.12g}" for loss in losses[i : i + 10]) for i in range(0, STEPS, 10)]
        recorded = ",\n    ".join(lines)
        by_hand = text[: text.index('  "dense_parameters"')]
        path.write_text(f'{by_hand}  "dense_parameters": {parameters},\n  "losses": [\n    {recorded}\n  ]\n}}\n')
        print(f"{name}: {losses[0]:.6f} to {losses[-1]:.6f}, {parameters} dense weights")


if __name__ == "__main__":
    main()
