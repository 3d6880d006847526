"""A table with explicit calls, for programs that read, write and remove rows themselves."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import torch

from .. import _embedding_rows as rows_of_tables
from .._embedding import FeatureOptions, TableOptions
from .tables import Tables, split_words


class DynamicEmbedding(Tables):
    """A table with arbitrary 64-bit keys. forward() trains it like an Embedding; the other calls access its rows."""

    def __init__(
        self,
        embedding_dim: int,
        name: str = "rows",
        device: Any = None,
        initial_value: Optional[float] = None,
        **words: Any,
    ):
        of_set, of_table, of_optimizer = split_words(dict(words))
        of_table.setdefault("marks_changes", 1)
        if initial_value is not None:
            of_table.setdefault("initial", "uniform")
            of_table["initial_value"] = initial_value
        if "initial" in of_optimizer:
            of_table["initial"] = of_optimizer.pop("initial")
        taken = ("optimizer", "lr", "update", "distributed", "average")
        super().__init__(
            [TableOptions(name, embedding_dim, words=of_table)],
            [FeatureOptions(name, name, "none")],
            device,
            torch.float32,
            set_words=of_set,
            **{word: of_optimizer.pop(word) for word in taken if word in of_optimizer},
            optimizer_words=of_optimizer,
        )
        self.name, self.embedding_dim = name, embedding_dim
        self._erased: list[torch.Tensor] = []  # keys removed since the last note_exported()

    def prefetch(self, keys: torch.Tensor) -> None:
        """Finds the rows of a batch in advance. The later forward pass must get the same tensor."""
        self._engine.prefetch(keys.reshape(-1), None, None, [0], None, keys.numel())

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """Looks up keys [...] and returns vectors [..., embedding_dim]. During training a new key gets a row."""
        flat = keys.reshape(-1)
        return self._vectors(flat, None, None, [0], None, flat.numel()).view(*keys.shape, self.embedding_dim)

    def lookup(self, keys: torch.Tensor) -> torch.Tensor:
        """The current vectors of keys, without training; 0 for a key without a row."""
        with torch.no_grad():
            before, self.training = self.training, False
            try:
                return self.forward(keys)
            finally:
                self.training = before

    def upsert(self, keys: torch.Tensor, vectors: Optional[torch.Tensor] = None) -> None:
        """Adds rows, or overwrites the vectors of existing rows. Without vectors, new keys get initial values."""
        self._engine.set()
        self.set_rows(self.name, keys, vectors)

    def erase(self, keys: torch.Tensor) -> int:
        """Removes rows; every rank passes the same keys. Returns the number of removed rows."""
        keys = keys.detach().reshape(-1).to("cpu", torch.int64)
        gone = rows_of_tables.remove_rows(self._engine.settle(), self.name, keys.numpy())
        self._erased.append(keys)
        return gone

    def size(self) -> int:
        return self.rows(self.name)

    def export(self, table: Optional[str] = None, states: bool = False) -> tuple:
        return super().export(self.name if table is None else table, states)

    def deltas(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Changes since the last call, as (keys, vectors, removed keys): rows that may have changed, and keys whose
        rows were removed or evicted. Collective; with several ranks rank 0 gets all changes, and other ranks none.
        """
        of = self._engine.settle()
        if self._engine.ranks > 1 and torch.distributed.get_rank() > 0:
            self._erased = []  # all ranks have the same removed keys, and rank 0 returns them
        found = rows_of_tables.export_rows(of, self.name, changed=True)
        gone = np.concatenate([rows_of_tables.removed_keys(of, self.name), *(one.numpy() for one in self._erased)])
        gone = np.setdiff1d(gone, found.keys)
        rows_of_tables.note_exported(of)
        self._erased = []
        return torch.from_numpy(found.keys), torch.from_numpy(found.vectors), torch.from_numpy(gone)

    def _state_name(self, table: str) -> str:
        return f"{table}.weight"
