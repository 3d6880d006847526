#!/usr/bin/env python3
"""Measures PyTorch's EmbeddingBag with a sparse update on the CPU, to compare with `bench rows --device cpu`. Needs PyTorch."""
import argparse
import statistics
import time

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--threads", type=int, default=torch.get_num_threads())
parser.add_argument("--samples", type=int, default=2048)
parser.add_argument("--slots", type=int, default=26)
parser.add_argument("--times", type=int, default=20)
parser.add_argument("--tables", nargs="*", default=["20:16", "18:128"], help="each table as log2 of its rows, a colon, and its dim")
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.manual_seed(1)


def milliseconds(body):
    times = []
    for i in range(options.times + 3):
        start = time.perf_counter()
        body(i)
        times.append(time.perf_counter() - start)
    return statistics.median(times[3:]) * 1e3


for table in options.tables:
    log_rows, dim = map(int, table.split(":"))
    rows, keys = 1 << log_rows, options.samples * options.slots
    batches = [torch.randint(0, rows, (keys,)) for _ in range(4)]
    offsets = torch.arange(keys)
    gradient = torch.randn(keys, dim)
    bag = torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True)
    where = f"2^{log_rows} rows, dim {dim}, {keys} keys, {options.threads} threads"
    with torch.no_grad():
        print(f"{'lookup + sum':28} {where:48} {milliseconds(lambda i: bag(batches[i % 4], offsets)):8.3f} ms")
    for name, optimizer in (("SGD", torch.optim.SGD), ("AdaGrad", torch.optim.Adagrad), ("Adam", torch.optim.SparseAdam)):
        rule = optimizer(bag.parameters(), lr=0.01)

        def step(i):
            rule.zero_grad()
            bag(batches[i % 4], offsets).backward(gradient)
            rule.step()

        print(f"{'forward, backward, ' + name:28} {where:48} {milliseconds(step):8.3f} ms")
