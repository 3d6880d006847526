"""Converts arrays of samples to inputs of the library."""

from __future__ import annotations

import ctypes as c
from typing import Any, Mapping, Optional

import numpy as np

from . import _structs as s
from .errors import UsageError
from .frames import host_array

_DTYPES = {"float32": s.F32, "int32": s.I32, "uint32": s.U32, "int64": s.I64, "uint64": s.U64}
ROLES = {s.DENSE: "dense", s.KEYS: "keys", s.SCORES: "scores", s.LABELS: "labels"}


def array_of(values: np.ndarray) -> tuple[s.Array, tuple]:
    """The C struct of an array, and the objects that it points to."""
    shape = (c.c_int64 * max(values.ndim, 1))(*values.shape)
    strides = (c.c_int64 * max(values.ndim, 1))(*[step // values.itemsize for step in values.strides])
    made = s.Array(values.ctypes.data, _DTYPES[values.dtype.name], values.ndim, shape, strides, -1)
    return made, (shape, strides, values)


class Inputs:
    """Makes the inputs of a batch. `given`: an array by name, or (keys, offsets) for bags; `tensors`: name to (role,
    columns).

    Shapes: dense, labels and weights float32 [samples, columns], or [samples] of one column; keys integers [samples,
    slots], or bags (keys [count], offsets int32 or int64 [samples * slots + 1]). Other floats and integers are
    converted. Raises UsageError.
    """

    def __init__(self, given: Mapping[str, Any], tensors: Mapping[str, tuple[int, int]]):
        self._keep: list = []
        self.samples: Optional[int] = None
        self.structs = (s.Input * max(len(given), 1))()
        self.count = 0
        for name, value in given.items():
            if name not in tensors:
                raise UsageError(f"no input is named '{name}'; there are {', '.join(repr(one) for one in tensors)}")
            role, columns = tensors[name]
            one = self.structs[self.count]
            one.size, one.name = c.sizeof(s.Input), name.encode()
            if role == s.KEYS and isinstance(value, tuple):
                keys, offsets = (_host(part) for part in value)
                one.data, one.offsets = self._struct(_keys(name, keys)), self._struct(_offsets(name, offsets))
                rows = (len(offsets) - 1) // max(columns, 1)
            else:
                matrix = _matrix(name, _host(value), role, columns)
                one.data, rows = self._struct(matrix), len(matrix)
            if self.samples is not None and rows != self.samples:
                raise UsageError(f"input '{name}' has {rows} samples, and an earlier one {self.samples}")
            self.samples, self.count = rows, self.count + 1

    def _struct(self, values: np.ndarray) -> s.Array:
        made, keep = array_of(values)
        self._keep.append(keep)
        return made

    def arguments(self) -> tuple:
        return self.samples or 0, c.cast(self.structs, c.c_void_p), self.count


def _host(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    return host_array(value) if hasattr(value, "__dlpack__") else np.asarray(value)


def _matrix(name: str, values: np.ndarray, role: int, columns: int) -> np.ndarray:
    values = _keys(name, values) if role == s.KEYS else _floats(name, values)
    if values.ndim == 1 and columns == 1:
        values = values.reshape(-1, 1)
    if values.ndim == 2 and values.shape[1] == columns:
        return np.ascontiguousarray(values)
    raise UsageError(f"input '{name}' has shape {values.shape}, and needs (samples, {columns})")


def _floats(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        raise UsageError(f"input '{name}' has values of {values.dtype}: numbers are taken")
    return values if values.dtype == np.float32 else values.astype(np.float32)


def _keys(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise UsageError(f"input '{name}' has keys of {values.dtype}: integers are taken")
    return values if values.dtype.name in _DTYPES else values.astype(np.int64)


def _offsets(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise UsageError(f"offsets of '{name}' are of {values.dtype}: integers are taken")
    return values if values.dtype.name in ("int32", "int64") else values.astype(np.int64)


def view(array: s.Array) -> np.ndarray:
    """A view of the library's memory, valid as long as the library says."""
    names = {number: name for name, number in _DTYPES.items()}
    shape = tuple(array.shape[i] for i in range(array.dims))
    dtype = np.dtype(names[array.dtype])
    count = int(np.prod(shape))
    if count == 0:
        return np.empty(shape, dtype)
    buffer = (c.c_char * (count * dtype.itemsize)).from_address(array.data)
    return np.frombuffer(memoryview(buffer), dtype).reshape(shape)
