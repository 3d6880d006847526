"""Table configs like TorchRec's, with options for growth, admission, eviction and expiry."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import torch

from .._embedding import TableOptions
from ..errors import UsageError


class PoolingType(enum.Enum):
    SUM = "SUM"
    MEAN = "MEAN"
    NONE = "NONE"
    SQRTN = "SQRTN"
    MAX = "MAX"


class DataType(enum.Enum):
    FP32 = "FP32"
    FP16 = "FP16"
    BF16 = "BF16"


_FORMATS = {"FP32": "f32", "FP16": "f16", "BF16": "bf16"}
_WORDS = ("when_full", "min_count", "admit_probability", "expire_after", "marks_changes", "placement", "whole_on")


@dataclass
class EmbeddingConfig:
    """A table and its features. Without num_embeddings every key gets a row. With a policy, num_embeddings limits the
    number of rows.
    """

    num_embeddings: Optional[int] = None
    embedding_dim: int = 0
    name: str = ""
    data_type: Any = DataType.FP32
    feature_names: list = field(default_factory=list)
    weight_init_max: Optional[float] = None
    weight_init_min: Optional[float] = None
    num_embeddings_post_pruning: Optional[int] = None
    init_fn: Optional[Callable] = None
    need_pos: bool = False
    input_dim: Optional[int] = None
    total_num_buckets: Optional[int] = None
    use_virtual_table: bool = False
    virtual_table_eviction_policy: Any = None
    enable_embedding_update: bool = True
    when_full: Optional[str] = None
    min_count: Optional[int] = None
    admit_probability: Optional[float] = None
    expire_after: Optional[int] = None
    marks_changes: bool = False
    placement: Optional[str] = None
    whole_on: Optional[int] = None

    def num_features(self) -> int:
        return len(self.feature_names)


@dataclass
class EmbeddingBagConfig(EmbeddingConfig):
    pooling: Any = PoolingType.SUM


def plain(value: Any) -> str:
    """The name, in upper case, of a member of an enum of this module or of TorchRec."""
    return str(getattr(value, "name", value)).upper()


def pooling_of(config: Any) -> str:
    return plain(getattr(config, "pooling", "NONE")).lower()


def table_of(config: Any) -> TableOptions:
    """Converts a config, of this module or of TorchRec, to table options. Raises UsageError."""
    name, dim, rows = config.name, config.embedding_dim, config.num_embeddings
    if not name or dim is None or dim < 1:
        raise UsageError(
            f"a table needs a name and an embedding_dim of at least 1, found name '{name}' and embedding_dim {dim}"
        )
    if not config.feature_names:
        raise UsageError(f"table '{name}' has no feature_names")
    kind = plain(getattr(config, "data_type", "FP32"))
    if kind not in _FORMATS:
        raise UsageError(f"table '{name}' has data_type {kind}, expected one of {', '.join(_FORMATS)}")
    words = {"format": _FORMATS[kind]}
    words.update({word: getattr(config, word) for word in _WORDS if getattr(config, word, None)})
    policies = ("when_full", "min_count", "admit_probability", "expire_after")
    if rows is not None and any(word in words for word in policies):
        words["most_rows"], rows = rows, None
    low, high = getattr(config, "weight_init_min", None), getattr(config, "weight_init_max", None)
    if high is not None and low == -high:
        words.update(initial="uniform", initial_value=high)
    elif rows is not None:
        words["initial"] = "by_rows"
    elif (low, high) != (None, None) or getattr(config, "init_fn", None) is not None:
        raise UsageError(
            f"table '{name}' grows, so new rows must be uniform in [-x, x]: set weight_init_max to x and "
            "weight_init_min to -x, without init_fn"
        )
    return TableOptions(name, dim, rows or 0, words=words)


def first_rows(config: Any) -> Optional[torch.Tensor]:
    """The initial rows that a config specifies; None: the library initializes rows."""
    rows, low, high = config.num_embeddings, getattr(config, "weight_init_min", None), config.weight_init_max
    init = getattr(config, "init_fn", None)
    owner = getattr(init, "__self__", None)  # TorchRec fills in its default initializer, which equals the library's
    if init is not None and owner is not config:
        values = torch.empty(rows, config.embedding_dim)
        with torch.no_grad():
            init(values)
        return values
    if (low is None and high is None) or low == (None if high is None else -high):
        return None
    bound = rows**-0.5
    low, high = -bound if low is None else low, bound if high is None else high
    return torch.empty(rows, config.embedding_dim).uniform_(low, high)
