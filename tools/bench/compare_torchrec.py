#!/usr/bin/env python3
"""Times embedding steps in PyTorch: huge_ctr.torch, FBGEMM's TBE and torch.nn, on the same keys.

    tools/bench/compare_torchrec.py                       # this machine's GPU, or its CPU with smaller shapes
    tools/bench/compare_torchrec.py --shapes dlrm --optimizers sgd adam --batches 2048

A step is forward, backward and update, with a given gradient. Prints the median step time of each library in
milliseconds, one line per shape and optimizer, with the number of keys per batch. Shapes:

rows      1.7 M uniform keys, 2^24 rows, one table, no pooling
dlrm      26 tables of DLRM, power-law keys (exponent 1.05), one key per bag
bags      20 tables with 10 keys per bag, dim 64
mixed     100 tables, dims 1 to 256
new       26 tables; half of the keys of each batch are new

Columns: `numbers` uses row numbers as keys; `hashed` uses arbitrary 64-bit keys in growing tables. TBE needs
fbgemm_gpu, which fits one version of PyTorch; its CPU kernels have no Adam. A case that cannot be measured prints "-",
with the reason below the table. Before `numbers` is measured, its vectors are compared with those of
torch.nn.functional.
"""

import argparse
import statistics
import sys
import time

import huge_ctr.torch as hct
import torch

MIX = 0x1E3779B97F4A7C15  # hashed tables: key = row * MIX modulo 2^64
TORCH = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}


class Shape:
    """Tables of (rows, dim), with `hotness` keys per bag."""

    def __init__(self, name, tables, samples, hotness=1, power=0.0, new=0.0):
        self.name, self.tables, self.samples = name, tables, samples
        self.hotness, self.power, self.new = hotness, power, new

    @property
    def keys(self):
        return len(self.tables) * self.samples * self.hotness

    def batch(self, seed, device):
        """Row numbers [tables, samples * hotness]."""
        draw = torch.Generator(device=device).manual_seed(seed)
        parts = []
        for rows, _ in self.tables:
            u = torch.rand(self.samples * self.hotness, generator=draw, device=device, dtype=torch.float64)
            if self.power:
                e = 1 - self.power
                u = (1 + u * (float(rows) ** e - 1)) ** (1 / e) / rows
            parts.append((u * rows).long().clamp(0, rows - 1))
        return torch.stack(parts)


def shapes(names, batches, device):
    small = device == "cpu"
    rows = 1 << (16 if small else 24)
    dlrm = [(min(rows, r), 128 if not small else 16) for r in DLRM_ROWS]
    made = []
    for name in names:
        if name == "rows":
            for dim in (16, 128):
                made.append(Shape(f"rows dim {dim}", [(rows, dim)], 53_248 if small else 1_703_936))
        for samples in batches or ([2048] if small else [65_536, 16_384, 2048]):
            if name == "dlrm":
                made.append(Shape(f"dlrm {samples}", dlrm, samples, power=1.05))
            if name == "bags":
                made.append(Shape(f"bags {samples}", [(rows >> 4, 64)] * 20, samples // (8 if small else 1), 10))
            if name == "mixed":
                dims = [1 + 255 * i // 99 for i in range(100)]
                made.append(Shape(f"mixed {samples}", [(rows >> 6, dim) for dim in dims], samples, power=1.05))
            if name == "new":
                made.append(Shape(f"new {samples}", dlrm, samples, power=1.05, new=0.5))
    return made


DLRM_ROWS = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155, 4, 976, 14,
    39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip


class Ours:
    def __init__(self, shape, optimizer, device, hashed):
        self.shape, self.hashed = shape, hashed
        self.names = [f"f{i}" for i in range(len(shape.tables))]
        tables = [
            hct.EmbeddingBagConfig(
                name=f"t{i}",
                embedding_dim=dim,
                num_embeddings=None if hashed else rows,
                feature_names=[self.names[i]],
            )
            for i, (rows, dim) in enumerate(shape.tables)
        ]
        self.bags = hct.EmbeddingBagCollection(tables, device=device, optimizer=optimizer, lr=0.01)
        if not hashed:
            self.rows = [self.bags.weight_of(f"t{i}") for i in range(min(2, len(tables)))]
        lengths = torch.full((len(tables) * shape.samples,), shape.hotness, dtype=torch.int64, device=device)
        self.offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        self.lengths = lengths

    def prepare(self, numbers, seed):
        values = numbers
        if self.hashed:
            values = values * MIX
            if self.shape.new:
                fresh = torch.rand(values.shape, device=values.device) < self.shape.new
                own = torch.arange(values.numel(), device=values.device).view(values.shape)
                values = torch.where(fresh, (own + (seed + 1) * values.numel() + (1 << 40)) * MIX, values)
        keys = hct.KeyedJaggedTensor(self.names, values.flatten(), lengths=self.lengths, offsets=self.offsets)
        keys._length_per_key = [values.shape[1]] * len(self.names)
        return keys

    def step(self, keys, gradient):
        out = self.bags(keys).values()
        out.backward(gradient)
        return out


class Nn:
    """torch.nn.EmbeddingBag with sparse gradients, one module per table."""

    def __init__(self, shape, optimizer, device):
        self.shape = shape
        self.bags = [torch.nn.EmbeddingBag(r, d, mode="sum", sparse=True, device=device) for r, d in shape.tables]
        self.optimizer = TORCH[optimizer]([p for bag in self.bags for p in bag.parameters()], lr=0.01)

    def prepare(self, numbers, seed):
        return numbers.view(len(self.bags), self.shape.samples, self.shape.hotness)

    def step(self, keys, gradient):
        self.optimizer.zero_grad()
        out = torch.cat([bag(one) for bag, one in zip(self.bags, keys)], 1)
        out.backward(gradient)
        self.optimizer.step()
        return out


class Tbe:
    """FBGEMM's table-batched embeddings, which update rows in backward."""

    def __init__(self, shape, optimizer, device):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            EmbeddingLocation,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        kinds = {"sgd": EmbOptimType.EXACT_SGD, "adagrad": EmbOptimType.EXACT_ADAGRAD, "adam": EmbOptimType.ADAM}
        cuda = device != "cpu"
        place = EmbeddingLocation.DEVICE if cuda else EmbeddingLocation.HOST
        compute = ComputeDevice.CUDA if cuda else ComputeDevice.CPU
        self.shape = shape
        self.bags = SplitTableBatchedEmbeddingBagsCodegen(
            [(rows, dim, place, compute) for rows, dim in shape.tables], optimizer=kinds[optimizer], learning_rate=0.01
        )
        count = len(shape.tables) * shape.samples
        self.offsets = torch.arange(count + 1, device=device) * shape.hotness

    def prepare(self, numbers, seed):
        return numbers.flatten()

    def step(self, keys, gradient):
        out = self.bags(keys, self.offsets)
        out.backward(gradient)
        return out


def check(peer, shape, device):
    """Compares the vectors of the first tables with torch.nn.functional."""
    numbers = shape.batch(1, device)
    out = peer.bags(peer.prepare(numbers, 0)).values().detach()
    column = 0
    for i, rows in enumerate(peer.rows):
        want = torch.nn.functional.embedding_bag(numbers[i].view(shape.samples, -1), rows, mode="sum")
        found = out[:, column : column + rows.shape[1]]
        if not torch.allclose(found, want, atol=1e-5):
            sys.exit(f"{shape.name}: vectors of table {i} differ by {float((found - want).abs().max())}")
        column += rows.shape[1]
    peer.rows = []


def measure(peer, shape, device, steps):
    width = sum(dim for _, dim in shape.tables)
    gradient = torch.randn(shape.samples, width, device=device) / shape.samples
    batches = [peer.prepare(shape.batch(seed, device), seed) for seed in range(steps + 3)]
    times = []
    for keys in batches:
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        peer.step(keys, gradient)
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[3:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=["rows", "dlrm", "bags", "mixed", "new"])
    parser.add_argument("--optimizers", nargs="+", default=["sgd", "adagrad", "adam"], choices=TORCH)
    parser.add_argument("--batches", nargs="+", type=int, default=None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--peers", nargs="+", default=["numbers", "hashed", "tbe", "nn"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    makers = {
        "numbers": lambda shape, optimizer: Ours(shape, optimizer, options.device, False),
        "hashed": lambda shape, optimizer: Ours(shape, optimizer, options.device, True),
        "tbe": lambda shape, optimizer: Tbe(shape, optimizer, options.device),
        "nn": lambda shape, optimizer: Nn(shape, optimizer, options.device),
    }
    where = torch.cuda.get_device_name() if options.device != "cpu" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{where}, PyTorch {torch.__version__}, median of {options.steps} steps, ms")
    print("| shape | keys | optimizer | " + " | ".join(options.peers) + " |")
    print("|---|--:|---|" + "--:|" * len(options.peers))
    why = {}
    for shape in shapes(options.shapes, options.batches, options.device):
        for optimizer in options.optimizers:
            cells = []
            for name in options.peers:
                peer = None
                if shape.new and name != "hashed":
                    cells.append("")
                    continue
                reason = None
                try:
                    peer = makers[name](shape, optimizer)
                except (ImportError, NotImplementedError, AssertionError, RuntimeError) as error:
                    reason = error  # the library is not installed, or does not support the case
                if peer is not None and name == "numbers":
                    check(peer, shape, options.device)  # wrong numbers end the comparison
                if peer is not None:
                    try:
                        cells.append(f"{measure(peer, shape, options.device, options.steps):.3f}")
                    except (NotImplementedError, RuntimeError) as error:
                        reason = error
                if reason is not None:
                    lines = str(reason).strip().splitlines()
                    why[name, lines[-1][:150] if lines else repr(reason)] = shape.name
                    cells.append("-")
                peer = None
            print(f"| {shape.name} | {shape.keys} | {optimizer} | " + " | ".join(cells) + " |", flush=True)
    for (name, text), where in why.items():
        print(f"{name}, {where}: {text}")


if __name__ == "__main__":
    main()
