"""Exports and imports embedding rows as NumPy arrays, and saves complete sets to folders."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence

import numpy as np

from . import _embedding_structs as e
from . import _structs as s
from ._arrays import array_of
from ._embedding import EmbeddingSet
from ._library import call, path_bytes


@dataclass
class Rows:
    """Row i has keys[i], vectors[i], and states[k][i] for each optimizer state k."""

    keys: np.ndarray
    vectors: np.ndarray
    states: list = field(default_factory=list)


def _copied(address: int, shape: tuple, dtype: Any) -> np.ndarray:
    count = int(np.prod(shape))
    if count == 0:
        return np.empty(shape, dtype)
    buffer = (c.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memoryview(buffer), dtype).reshape(shape).copy()


def export_blocks(
    of: EmbeddingSet, table: str, sink: Callable[[Rows], None], states: bool = False, changed: bool = False
) -> None:
    """Passes the rows to the sink by ascending keys, one block at a time. If the sink raises an exception, the export
    ends and raises it.
    """
    option = next(one for one in of.tables if one.name == table)
    row_wise = bool(option.optimizer is not None and option.optimizer.row_wise)
    raised: list[BaseException] = []

    def block(_user, count, keys, vectors, of_states, state_count):
        try:
            width = 1 if row_wise else option.dim
            sink(
                Rows(
                    _copied(keys, (count,), np.int64),
                    _copied(vectors, (count, option.dim), np.float32),
                    [_copied(of_states[k], (count, width), np.float32) for k in range(state_count)],
                )
            )
            return 0
        except BaseException as error:  # export_blocks() raises it after the library call
            raised.append(error)
            return 1

    with of._lock:
        try:
            call(
                "hctr_embedding_export",
                of._handle.pointer,
                table.encode(),
                int(states),
                int(changed),
                e.ROWS_SINK(block),
                None,
            )
        except Exception:
            if raised:
                raise raised[0]
            raise


def export_rows(of: EmbeddingSet, table: str, states: bool = False, changed: bool = False) -> Rows:
    """Exports all rows or, with `changed`, rows that may have changed since note_exported()."""
    blocks: list[Rows] = []
    export_blocks(of, table, blocks.append, states, changed)
    option = next(one for one in of.tables if one.name == table)
    if not blocks:
        return Rows(np.empty(0, np.int64), np.empty((0, option.dim), np.float32))
    return Rows(
        np.concatenate([one.keys for one in blocks]),
        np.concatenate([one.vectors for one in blocks]),
        [np.concatenate(parts) for parts in zip(*(one.states for one in blocks))],
    )


def import_rows(
    of: EmbeddingSet, table: str, keys: np.ndarray, vectors: Optional[np.ndarray] = None, states: Sequence = ()
) -> None:
    """Adds rows, or overwrites existing rows. Without vectors, rows get their initial values."""
    if len(keys) == 0:
        return
    kept = []

    def struct(values: Any, dtype: Any) -> s.Array:
        made, keep = array_of(np.ascontiguousarray(values, dtype))
        kept.append(keep)
        return made

    of_states = (s.Array * max(len(states), 1))(*[struct(one, np.float32) for one in states])
    with of._lock:
        call(
            "hctr_embedding_import",
            of._handle.pointer,
            table.encode(),
            struct(keys, np.int64),
            struct(vectors, np.float32) if vectors is not None else None,
            of_states,
            len(states),
        )


def remove_rows(of: EmbeddingSet, table: str, keys: np.ndarray) -> int:
    """Removes the rows of these keys. Returns the number of removed rows; keys without a row are ignored."""
    keys, gone = np.ascontiguousarray(keys, np.int64), c.c_int64()
    with of._lock:
        call("hctr_embedding_remove", of._handle.pointer, table.encode(), keys.ctypes.data, len(keys), gone)
    return gone.value


def removed_keys(of: EmbeddingSet, table: str) -> np.ndarray:
    """The keys whose rows a policy has removed since note_exported()."""
    keys, count = np.empty(0, np.int64), c.c_int64()
    with of._lock:
        for _ in range(2):
            place = keys.ctypes.data if len(keys) else None
            call("hctr_embedding_removed_keys", of._handle.pointer, table.encode(), place, len(keys), count)
            if count.value <= len(keys):
                break
            keys = np.empty(count.value, np.int64)
    return keys


def figures(of: EmbeddingSet, table: str) -> dict[str, int]:
    """Row counts, bytes, and the counts of the row policy."""
    found: dict[str, int] = {}
    sink = e.FIGURE(lambda _user, name, value: found.__setitem__(name.decode(), value))
    with of._lock:
        call("hctr_embedding_figures", of._handle.pointer, table.encode(), sink, None)
    return found


def note_exported(of: EmbeddingSet) -> None:
    with of._lock:
        call("hctr_embedding_note_exported", of._handle.pointer)


def save(of: EmbeddingSet, folder: Any) -> None:
    with of._lock:
        call("hctr_embedding_save", of._handle.pointer, path_bytes(folder))


def load(of: EmbeddingSet, folder: Any) -> None:
    with of._lock:
        call("hctr_embedding_load", of._handle.pointer, path_bytes(folder))
