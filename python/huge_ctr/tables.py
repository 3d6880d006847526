"""Embedding tables of a saved model, by key, and by column and value."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Sequence

import hctr_model
import numpy as np

from . import _config
from .errors import DataError, UsageError


def saved_model(path: str, config: Any) -> Any:
    """The files of a model as arrays. Raises DataError."""
    try:
        return hctr_model.load(path, config)
    except hctr_model.ModelError as error:
        raise DataError(str(error)) from error


class Table:
    """The rows of one embedding table, or of one column if the table was accessed by column name.

    name: the table's name. keys: int64 [rows]. vectors: float32 [rows, dim]. slots: int64 [rows] if rows belong to
    (slot, key) pairs, otherwise None.
    """

    def __init__(self, model: Any, files: Any, column: Optional[str], slot: Optional[int]):
        self._model, self._files, self.column, self._slot = model, files, column, slot
        self.name: str = files.name
        mine = slice(None) if slot is None or files.slots is None else files.slots == slot
        self.keys: np.ndarray = files.keys[mine]
        self.vectors: np.ndarray = files.vectors[mine]
        self.slots: Optional[np.ndarray] = None if files.slots is None else files.slots[mine]

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def __len__(self) -> int:
        return len(self.keys)

    def keys_of(self, values: Sequence[Any]) -> np.ndarray:
        """The keys that the reader makes from values of the column, int64 [values]. Raises UsageError, DataError."""
        if self.column is None:
            raise UsageError(
                f"table '{self.name}' was not named by a column, whose rules convert values to keys: use "
                f"model.tables['{self._any_column()}'].keys_of(values)"
            )
        return column_keys(self._model, self.column, values)

    def vectors_of(self, values: Sequence[Any]) -> np.ndarray:
        """The vectors of `values`, float32 [values, dim]; zeros where no row exists.

        `values` are values of the column, if the table was named by a column. Otherwise they are keys.
        """
        keys = np.asarray(values) if self.column is None else self.keys_of(values)
        slot = self._slot if self._files.slots is not None else None
        if self._files.slots is not None and slot is None:
            raise UsageError(f"rows of table '{self.name}' are identified by slot and key: name the table by a column")
        return self._files.vectors_of(keys, slot)

    def _any_column(self) -> str:
        return next(iter(column_slots(self._model.config)), "column")

    def __repr__(self) -> str:
        of = f", column '{self.column}'" if self.column else ""
        return f"<huge_ctr.Table '{self.name}'{of}: {len(self)} rows of {self.dim}>"


class Tables(Mapping):
    """The tables of a model by name. `tables["item"]` may also name a column, and returns the column's table."""

    def __init__(self, model: Any, files: Any):
        self._model, self._files = model, files

    def __getitem__(self, name: str) -> Table:
        if name in self._files.tables:
            return Table(self._model, self._files.tables[name], None, None)
        slots = column_slots(self._model.config)
        if name not in slots:
            known = ", ".join(repr(one) for one in [*self._files.tables, *slots])
            raise KeyError(f"no table or column of keys is named '{name}'; expected one of {known}")
        top, slot = slots[name]
        tables = [one for one, bottom in table_bottoms(self._model.config).items() if bottom == top]
        if not tables:
            raise KeyError(f"no table has the keys of column '{name}'")
        return Table(self._model, self._files.tables[tables[0]], name, slot)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files.tables)

    def __len__(self) -> int:
        return len(self._files.tables)

    def __repr__(self) -> str:
        return f"<huge_ctr.Tables: {', '.join(self)}>"


def column_slots(config: Mapping) -> dict[str, tuple[str, int]]:
    """For each column of keys: its sparse input, and its slot in that input."""
    data = _config.data_layer(config)
    section = data.get("csv") or data.get("parquet") or {}
    columns = [name for group in section.get("slots", []) for name in np.ravel(group["columns"]).tolist()]
    inputs = data.get("sparse", [])
    found: dict[str, tuple[str, int]] = {}
    for one in inputs:
        count = int(np.ravel(one["slot_num"])[0]) if "slot_num" in one else len(columns)
        for slot, name in enumerate(columns[:count]):
            found.setdefault(name, (one["top"], slot))
        columns = columns[count:]
    return found


def table_bottoms(config: Mapping) -> dict[str, str]:
    """For each embedding, by name: the sparse input that it reads."""
    found = {}
    for layer in config.get("layers", [])[1:]:
        if "sparse_embedding_hparam" in layer:
            found[str(np.ravel(layer["top"])[0])] = str(np.ravel(layer["bottom"])[0])
    return found


def column_keys(model: Any, column: str, values: Sequence[Any]) -> np.ndarray:
    """Converts values to keys with the reader, by encoding a table of only this column."""
    config = model.config
    top, slot = column_slots(config)[column]
    section = _config.data_layer(config).get("csv") or _config.data_layer(config).get("parquet") or {}
    values = list(values) if not hasattr(values, "dtype") else values
    table: dict[str, Any] = {column: values}
    for group in section.get("dense", []):
        for name in np.ravel(group["columns"]).tolist():
            table.setdefault(name, np.zeros(len(values)))
    if len(values) == 0:
        return np.empty(0, np.int64)
    encoded = model._encode(table, True)[top]
    if not isinstance(encoded, tuple):
        return encoded[:, slot]
    keys, offsets = encoded
    slots = model._inputs[top][1]
    begins, ends = offsets[slot:-1:slots], offsets[slot + 1 :: slots]
    if not (ends == begins + 1).all():
        row = int(np.argmax(ends != begins + 1))
        raise DataError(
            f"value {row} of column '{column}' ({values[row]!r}) has {ends[row] - begins[row]} keys, expected one"
        )
    return keys[begins]
