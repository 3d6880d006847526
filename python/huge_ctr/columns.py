"""Guesses the role of a table's columns: numbers, categories, lists, or unused."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional

import numpy as np

from .errors import UsageError
from .frames import _is_pandas

_LOOKED_AT = 200_000  # number of rows that are sampled to count values
_ID_NAME = re.compile(r"(^|_)(id|ids|user|item|zip|code|device|site|app|brand|category|cat)(_|$)|id$", re.I)


@dataclass
class Columns:
    """The role of each column."""

    label: str
    rows: int
    numbers: list[str] = field(default_factory=list)  # numeric columns that are standardized
    # numeric columns with a skewed distribution, which are transformed by a logarithm
    skewed: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # each omitted column, with the reason
    distinct: float = 0  # estimated number of distinct values over all slots
    most_items: int = 1  # maximum list length in the sampled rows
    weight: Optional[str] = None

    @staticmethod
    def of(
        table: Any,
        label: str,
        *,
        categorical: Iterable[str] = (),
        numeric: Iterable[str] = (),
        lists: Iterable[str] = (),
        leave_out: Iterable[str] = (),
        weight: Optional[str] = None,
    ) -> "Columns":
        """Inspects the first rows of a table: pandas, Polars, PyArrow, or a dict of columns.

        A column in `categorical` and `numeric` is used as both. Raises UsageError for unknown names.
        """
        names, rows, values_of = _reader(table)
        stated = {"categorical": set(categorical), "numeric": set(numeric), "lists": set(lists)}
        out = set(leave_out)
        for name in {label, weight or label, *out, *(one for these in stated.values() for one in these)}:
            if name not in names:
                raise UsageError(f"there is no column '{name}'; columns are {', '.join(map(repr, names))}")
        found = Columns(label, rows, weight=weight)
        for name in names:
            if name in (label, weight):
                continue
            if name in out:
                found.left_out[name] = "by leave_out"
                continue
            found._take(name, values_of(name), stated, rows)
        if not (found.numbers or found.skewed or found.categories or found.lists):
            raise UsageError("every column except the label was omitted: state categorical= or numeric=")
        return found

    def _take(self, name: str, values: np.ndarray, stated: dict, rows: int) -> None:
        looked_at = values[:_LOOKED_AT]
        said = {kind for kind, names in stated.items() if name in names}
        first = (
            next((one for one in looked_at if one is not None and one == one), None) if values.dtype == object else 0
        )
        is_list = isinstance(first, (list, tuple, set, np.ndarray)) or "lists" in said
        if is_list:
            self.lists.append(name)
            sizes = [len(one) for one in looked_at if isinstance(one, (list, tuple, set, np.ndarray))]
            self.most_items = max([self.most_items, *sizes])
            self.distinct += len({item for one in looked_at if isinstance(one, (list, tuple)) for item in one})
            return
        kinds = said or self._guess(name, looked_at, first)
        if "numeric" in kinds:
            (self.skewed if _is_skewed(looked_at) else self.numbers).append(name)
        if "categorical" in kinds:
            self.categories.append(name)
            seen = _distinct(looked_at)
            self.distinct += seen * (rows / len(looked_at) if seen > len(looked_at) / 2 else 1)

    def _guess(self, name: str, values: np.ndarray, first: Any) -> set:
        if first is None or len(values) == 0:
            return self._leave(name, "no values")
        count = _distinct(values)
        if count < 2:
            return self._leave(name, "one value")
        kind = values.dtype.kind
        if kind == "O" or kind in "US":
            return self._leave(name, "id: nearly all distinct texts") if count > 0.9 * len(values) else {"categorical"}
        if kind == "b":
            return {"categorical"}
        if kind == "M":
            return {"numeric"}
        whole = kind in "iu" or bool(np.all(values[~np.isnan(values)] == np.floor(values[~np.isnan(values)])))
        if whole and _ID_NAME.search(name):
            return self._leave(name, "id: nearly all distinct") if count > 0.9 * len(values) else {"categorical"}
        if kind in "iu" and count == len(values) and count > 2 and np.all(np.diff(values) > 0):
            return self._leave(name, "id: integers that number the rows")
        # A missing value (NaN) turns a column of integers into floats. So whole numbers in a float column count as
        # integers if the column contains NaN. Without NaN, rows outside the sample may have fractions.
        names_things = kind in "iu" or (whole and bool(np.isnan(values).any()))
        few = count * 5 <= len(values) and count <= 1000
        return {"numeric", "categorical"} if names_things and few else {"numeric"}

    def _leave(self, name: str, why: str) -> set:
        self.left_out[name] = why
        return set()

    def lines(self) -> list[str]:
        """Describes the role of each column."""
        kinds = (("number", self.numbers), ("number, by its logarithm", self.skewed), ("category", self.categories))
        said: dict[str, list[str]] = {}
        for word, names in (*kinds, ("list", self.lists)):
            for name in names:
                said.setdefault(name, []).append(word)
        lines = [f"{name}: {' and '.join(words)}" for name, words in said.items()]
        return lines + [f"{name}: omitted: {why}" for name, why in self.left_out.items()]


def _reader(table: Any) -> tuple[list[str], int, Callable[[str], np.ndarray]]:
    """Returns the column names, the number of rows, and a function that returns the first values of a column."""
    if _is_pandas(table):
        return list(table.columns), len(table), lambda name: _plain(table[name].iloc[:_LOOKED_AT])
    if hasattr(table, "column_names"):  # a PyArrow table
        return (
            list(table.column_names),
            table.num_rows,
            lambda name: _plain(table[name].slice(0, _LOOKED_AT).to_pylist()),
        )
    if hasattr(table, "get_column"):  # a Polars frame
        return list(table.columns), len(table), lambda name: _plain(table[name].head(_LOOKED_AT).to_list())
    if isinstance(table, dict):
        return list(table), len(next(iter(table.values()), ())), lambda name: _plain(table[name][:_LOOKED_AT])
    raise UsageError(f"{type(table).__name__} is not a table: pass a DataFrame, a PyArrow Table or a dict of columns")


def _plain(values: Any) -> np.ndarray:
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return np.asarray(values)
    values = list(values)
    given = [one for one in values if one is not None and one == one and type(one).__name__ != "NAType"]
    if given and all(isinstance(one, (int, float, np.number)) and not isinstance(one, bool) for one in given):
        if len(given) == len(values):
            return np.array(values)
        return np.array([one if isinstance(one, (int, float, np.number)) else math.nan for one in values], float)
    if given and all(isinstance(one, (bool, np.bool_)) for one in given) and len(given) == len(values):
        return np.array(values, bool)
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _distinct(values: np.ndarray) -> int:
    if values.dtype == object:
        return len({str(one) for one in values if one is not None and one == one})
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    return len(np.unique(values))


def _is_skewed(values: np.ndarray) -> bool:
    """Whether most values are small, some are large, and none is negative."""
    if values.dtype.kind not in "iuf":
        return False
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if len(values) < 10 or values.min() < 0:
        return False
    middle, high = np.quantile(values, [0.5, 0.99])
    return high > 10 * max(middle, 1e-9) and high > 10 or high > 8 * middle > 0
