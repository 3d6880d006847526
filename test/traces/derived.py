"""Generates the data of a trace from its seed: samples, dense weights, embedding rows.

test/integration/traces_test.cc uses the same formulas, so the data are equal. Every value is exact in float32.
"""
import numpy as np

STREAMS = ("label", "dense", "nnz", "key", "weight")  # followed by one stream per embedding


def mix64(x):
    """The finalizer of SplitMix64, applied to an array of uint64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Derived:
    def __init__(self, derived, config):
        self.seed, self.samples = derived["seed"], derived["samples"]
        self.vocabulary, self.bound = derived["vocabulary"], derived["bound"]
        self.data = config["layers"][0]
        self.embeddings = [layer for layer in config["layers"] if "sparse_embedding_hparam" in layer]

    def unit(self, stream, index):
        """A uniform number in [0, 1) with 24 bits: a function of (seed, stream, index)."""
        key = mix64(np.array([100 * self.seed + stream], dtype=np.uint64))
        return (mix64(key + np.asarray(index, dtype=np.uint64)) >> np.uint64(40)).astype(np.float64) / 2**24

    def initial(self, stream, count):
        """Values uniform on [-bound, bound)."""
        return (2 * self.unit(stream, np.arange(count)) - 1) * self.bound

    def weights(self, first, count):
        """Weights `first`, `first` + 1, ... in the order of the dense model file."""
        return self.initial(STREAMS.index("weight"), first + count)[first:]

    def dense(self):
        """[samples, dense_dim]"""
        dim = self.data["dense"]["dense_dim"]
        return self.unit(STREAMS.index("dense"), np.arange(self.samples * dim)).reshape(-1, dim)

    def labels(self):
        """Labels [samples, label_dim]. Label k is likely to be 1 if dense value k is large."""
        dim = self.data["label"]["label_dim"]
        noise = self.unit(STREAMS.index("label"), np.arange(self.samples * dim)).reshape(-1, dim)
        return (self.dense()[:, :dim] + noise > 1).astype(np.float64)

    def bag(self, sample, slot, max_nnz):
        """The keys of one slot: possibly none, possibly repeated. Slots are numbered over all sparse inputs."""
        place = sample * sum(sparse["slot_num"] for sparse in self.data["sparse"]) + slot
        nnz = int(self.unit(STREAMS.index("nnz"), [place])[0] * (max_nnz + 1))
        u = self.unit(STREAMS.index("key"), 8 * place + np.arange(nnz))
        return (u * u * self.vocabulary).astype(np.int64)

    def table(self, number):
        """The initial table of embedding `number`: row `key` if distributed, row (slot, key) if localized."""
        layer = self.embeddings[number]
        slots = next(s["slot_num"] for s in self.data["sparse"] if s["top"] == layer["bottom"])
        dim = layer["sparse_embedding_hparam"]["embedding_vec_size"]
        rows = self.vocabulary * (slots if is_localized(layer) else 1)
        return self.initial(len(STREAMS) + number, rows * dim).reshape(rows, dim)


def is_localized(embedding):
    return embedding["type"].startswith("Localized")
