"""Like torch.nn.EmbeddingBag and torch.nn.Embedding, with tables of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import torch

from .._embedding import FeatureOptions, TableOptions
from ..errors import UsageError
from .tables import Tables, format_of, split_words


def _refuse(max_norm: Any, scale_grad_by_freq: bool) -> None:
    if max_norm is not None:
        raise UsageError("max_norm is not supported, because it changes rows during a look-up: clip rows after a step")
    if scale_grad_by_freq:
        raise UsageError("scale_grad_by_freq is not supported: divide the gradients of a key by its count in the loss")


@dataclass
class _Rows:
    """The properties of a table, named like the attributes of torch.nn.Embedding."""

    num_embeddings: Optional[int]
    embedding_dim: int
    padding_idx: Optional[int]
    weight: Any  # initial values [num_embeddings, embedding_dim], or None


class _OneTable(Tables):
    """A module with one table and one feature."""

    def _make(self, rows: _Rows, pooling: str, weighted: bool, device: Any, dtype: Any, words: dict) -> None:
        num_embeddings, embedding_dim, padding_idx = rows.num_embeddings, rows.embedding_dim, rows.padding_idx
        of_set, of_table, of_optimizer = split_words(words)
        name = of_optimizer.pop("name", "weight")
        of_table["format"], dtype = format_of(dtype)
        policies = ("most_rows", "when_full", "min_count", "admit_probability", "expire_after")
        grows = num_embeddings is None or any(of_table.get(word) for word in policies)
        if num_embeddings is not None and grows:
            of_table.setdefault("most_rows", num_embeddings)
        if padding_idx is not None and num_embeddings is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise UsageError(f"padding_idx is {padding_idx}, expected {-num_embeddings} to {num_embeddings - 1}")
            padding_idx %= num_embeddings
        of_table.setdefault("initial", "normal")
        of_table.setdefault("initial_value", of_optimizer.pop("initial_value", 1.0))
        table = TableOptions(name, embedding_dim, 0 if grows else num_embeddings, words=of_table)
        taken = ("optimizer", "lr", "update", "distributed", "average")
        Tables.__init__(
            self,
            [table],
            [FeatureOptions(name, name, pooling, weighted)],
            device,
            dtype,
            set_words=of_set,
            **{word: of_optimizer.pop(word) for word in taken if word in of_optimizer},
            optimizer_words=of_optimizer,
        )
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = None, 2.0, False
        self._engine.padding = padding_idx
        if rows.weight is not None:
            if num_embeddings is not None and tuple(rows.weight.shape) != (num_embeddings, embedding_dim):
                raise UsageError(f"_weight has shape {tuple(rows.weight.shape)}, not {(num_embeddings, embedding_dim)}")
            self.set_rows(name, torch.arange(len(rows.weight)), rows.weight)
        elif padding_idx is not None and self.anchor.device.type != "meta":
            self.set_rows(name, torch.tensor([padding_idx]), torch.zeros(1, embedding_dim))

    def _connect(self) -> None:
        super()._connect()
        self._engine.padding = getattr(self, "padding_idx", None)

    @property
    def weight(self) -> torch.Tensor:
        """A copy of all rows, by ascending keys."""
        return self.weight_of(self.table_names()[0])

    @classmethod
    def _of_rows(cls, embeddings: torch.Tensor, freeze: bool, **words: Any) -> Any:
        if embeddings.dim() != 2:
            raise UsageError(f"embeddings have shape {tuple(embeddings.shape)}, expected two dimensions")
        rows, dim = embeddings.shape
        made = cls(rows, dim, _weight=embeddings, device=embeddings.device, dtype=embeddings.dtype, **words)
        made.anchor.requires_grad_(not freeze)
        return made


class EmbeddingBag(_OneTable):
    """Like torch.nn.EmbeddingBag. Without num_embeddings, or with a policy, it accepts any key."""

    def __init__(
        self,
        num_embeddings: Optional[int],
        embedding_dim: int,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Optional[torch.Tensor] = None,
        include_last_offset: bool = False,
        padding_idx: Optional[int] = None,
        device: Any = None,
        dtype: Any = None,
        **words: Any,
    ):
        _refuse(max_norm, scale_grad_by_freq)
        if mode not in ("sum", "mean", "max", "sqrtn"):
            raise UsageError(f"mode is '{mode}', expected 'sum', 'mean', 'max' or 'sqrtn'")
        rows = _Rows(num_embeddings, embedding_dim, padding_idx, _weight)
        self._make(rows, mode, mode == "sum", device, dtype, dict(words))
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset

    def forward(
        self,
        input: torch.Tensor,
        offsets: Optional[torch.Tensor] = None,
        per_sample_weights: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        values, offsets, weights, samples = self._bags(input, offsets, per_sample_weights)
        return self._vectors(values, offsets, weights, [0], [0, values.numel()], samples)

    def prefetch(
        self,
        input: torch.Tensor,
        offsets: Optional[torch.Tensor] = None,
        per_sample_weights: Optional[torch.Tensor] = None,
    ) -> None:
        """Finds the rows of a batch in advance. The later forward pass must get the same tensors."""
        values, offsets, weights, samples = self._bags(input, offsets, per_sample_weights)
        self._engine.prefetch(values, offsets, weights, [0], [0, values.numel()], samples)

    def _bags(self, input: torch.Tensor, offsets: Any, weights: Any) -> tuple:
        if weights is not None:
            if self.mode != "sum":
                raise NotImplementedError(f"per_sample_weights need mode 'sum', but mode is '{self.mode}'")
            if weights.shape != input.shape:
                raise ValueError(
                    f"per_sample_weights have shape {tuple(weights.shape)}, but input has shape {tuple(input.shape)}"
                )
            weights = weights.reshape(-1)
        if input.dim() == 2:
            if offsets is not None:
                raise ValueError("input with two dimensions needs no offsets: each row is a bag")
            bags, length = input.shape
            offsets = torch.arange(bags + 1, device=input.device) * length
            return input.reshape(-1), offsets, weights, bags
        if input.dim() != 1 or offsets is None or offsets.dim() != 1:
            raise ValueError("expected input with two dimensions, or input and offsets with one dimension each")
        if not self.include_last_offset:
            offsets = torch.cat([offsets, offsets.new_full((1,), input.numel())])
        elif offsets.numel() == 0:
            raise ValueError("include_last_offset needs one offset or more")
        return input, offsets, weights, offsets.numel() - 1

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: Optional[int] = None,
        **words: Any,
    ) -> "EmbeddingBag":
        _refuse(max_norm, scale_grad_by_freq)
        return cls._of_rows(
            embeddings, freeze, mode=mode, include_last_offset=include_last_offset, padding_idx=padding_idx, **words
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode='{self.mode}'"


class Embedding(_OneTable):
    """Like torch.nn.Embedding. Without num_embeddings, or with a policy, it accepts any key."""

    def __init__(
        self,
        num_embeddings: Optional[int],
        embedding_dim: int,
        padding_idx: Optional[int] = None,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Optional[torch.Tensor] = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
        **words: Any,
    ):
        _refuse(max_norm, scale_grad_by_freq)
        rows = _Rows(num_embeddings, embedding_dim, padding_idx, _weight)
        self._make(rows, "none", False, device, dtype, dict(words))
        self.sparse = sparse
        self.anchor.requires_grad_(not _freeze)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        flat = input.reshape(-1)
        return self._vectors(flat, None, None, [0], None, flat.numel()).view(*input.shape, self.embedding_dim)

    def prefetch(self, input: torch.Tensor) -> None:
        """Finds the rows of a batch in advance. The later forward pass must get the same tensor."""
        self._engine.prefetch(input.reshape(-1), None, None, [0], None, input.numel())

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        padding_idx: Optional[int] = None,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        **words: Any,
    ) -> "Embedding":
        _refuse(max_norm, scale_grad_by_freq)
        return cls._of_rows(embeddings, freeze, padding_idx=padding_idx, **words)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
