"""The tables of compare_torchrec.py: those of huge_ctr.torch and FBGEMM's TBE, with batches of keys."""

import sys

import huge_ctr.torch as hct
import torch

MIX = 0x1E3779B97F4A7C15  # hashed tables: key = row * MIX modulo 2^64


class Shape:
    """Tables of (rows, dim), with `hotness` keys per bag."""

    def __init__(self, name, tables, samples, hotness=1, power=0.0, most=None):
        self.name, self.tables, self.samples, self.hotness, self.power = name, tables, samples, hotness, power
        self.most = most  # keys are drawn from this many rows

    @property
    def keys(self):
        return len(self.tables) * self.samples * self.hotness

    def batch(self, seed, device):
        """Row numbers [tables, samples * hotness]."""
        draw = torch.Generator(device=device).manual_seed(seed)
        parts = []
        for rows, _ in self.tables:
            rows = min(rows, self.most or rows)
            u = torch.rand(self.samples * self.hotness, generator=draw, device=device, dtype=torch.float64)
            if self.power:
                e = 1 - self.power
                u = (1 + u * (float(rows) ** e - 1)) ** (1 / e) / rows
            parts.append((u * rows).long().clamp(0, rows - 1))
        return torch.stack(parts)


class Ours:
    def __init__(self, shape, optimizer, device, hashed, config_words=None, **words):
        """`config_words`: arguments of each table's config. `words`: arguments of the collection."""
        self.hashed = hashed
        self.names = [f"f{i}" for i in range(len(shape.tables))]
        tables = [
            hct.EmbeddingBagConfig(
                name=f"t{i}",
                embedding_dim=dim,
                num_embeddings=None if hashed else rows,
                feature_names=[self.names[i]],
                **(config_words or {}),
            )
            for i, (rows, dim) in enumerate(shape.tables)
        ]
        self.bags = hct.EmbeddingBagCollection(tables, device=device, optimizer=optimizer, lr=0.01, **words)
        self.anchor, self.device = self.bags.anchor, device
        self.use(shape)

    def use(self, shape):
        """Prepares for batches of `shape`. It must have the same tables as the shape of the constructor."""
        self.shape = shape
        lists = len(shape.tables) * shape.samples
        self.lengths = torch.full((lists,), shape.hotness, dtype=torch.int64, device=self.device)
        self.offsets = torch.arange(lists + 1, device=self.device) * shape.hotness

    def prepare(self, numbers):
        values = numbers * MIX if self.hashed else numbers
        keys = hct.KeyedJaggedTensor(self.names, values.flatten(), lengths=self.lengths, offsets=self.offsets)
        keys._length_per_key = [values.shape[1]] * len(self.names)
        return keys

    def step(self, keys, gradient):
        self.anchor.grad = None  # as zero_grad() does
        out = self.bags(keys).values()
        out.backward(gradient)
        return out

    def check(self, device):
        """Compares the vectors of the smallest table with torch.nn.functional, unless copying its rows takes long."""
        shape = self.shape
        i = min(range(len(shape.tables)), key=lambda one: shape.tables[one][0])
        if shape.tables[i][0] * shape.tables[i][1] > 1 << 25:
            return
        numbers, column = shape.batch(1, device), sum(dim for _, dim in shape.tables[:i])
        rows = self.bags.weight_of(f"t{i}")
        found = self.bags(self.prepare(numbers)).values().detach()[:, column : column + shape.tables[i][1]]
        want = torch.nn.functional.embedding_bag(numbers[i].view(shape.samples, -1), rows, mode="sum")
        if not torch.allclose(found, want, atol=1e-5):
            sys.exit(f"{shape.name}: vectors of table {i} differ by {float((found - want).abs().max())}")


class Tbe:
    """FBGEMM's table-batched embeddings, which update rows in backward."""

    def __init__(self, shape, optimizer, device, cached=None):
        """`cached`: the part of the rows that GPU memory caches; None: all rows are in GPU memory."""
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            EmbeddingLocation,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        kinds = {
            "sgd": EmbOptimType.EXACT_SGD,
            "row_wise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
            "sparse_adam": EmbOptimType.ADAM,
        }
        cuda = device != "cpu"
        on_gpu = EmbeddingLocation.DEVICE if cached is None else EmbeddingLocation.MANAGED_CACHING
        place = on_gpu if cuda else EmbeddingLocation.HOST
        compute = ComputeDevice.CUDA if cuda else ComputeDevice.CPU
        self.bags = SplitTableBatchedEmbeddingBagsCodegen(
            [(rows, max(4, dim + -dim % 4), place, compute) for rows, dim in shape.tables],
            optimizer=kinds[optimizer],
            learning_rate=0.01,
            device=torch.device(device if not cuda else torch.cuda.current_device()),
            **({"cache_load_factor": cached} if cached is not None and cuda else {}),
        )
        self.device = device
        self.use(shape)

    def use(self, shape):
        self.shape = shape
        self.offsets = torch.arange(len(shape.tables) * shape.samples + 1, device=self.device) * shape.hotness

    def prepare(self, numbers):
        return numbers.flatten()

    def step(self, keys, gradient):
        out = self.bags(keys, self.offsets)
        out.backward(gradient if gradient.shape == out.shape else torch.ones_like(out))
        return out
