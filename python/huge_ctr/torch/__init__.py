"""Embedding tables of any size for PyTorch models, with dynamic growth and their own optimizers: docs/pytorch.md.

    import huge_ctr.torch as hct
    tables = [hct.EmbeddingBagConfig(name="user", embedding_dim=64, feature_names=["user"])]
    bags = hct.EmbeddingBagCollection(tables=tables, optimizer="adam", lr=1e-3)
    bags(keys).values().sum().backward()          # the rows are updated

Class names and constructors follow torch.nn and TorchRec. TorchRec need not be installed.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("huge_ctr.torch needs PyTorch, which is not installed: pip install torch") from error

from .checkpoints import load_checkpoint, save_checkpoint
from .collection import EmbeddingBagCollection, EmbeddingCollection
from .configs import DataType, EmbeddingBagConfig, EmbeddingConfig, PoolingType
from .dynamic import DynamicEmbedding
from .files import load_dynamicemb, read_safetensors, save_dynamicemb, save_for_store, save_safetensors, to_torch
from .jagged import JaggedTensor, KeyedJaggedTensor
from .keyed import KeyedTensor
from .loading import Prefetching
from .modules import Embedding, EmbeddingBag
from .optimizer import Optimizer, optimizer
from .replacing import replace
from .tables import Tables, tables_of

__all__ = [
    "DataType",
    "DynamicEmbedding",
    "Embedding",
    "EmbeddingBag",
    "EmbeddingBagCollection",
    "EmbeddingBagConfig",
    "EmbeddingCollection",
    "EmbeddingConfig",
    "JaggedTensor",
    "KeyedJaggedTensor",
    "KeyedTensor",
    "Optimizer",
    "PoolingType",
    "Prefetching",
    "Tables",
    "load_checkpoint",
    "load_dynamicemb",
    "optimizer",
    "read_safetensors",
    "replace",
    "save_checkpoint",
    "save_dynamicemb",
    "save_for_store",
    "save_safetensors",
    "tables_of",
    "to_torch",
]
