"""Like TorchRec's EmbeddingBagCollection and EmbeddingCollection, with an integrated optimizer."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch

from .._embedding import FeatureOptions
from ..errors import UsageError
from .configs import first_rows, pooling_of, table_of
from .jagged import JaggedTensor
from .keyed import KeyedTensor
from .tables import Tables, split_words
from .varying import of_each_sample, padded_offsets, varies


def known_bounds(features: Any) -> Any:
    """Where the keys of each feature begin. None: the host does not know, and the caller must read it from the tensor.
    During compilation the result is None, because values on the host would become constants of the graph.
    """
    known = getattr(features, "offset_per_key_or_none", None)
    return None if known is None or torch.compiler.is_compiling() else known()


class TableView:
    """A table of a collection, in place of TorchRec's nn.EmbeddingBag."""

    def __init__(self, owner: Tables, name: str):
        self._owner, self._name = owner, name

    @property
    def weight(self) -> torch.Tensor:
        """A copy of the table's rows."""
        return self._owner.weight_of(self._name)

    @property
    def embedding_dim(self) -> int:
        return self._owner._table(self._name).dim

    @property
    def num_embeddings(self) -> int:
        return self._owner._table(self._name).rows or self._owner.rows(self._name)


class _Collection(Tables):
    _folder = ""  # prefix of names in state_dict
    # the feature names of the last batch, and the index of each of this module's features in these names
    _known_lists: Optional[tuple] = None

    def _make(self, tables: Sequence[Any], weighted: bool, device: Any, words: dict) -> None:
        of_set, of_table, of_optimizer = split_words(words)
        if of_table:
            raise UsageError(f"'{next(iter(of_table))}' is an option of a table: pass it to the config of the table")
        if not tables:
            raise UsageError("the collection has no tables")
        names = [one.name for one in tables]
        if len(set(names)) < len(names):
            raise ValueError(f"Duplicate table name {next(n for n in names if names.count(n) > 1)}")
        options = [table_of(one) for one in tables]
        features = [
            FeatureOptions(f"{one.name}/{feature}", one.name, self._pooling(one), weighted)
            for one in tables
            for feature in one.feature_names
        ]
        taken = ("optimizer", "lr", "update", "distributed", "average")
        Tables.__init__(
            self,
            options,
            features,
            device,
            torch.float32,
            set_words=of_set,
            **{word: of_optimizer.pop(word) for word in taken if word in of_optimizer},
            optimizer_words=of_optimizer,
        )
        self._configs, self._device = list(tables), torch.device(device or self.anchor.device)
        self._feature_names = [feature for one in tables for feature in one.feature_names]
        # If several tables have a feature of the same name, the names of the tables are appended.
        self._names = [
            f"{feature}@{one.name}" if self._feature_names.count(feature) > 1 else feature
            for one in tables
            for feature in one.feature_names
        ]
        self._make_first_rows()

    def _pooling(self, config: Any) -> str:
        return "none"

    def _make_first_rows(self) -> None:
        if self.anchor.device.type == "meta":
            return
        for config in self._configs:
            values = first_rows(config)
            if values is not None:
                self.set_rows(config.name, torch.arange(len(values)), values)

    def reset_parameters(self) -> None:
        """Discards all rows: new rows get initial values."""
        self._engine.close()
        self._first_rows = {}
        self._make_first_rows()

    @property
    def device(self) -> torch.device:
        return self._device

    def _state_name(self, table: str) -> str:
        return f"{self._folder}.{table}.weight"

    def _views(self) -> dict[str, TableView]:
        return {name: TableView(self, name) for name in self.table_names()}

    def _lists(self, features: Any, varying: bool) -> tuple:
        """Returns the index of each feature of the module in `features`, the offsets of the lists, and the number of
        samples. `varying`: varies(features).
        """
        keys = features.keys()
        known = None if torch.compiler.is_compiling() else self._known_lists
        if known is not None and keys == known[0]:
            at = known[1]
        else:
            keys = list(keys)
            missing = [name for name in self._feature_names if name not in keys]
            if missing:
                raise UsageError(f"feature '{missing[0]}' is not among the keys: {', '.join(keys)}")
            at = [keys.index(name) for name in self._feature_names]
            if not torch.compiler.is_compiling():
                self._known_lists = (keys, at)
        if varying:
            return at, *padded_offsets(features)
        return at, features.offsets(), features.stride()

    def _weights(self, features: Any) -> Optional[torch.Tensor]:
        return features.weights() if self._features[0].weighted else None

    def prefetch(self, features: Any) -> None:
        """Finds the rows of a batch in advance. The later forward pass must get the same tensors. On a GPU this runs
        concurrently with the current stream.
        """
        at, offsets, samples = self._lists(features, varies(features))
        weights = self._weights(features)
        self._engine.prefetch(features.values(), offsets, weights, at, known_bounds(features), samples)


class EmbeddingBagCollection(_Collection):
    """One pooled vector per feature and sample: KeyedJaggedTensor (ours or TorchRec's) to KeyedTensor."""

    _folder = "embedding_bags"

    def __init__(self, tables: Sequence[Any], is_weighted: bool = False, device: Any = None, **words: Any):
        self._make(tables, is_weighted, device, words)
        self._is_weighted = is_weighted
        dims = {one.name: one.embedding_dim for one in tables}
        self._lengths_per_embedding = [dims[one.name] for one in tables for _ in one.feature_names]

    def _pooling(self, config: Any) -> str:
        pooling = pooling_of(config)
        if pooling not in ("sum", "mean", "sqrtn", "max"):
            raise UsageError(
                f"table '{config.name}' has pooling {pooling}, expected sum, mean, sqrtn or max; "
                "an EmbeddingCollection returns the vector of each key"
            )
        return pooling

    @property
    def embedding_bags(self) -> dict[str, TableView]:
        return self._views()

    def embedding_bag_configs(self) -> list:
        return self._configs

    def is_weighted(self) -> bool:
        return self._is_weighted

    def forward(self, features: Any) -> KeyedTensor:
        varying = varies(features)
        at, offsets, samples = self._lists(features, varying)
        weights, bounds = self._weights(features), known_bounds(features)
        out = self._vectors(features.values(), offsets, weights, at, bounds, samples)
        if varying:
            out = of_each_sample(features, self._feature_names, out, self._lengths_per_embedding)
        return KeyedTensor(self._names, self._lengths_per_embedding, out)


class EmbeddingCollection(_Collection):
    """One vector per key: KeyedJaggedTensor to a dict of JaggedTensors by feature."""

    _folder = "embeddings"

    def __init__(self, tables: Sequence[Any], device: Any = None, need_indices: bool = False, **words: Any):
        dims = {one.embedding_dim for one in tables}
        if len(dims) > 1:
            raise ValueError(
                f"All tables in a EmbeddingCollection are required to have same embedding dimension: {dims}"
            )
        self._make(tables, False, device, words)
        self._need_indices, self._dim = need_indices, dims.pop()

    @property
    def embeddings(self) -> dict[str, TableView]:
        return self._views()

    def embedding_configs(self) -> list:
        return self._configs

    def embedding_dim(self) -> int:
        return self._dim

    def embedding_names_by_table(self) -> list[list[str]]:
        names = iter(self._names)
        return [[next(names) for _ in one.feature_names] for one in self._configs]

    def need_indices(self) -> bool:
        return self._need_indices

    def forward(self, features: Any) -> dict[str, JaggedTensor]:
        varying = varies(features)
        at, offsets, samples = self._lists(features, varying)
        # `vectors` has the order of the module's features, so `features` is brought into the same order
        if at != list(range(len(features.keys()))):
            features = features.permute(at)
            at = list(range(len(at)))
            offsets, samples = padded_offsets(features) if varying else (features.offsets(), samples)
        out = self._vectors(features.values(), offsets, None, at, known_bounds(features), samples)
        counts, lengths = features.length_per_key(), features.lengths()
        if varying:
            lengths = torch.split(lengths, features.stride_per_key())
        else:
            lengths = lengths.view(-1, samples) if samples else lengths.view(len(at), 0)
        vectors, keys = torch.split(out, counts), torch.split(features.values(), counts)
        return {
            name: JaggedTensor(vectors[i], keys[i] if self._need_indices else None, lengths[i])
            for i, name in enumerate(self._names)
        }
