"""Passes DLPack tensors, on the host or on a GPU, to the library without a copy.

A GPU tensor is exported for stream 1, CUDA's default stream. The tensor's library makes stream 1 wait for the queued
work on the tensor, and the engine's streams wait for stream 1. NumPy's from_dlpack() accepts only host tensors.
"""

from __future__ import annotations

import ctypes as c
from typing import Any, Optional

from . import _library
from . import _structs as s
from .errors import UsageError

HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
GPU_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_DEFAULT_STREAM = 1
_READ_ONLY = 1

_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
_is_valid = c.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c.c_int, [c.py_object, c.c_char_p]


class _Versioned(c.Structure):
    """The leading fields of a DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("context", c.c_void_p),
        ("deleter", c.c_void_p),
        ("flags", c.c_uint64),
    ]


def device_of(values: Any) -> Optional[int]:
    """The DLPack device type of a tensor; None: not a DLPack tensor."""
    if not hasattr(values, "__dlpack__"):
        return None
    return int(values.__dlpack_device__()[0]) if hasattr(values, "__dlpack_device__") else HOST_DEVICES[0]


def is_on_gpu(values: Any) -> bool:
    """Whether a tensor is in memory of a CUDA device. Raises UsageError for other kinds of devices."""
    device = device_of(values)
    if device is None or device in HOST_DEVICES:
        return False
    if device not in GPU_DEVICES:
        raise UsageError(f"a tensor is on a device of DLPack's type {device}, expected the host or a CUDA device")
    return True


class Borrowed:
    """A tensor for the duration of a call. `array` is the library's struct; `shape` and `strides` count elements.

    what: a description for messages, such as "input 'dense'". written: whether the call writes to the tensor. Raises
    UsageError for unsupported element types, and for a read-only tensor that is written.
    """

    def __init__(self, values: Any, what: str, written: bool = False):
        if getattr(values, "requires_grad", False):
            values = values.detach()
        self._capsule = _capsule_of(values, what)
        self.array = s.Array()
        versioned = bool(_is_valid(self._capsule, b"dltensor_versioned"))
        name = b"dltensor_versioned" if versioned else b"dltensor"
        pointer = _pointer(self._capsule, name)
        if written and versioned and _Versioned.from_address(pointer).flags & _READ_ONLY:
            raise UsageError(f"{what} is read-only")
        function = "hctr_array_from_dlpack_versioned" if versioned else "hctr_array_from_dlpack"
        try:
            _library.call(function, pointer, c.byref(self.array))
        except UsageError as error:
            raise UsageError(f"{what}: {error}") from None
        self.dtype = s.DTYPE_NAMES[self.array.dtype]
        self.shape = tuple(self.array.shape[i] for i in range(self.array.dims))
        self.strides = _strides(self.array, self.shape)

    def matrix(self) -> s.Array:
        """Returns the struct with the shape [rows, columns]. A tensor with one dimension becomes a single column."""
        if len(self.shape) != 1:
            return self.array
        self._shape = (c.c_int64 * 2)(self.shape[0], 1)
        self._strides = (c.c_int64 * 2)(self.strides[0], 1)
        return s.Array(self.array.data, self.array.dtype, 2, self._shape, self._strides, self.array.gpu)


def _strides(array: s.Array, shape: tuple) -> tuple:
    if array.strides:
        return tuple(array.strides[i] for i in range(array.dims))
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def _capsule_of(values: Any, what: str) -> Any:
    """Exports a capsule of the newest DLPack version that the tensor's library supports. The capsule's destructor frees
    the tensor.
    """
    options = {"stream": _DEFAULT_STREAM} if is_on_gpu(values) else {}
    try:
        try:
            return values.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # the tensor's library implements DLPack 0.x
            return values.__dlpack__(**options)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"{what} cannot be read through DLPack: {error}") from error
