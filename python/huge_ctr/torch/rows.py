"""Row access of a module with tables: reads, writes, state_dict, files and pickles."""

from __future__ import annotations

import copy
import os
import tempfile
from typing import Any

import numpy as np
import torch

from .. import _embedding_rows as rows_of_tables
from .._embedding import TableOptions
from ..errors import UsageError


class RowsOfTables(torch.nn.Module):
    """The base class of Tables that reads and writes rows."""

    _state_elsewhere = False  # state_dict() omits the rows, because save() writes them
    anchor: torch.nn.Parameter

    def table_names(self) -> list[str]:
        return [table.name for table in self._tables]

    def _table(self, name: str) -> TableOptions:
        found = [table for table in self._tables if table.name == name]
        if not found:
            raise UsageError(f"there is no table '{name}'; tables are {', '.join(self.table_names())}")
        return found[0]

    def rows(self, table: str) -> int:
        """The number of rows of a table."""
        self._table(table)
        self._engine.settle()
        return self._engine.set().rows(table)

    def figures(self, table: str) -> dict[str, int]:
        """Rows and bytes by kind of memory, and the policy's counts of evicted, expired and not admitted keys."""
        self._table(table)
        return rows_of_tables.figures(self._engine.settle(), table)

    def export(self, table: str, states: bool = False) -> tuple:
        """Returns (keys, vectors), or (keys, vectors, states), as CPU tensors by ascending keys; with several ranks, on
        rank 0.
        """
        self._table(table)
        found = self._engine.export(table, states)
        keys, vectors = torch.from_numpy(found.keys), torch.from_numpy(found.vectors)
        return (keys, vectors, [torch.from_numpy(one) for one in found.states]) if states else (keys, vectors)

    def weight_of(self, table: str) -> torch.Tensor:
        """A copy of the rows of a table, by ascending keys."""
        if self.anchor.device.type == "meta":
            one = self._table(table)
            return torch.empty(one.rows, one.dim, device="meta", dtype=self.output_dtype)
        return self.export(table)[1].to(self.anchor.device, self.output_dtype)

    def set_rows(self, table: str, keys: Any, vectors: Any, states: Any = (), only: bool = False) -> None:
        """Adds or overwrites rows. `only`: also removes all other rows, if the table can grow."""
        one = self._table(table)
        as_array = lambda x, dtype: np.ascontiguousarray(torch.as_tensor(x).detach().cpu().numpy().astype(dtype))  # noqa
        keys = as_array(keys, np.int64)
        vectors = None if vectors is None else as_array(torch.as_tensor(vectors).float(), np.float32)
        if vectors is not None and vectors.shape != (len(keys), one.dim):
            raise UsageError(f"rows of table '{table}' have shape {vectors.shape}, expected {(len(keys), one.dim)}")
        states = [as_array(torch.as_tensor(one).float(), np.float32) for one in states]
        if not self._engine.exists and vectors is not None:
            before = self._first_rows.get(table)
            if only or before is None or len(before[0]) == len(keys):
                self._first_rows[table] = (keys, vectors, states)
                return
        of = self._engine.settle()
        if only and one.rows == 0:
            there = rows_of_tables.export_rows(of, table).keys
            rows_of_tables.remove_rows(of, table, np.setdiff1d(there, keys))
        rows_of_tables.import_rows(of, table, keys, vectors, states)

    def _remember(self, states: bool = True) -> None:
        """Moves all rows out of the set, and closes it; a new set is created when needed."""
        for name in self.table_names():
            found = self._engine.export(name, states)
            self._first_rows[name] = (found.keys, found.vectors, found.states)
        self._first_updates = self._engine.set().updates if states else 0
        self._engine.close()

    def save(self, folder: Any) -> None:
        """Saves the complete state to a folder. Collective."""
        rows_of_tables.save(self._engine.settle(), folder)

    def load(self, folder: Any) -> None:
        """Loads a saved state, on any number of ranks. Training continues as the saved module's would."""
        self._engine.close()
        self._first_rows, self._first_updates = {}, 0
        rows_of_tables.load(self._engine.set(), folder)

    # State.

    def _state_name(self, table: str) -> str:
        return "weight"

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        if self._state_elsewhere:
            return
        for table in self._tables:
            name = prefix + self._state_name(table.name)
            if table.rows > 0:
                destination[name] = self.weight_of(table.name)
            else:
                keys, vectors = self.export(table.name)
                destination[name] = vectors.to(self.anchor.device, self.output_dtype)
                destination[name[: -len("weight")] + "keys"] = keys

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        if self._state_elsewhere:
            return
        taken = set()
        for table in self._tables:
            name = prefix + self._state_name(table.name)
            keys_name = name[: -len("weight")] + "keys"
            taken.update((name, keys_name))
            if name not in state_dict:
                missing_keys.append(name)
                continue
            weight = state_dict[name]
            weight = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
            if hasattr(weight, "local_shards"):
                shards = weight.local_shards()
                if len(shards) != 1 or shards[0].tensor.shape != weight.size():
                    error_msgs.append(f"{name} is sharded over ranks: save it whole, or gather it first")
                    continue
                weight = shards[0].tensor
            keys = state_dict.get(keys_name, range(len(weight)))
            if table.rows > 0 and tuple(weight.shape) != (table.rows, table.dim):
                error_msgs.append(
                    f"{name} has shape {tuple(weight.shape)}, but the table has shape {(table.rows, table.dim)}"
                )
                continue
            try:
                self.set_rows(table.name, torch.as_tensor(keys), weight, only=True)
            except UsageError as error:
                error_msgs.append(f"{name}: {error}")
        if strict:
            unexpected_keys.extend(key for key in state_dict if key.startswith(prefix) and key not in taken)

    def __getstate__(self) -> dict:
        """Pickles the module with the complete state of its set, as files."""
        state = self.__dict__.copy()
        engine = state.pop("_engine")
        state["_group"] = state["scaler"] = None
        if engine.exists:
            if engine.ranks > 1:
                raise UsageError("tables on several ranks cannot be pickled: call save(folder) on every rank")
            with tempfile.TemporaryDirectory() as folder:
                self.save(os.path.join(folder, "set"))
                state["_saved"] = _read_files(os.path.join(folder, "set"))
        for table in self._tables:
            table.optimizer = None
        return state

    def __setstate__(self, state: dict) -> None:
        saved = state.pop("_saved", None)
        super().__setstate__(state)
        self._connect()
        if saved is not None:
            with tempfile.TemporaryDirectory() as folder:
                for name, data in saved.items():
                    path = os.path.join(folder, "set", name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as file:
                        file.write(data)
                rows_of_tables.load(self._engine.set(), os.path.join(folder, "set"))

    def __deepcopy__(self, memo: dict) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made


def _read_files(folder: str) -> dict[str, bytes]:
    found = {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(here, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found
