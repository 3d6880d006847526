"""Columns in Arrow's C data interface, which the library reads in place."""

from __future__ import annotations

import ctypes as c
import itertools
from dataclasses import dataclass
from typing import Any, Optional, Sequence

import numpy as np

from . import _structs as s
from .errors import UsageError

_FORMATS = {
    "int8": b"c",
    "uint8": b"C",
    "int16": b"s",
    "uint16": b"S",
    "int32": b"i",
    "uint32": b"I",
    "int64": b"l",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
}
_NULLABLE = 2

_capsule_pointer = c.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


@dataclass(eq=False)
class Column:
    """A column to export."""

    length: int
    format: bytes
    buffers: Sequence[Optional[np.ndarray]] = ()
    null_count: int = 0
    child: Optional[Column] = None
    dictionary: Optional[Column] = None
    capsules: Any = None  # if set, this pair of capsules replaces all fields above except `length`


def numbers(values: np.ndarray, valid: Optional[np.ndarray] = None) -> Column:
    """Makes a column of a vector of numbers or booleans. Copies the vector only if it is not contiguous or has another
    byte order.
    """
    if values.dtype == np.bool_:
        return Column(len(values), b"b", [*_bitmap(valid), np.packbits(values, bitorder="little")], _nulls(valid))
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    format = _FORMATS.get(values.dtype.name)
    if format is None:
        raise UsageError(f"columns of {values.dtype} are not supported: expected numbers, booleans or texts")
    return Column(len(values), format, [*_bitmap(valid), np.ascontiguousarray(values)], _nulls(valid))


def seconds(values: np.ndarray) -> Column:
    """Makes a column of a vector of numpy.datetime64; NaT becomes null."""
    unit = np.datetime_data(values.dtype)[0]
    if unit not in ("s", "ms", "us", "ns"):
        values, unit = values.astype("datetime64[s]"), "s"
    valid = ~np.isnat(values)
    kind = {"s": b"tss:", "ms": b"tsm:", "us": b"tsu:", "ns": b"tsn:"}[unit]
    return Column(len(values), kind, [*_bitmap(valid), np.ascontiguousarray(values).view(np.int64)], _nulls(valid))


def texts(values: Sequence[Any]) -> Column:
    """Makes a column of texts; None and NaN become nulls, other values are converted with str()."""
    count = len(values)
    encoded, valid = [b""] * count, np.ones(count, np.bool_)
    for i, value in enumerate(values):
        if isinstance(value, str):
            encoded[i] = value.encode()
        elif value is None or value != value:
            valid[i] = False
        else:
            encoded[i] = value if isinstance(value, bytes) else str(value).encode()
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, count), out=ends[1:])
    data = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    there = _some(valid)
    if ends[-1] < 2**31:
        return Column(count, b"u", [*_bitmap(there), ends.astype(np.int32), data], _nulls(there))
    return Column(count, b"U", [*_bitmap(there), ends, data], _nulls(there))


def categories(codes: np.ndarray, values: Column) -> Column:
    """Makes a column of categories: each code is an index into `values`; a negative code is a null."""
    column = numbers(codes, _some(codes >= 0))
    column.dictionary = values
    return column


def lists(lengths: np.ndarray, items: Column, valid: Optional[np.ndarray] = None) -> Column:
    """Makes a column of lists, whose elements are concatenated in `items`."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return Column(len(lengths), b"+L", [*_bitmap(valid), ends], _nulls(valid), child=items)


def nothing(length: int) -> Column:
    """Makes a column of `length` missing values."""
    return Column(length, b"n", [], length)


def of_capsules(length: int, capsules: Any) -> Column:
    """Makes a column of the result of an `__arrow_c_array__()` call."""
    return Column(length, b"", capsules=capsules)


def _some(valid: np.ndarray) -> Optional[np.ndarray]:
    """Returns `valid`, or None if all its elements are true."""
    return None if valid.all() else valid


def _nulls(valid: Optional[np.ndarray]) -> int:
    return 0 if valid is None else int(len(valid) - np.count_nonzero(valid))


def _bitmap(valid: Optional[np.ndarray]) -> list:
    return [None if valid is None else np.packbits(valid, bitorder="little")]


# keeps arrays alive until the library releases them
_alive: dict = {}
_numbers = itertools.count(1)


@s.ARRAY_RELEASE
def _release_array(array):
    """Releases a table's struct and its children, which may belong to other libraries."""
    one = array.contents
    for i in range(one.n_children):
        child = one.children[i].contents
        if child.release:
            s.ARRAY_RELEASE(child.release)(c.byref(child))
    _alive.pop(one.private_data, None)
    one.release = None


@s.SCHEMA_RELEASE
def _release_schema(schema):
    one = schema.contents
    for i in range(one.n_children):
        child = one.children[i].contents
        if child.release:
            s.SCHEMA_RELEASE(child.release)(c.byref(child))
    _alive.pop(one.private_data, None)
    one.release = None


def _moved(struct: Any, capsule: Any, name: bytes) -> Any:
    """Moves the struct out of a capsule."""
    pointer = c.cast(_capsule_pointer(capsule, name), c.POINTER(struct))
    own = struct()
    c.memmove(c.byref(own), pointer, c.sizeof(struct))
    pointer.contents.release = None
    return own


def _build(name: bytes, column: Column, keep: list) -> tuple:
    """Returns the structs of a column: schema and array. Adds to `keep` the objects that the structs point to."""
    if column.capsules is not None:
        schema, array = (
            _moved(struct, capsule, struct_name)
            for struct, capsule, struct_name in zip(
                (s.ArrowSchema, s.ArrowArray), column.capsules, (b"arrow_schema", b"arrow_array")
            )
        )
        schema.name = name
        keep += [schema, array, name]
        return schema, array
    schema = s.ArrowSchema(format=column.format, name=name, flags=_NULLABLE)
    array = s.ArrowArray(length=column.length, null_count=column.null_count, n_buffers=len(column.buffers))
    if column.buffers:
        pointers = [None if one is None else one.ctypes.data for one in column.buffers]
        array.buffers = (c.c_void_p * len(pointers))(*pointers)
        keep += [array.buffers, *column.buffers]
    if column.child is not None:
        _set_children(schema, array, [_build(b"item", column.child, keep)], keep)
    if column.dictionary is not None:
        of_schema, of_array = _build(b"", column.dictionary, keep)
        schema.dictionary, array.dictionary = c.pointer(of_schema), c.pointer(of_array)
        keep += [schema.dictionary, array.dictionary]
    keep += [schema, array, name]
    return schema, array


def _set_children(schema: Any, array: Any, children: list, keep: list) -> None:
    schemas = (c.POINTER(s.ArrowSchema) * len(children))(*[c.pointer(one[0]) for one in children])
    arrays = (c.POINTER(s.ArrowArray) * len(children))(*[c.pointer(one[1]) for one in children])
    schema.n_children = array.n_children = len(children)
    schema.children, array.children = schemas, arrays
    keep += [schemas, arrays]


def table(columns: dict, rows: int) -> tuple:
    """Returns the schema and the array of a table, for hctr_frame_create(). The buffers live until the library releases
    them.
    """
    keep: list = []
    children = [_build(str(name).encode(), column, keep) for name, column in columns.items()]
    schema, array = s.ArrowSchema(format=b"+s", name=b""), s.ArrowArray(length=rows, n_buffers=1)
    array.buffers = (c.c_void_p * 1)(None)
    keep.append(array.buffers)
    _set_children(schema, array, children, keep)
    for one, release in ((schema, _release_schema), (array, _release_array)):
        one.private_data = next(_numbers)
        one.release = c.cast(release, c.c_void_p)
        _alive[one.private_data] = keep
    return schema, array


def stream_pointer(capsule: Any) -> int:
    """The ArrowArrayStream of a capsule."""
    return _capsule_pointer(capsule, b"arrow_array_stream")
