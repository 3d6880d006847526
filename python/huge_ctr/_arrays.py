"""Converts arrays of samples to inputs of the library."""

from __future__ import annotations

import ctypes as c
from typing import Any, Mapping, Optional

import numpy as np

from . import _structs as s
from ._dlpack import Borrowed, is_on_gpu
from .errors import UsageError
from .frames import host_array

_DTYPES = {name: number for number, name in enumerate(s.DTYPE_NAMES)}
ROLES = {s.DENSE: "dense", s.KEYS: "keys", s.SCORES: "scores", s.LABELS: "labels"}


def array_of(values: np.ndarray) -> tuple[s.Array, tuple]:
    """Returns the C struct of an array, and the objects that the struct points to."""
    shape = (c.c_int64 * max(values.ndim, 1))(*values.shape)
    strides = (c.c_int64 * max(values.ndim, 1))(*[step // values.itemsize for step in values.strides])
    made = s.Array(values.ctypes.data, _DTYPES[values.dtype.name], values.ndim, shape, strides, -1)
    return made, (shape, strides, values)


def keys_array(keys: Any) -> np.ndarray:
    """Returns keys as a contiguous array of integers with one dimension. Raises UsageError."""
    if not isinstance(keys, np.ndarray):
        keys = host_array(keys) if hasattr(keys, "__dlpack__") else np.asarray(keys)
    if keys.size == 0:
        keys = keys.astype(np.int64)
    if keys.dtype.kind not in "iu" or keys.ndim != 1:
        raise UsageError(f"keys: expected integers of one dimension, found {keys.dtype} of shape {keys.shape}")
    if keys.dtype.itemsize < 4:
        keys = keys.astype(np.int64)
    return np.ascontiguousarray(keys)


def rows_array(rows: Any) -> np.ndarray:
    """Returns rows as a contiguous float32 array with two dimensions. Raises UsageError."""
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if rows.ndim != 2:
        raise UsageError(f"rows have shape {rows.shape}, expected two dimensions")
    return rows


class Inputs:
    """Makes the inputs of a batch. `given`: name to array, or to (keys, offsets) for bags. `tensors`: name to (role,
    columns).

    Shapes: dense values, labels and weights are float32 [samples, columns], or [samples] for one column. Keys are
    integers [samples, slots], or bags (keys [count], offsets int32 or int64 [samples * slots + 1]). Accepts NumPy
    arrays and DLPack tensors. In host memory, other float and integer types are converted. Tensors on a GPU are read
    there and must have these types. Raises UsageError.
    """

    def __init__(self, given: Mapping[str, Any], tensors: Mapping[str, tuple[int, int]]):
        self._keep: list = []
        self.samples: Optional[int] = None
        self.structs = (s.Input * max(len(given), 1))()
        self.count = 0
        for name, value in given.items():
            if name not in tensors:
                raise UsageError(f"no input is named '{name}'; inputs are {', '.join(repr(one) for one in tensors)}")
            role, columns = tensors[name]
            one = self.structs[self.count]
            one.size, one.name = c.sizeof(s.Input), name.encode()
            if is_on_gpu(value):
                one.data, rows = self._on_gpu(name, value, role, columns)
            elif role == s.KEYS and isinstance(value, tuple):
                if any(is_on_gpu(part) for part in value):
                    raise UsageError(f"input '{name}' has bags on a GPU: copy keys and offsets to the host with .cpu()")
                keys, offsets = (_host(part) for part in value)
                one.data, one.offsets = self._struct(_keys(name, keys)), self._struct(_offsets(name, offsets))
                rows = (len(offsets) - 1) // max(columns, 1)
            else:
                matrix = _matrix(name, _host(value), role, columns)
                one.data, rows = self._struct(matrix), len(matrix)
            if self.samples is not None and rows != self.samples:
                raise UsageError(f"input '{name}' has {rows} samples, but an earlier input has {self.samples}")
            self.samples, self.count = rows, self.count + 1

    def _on_gpu(self, name: str, values: Any, role: int, columns: int) -> tuple[s.Array, int]:
        tensor = Borrowed(values, f"input '{name}'")
        self._keep.append(tensor)
        if (tensor.dtype == "float32") != (role != s.KEYS):
            wanted = "integers of 32 or 64 bits" if role == s.KEYS else "float32"
            raise UsageError(f"input '{name}' is on a GPU as {tensor.dtype}, expected {wanted}: convert it on the GPU")
        matrix = tensor.matrix()
        if matrix.dims != 2 or matrix.shape[1] != columns:
            raise UsageError(f"input '{name}' has shape {tensor.shape}, expected (samples, {columns})")
        return matrix, matrix.shape[0]

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
    raise UsageError(f"input '{name}' has shape {values.shape}, expected (samples, {columns})")


def _floats(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        raise UsageError(f"input '{name}' has values of {values.dtype}, expected numbers")
    return values if values.dtype == np.float32 else values.astype(np.float32)


def _keys(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise UsageError(f"input '{name}' has keys of {values.dtype}, expected integers")
    return values if values.dtype.name in _DTYPES else values.astype(np.int64)


def _offsets(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise UsageError(f"offsets of '{name}' are of {values.dtype}, expected integers")
    return values if values.dtype.name in ("int32", "int64") else values.astype(np.int64)


class Outputs:
    """The memory for the scores of a batch. `outputs`: name to (role, columns).

    out: None creates a NumPy array for each output. Otherwise a dict with a writable array or tensor for each output by
    name or, if there is only one output, a single array or tensor. Each is float32 [samples, columns], or [samples] for
    one column, on the host or on the model's GPU. Raises UsageError.
    """

    def __init__(self, outputs: Mapping[str, tuple[int, int]], rows: int, out: Any = None):
        self.arrays: dict[str, Any] = {}
        self._keep: list = []
        if out is not None and not isinstance(out, Mapping):
            if len(outputs) > 1:
                names = ", ".join(repr(name) for name in outputs)
                raise UsageError(f"out: the model has several outputs: give a dict by {names}")
            out = {next(iter(outputs)): out}
        for name in out or {}:
            if name not in outputs:
                raise UsageError(f"out: no output is named '{name}'; outputs are {', '.join(map(repr, outputs))}")
        wanted = outputs if out is None else {name: outputs[name] for name in out}
        self.structs, self.count = (s.Output * max(len(wanted), 1))(), len(wanted)
        for one, (name, (_, columns)) in zip(self.structs, wanted.items()):
            one.size, one.name = c.sizeof(s.Output), name.encode()
            if out is None:
                self.arrays[name] = np.empty((rows, columns), np.float32)
                one.scores, keep = array_of(self.arrays[name])
                self._keep.append(keep)
            else:
                one.scores = self._given(name, out[name], rows, columns)

    def _given(self, name: str, values: Any, rows: int, columns: int) -> s.Array:
        if not hasattr(values, "__dlpack__"):
            raise UsageError(
                f"out '{name}' has type {type(values).__name__}, expected a NumPy array or a DLPack tensor"
            )
        tensor = Borrowed(values, f"out '{name}'", written=True)
        self._keep.append(tensor)
        matrix = tensor.matrix()
        if tensor.dtype != "float32" or matrix.dims != 2 or (matrix.shape[0], matrix.shape[1]) != (rows, columns):
            shape = f"({rows},) or ({rows}, 1)" if columns == 1 else f"({rows}, {columns})"
            raise UsageError(f"out '{name}' is {tensor.dtype} of shape {tensor.shape}, expected float32 of {shape}")
        return matrix

    def arguments(self) -> tuple:
        return c.cast(self.structs, c.c_void_p), self.count


def view(array: s.Array) -> np.ndarray:
    """Returns a NumPy view of an array of the library. The view is valid as long as the library keeps the array."""
    shape = tuple(array.shape[i] for i in range(array.dims))
    dtype = np.dtype(s.DTYPE_NAMES[array.dtype])
    count = int(np.prod(shape))
    if count == 0:
        return np.empty(shape, dtype)
    buffer = (c.c_char * (count * dtype.itemsize)).from_address(array.data)
    return np.frombuffer(memoryview(buffer), dtype).reshape(shape)
