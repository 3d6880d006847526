"""Collects scores and samples that the library returns batch by batch."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np

from ._arrays import view


class Scores:
    """Collects rows of scores."""

    def __init__(self, outputs: Mapping[str, tuple[int, int]], rows: Optional[int]):
        self._columns = {name: columns for name, (_, columns) in outputs.items()}
        self._known = rows is not None
        self._arrays = {
            name: np.full((rows or 0, columns), np.nan, np.float32) for name, columns in self._columns.items()
        }
        self._parts: dict[str, list] = {name: [] for name in outputs}
        self._at = 0
        self.stopped: list = []

    def add(self, _user: Any, rows: int, outputs: Any, count: int) -> int:
        for i in range(count):
            name, scores = outputs[i].name.decode(), view(outputs[i].scores)
            if self._known:
                self._arrays[name][self._at : self._at + rows] = scores
            else:
                self._parts[name].append(scores.copy())
        self._at += rows
        return 1 if self.stopped else 0

    def arrays(self) -> dict[str, np.ndarray]:
        if self._known:
            return self._arrays
        return {
            name: np.concatenate(parts) if parts else np.empty((0, self._columns[name]), np.float32)
            for name, parts in self._parts.items()
        }


def plain(arrays: dict[str, np.ndarray]) -> Any:
    arrays = {name: array[:, 0] if array.shape[1] == 1 else array for name, array in arrays.items()}
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays


def joined(blocks: list, slots: int) -> Any:
    """Concatenates the batches of an input. If any batch has bags, the result has bags."""
    if all(offsets is None for _, offsets in blocks):
        return np.concatenate([values for values, _ in blocks])
    keys, ends, at = [], [np.zeros(1, np.int64)], 0
    for values, offsets in blocks:
        if offsets is None:
            offsets = np.arange(values.size + 1)
        keys.append(values.reshape(-1))
        ends.append(offsets[1:] + at)
        at += values.size
    return np.concatenate(keys), np.concatenate(ends)
