"""Tables in memory as data sources: pandas, Polars, PyArrow, NumPy, dicts."""

from __future__ import annotations

import ctypes as c
import os
from typing import Any, Iterable, Mapping, Optional

import numpy as np

from . import _arrow, _library
from . import _structs as s
from .errors import DataError, UsageError


class Frame:
    """A table in the memory of this process, which the library reads in place.

    data: a pandas or Polars DataFrame, a PyArrow Table, an object with `__arrow_c_stream__()`, or a mapping of column
    names to vectors of equal length: NumPy arrays, Series, Arrow arrays, lists. Values may be numbers, booleans, texts,
    categories, and lists of numbers or texts; None, NaN and NaT are missing values. Contiguous numbers, Arrow arrays
    and category codes are not copied; texts that are Python objects are copied.
    columns: the columns to read; default: all.

    Raises UsageError if `data` is not a table, or its columns have different lengths.
    """

    def __init__(self, data: Any, columns: Optional[Iterable[str]] = None):
        wanted = None if columns is None else {str(name) for name in columns}
        if hasattr(data, "__arrow_c_stream__") and not _is_pandas(data):
            names = getattr(data, "column_names", None) or getattr(data, "columns", None)
            if wanted is not None and names is not None and hasattr(data, "select"):
                data = data.select([name for name in names if name in wanted])
            self._keep = data.__arrow_c_stream__()
            self._handle = _library.make(
                "hctr_frame_from_stream", "hctr_frame_destroy", "table", _arrow.stream_pointer(self._keep)
            )
        else:
            vectors = _vectors(data)
            made = {name: _column(name, one) for name, one in vectors if wanted is None or str(name) in wanted}
            rows = _equal_lengths(made)
            schema, array = _arrow.table(made, rows)
            batches = (c.POINTER(s.ArrowArray) * 1)(c.pointer(array))
            self._handle = _library.make(
                "hctr_frame_create", "hctr_frame_destroy", "table", c.byref(schema), batches, 1 if rows > 0 else 0
            )
        self.rows: int = _library.library().hctr_frame_rows(self._handle.pointer)

    @property
    def source(self) -> str:
        """The frame's name, usable as a path in configs and calls of this process: "memory:/1"."""
        return _library.library().hctr_frame_source(self._handle.pointer).decode()

    def close(self) -> None:
        """Releases the library's copy of the table. Readers that are running can still use it."""
        self._handle.close()

    def __len__(self) -> int:
        return self.rows


def is_table(data: Any) -> bool:
    return isinstance(data, (Frame, Mapping)) or hasattr(data, "__arrow_c_stream__") or _is_pandas(data)


def as_frame(data: Any, columns: Optional[Iterable[str]] = None) -> Frame:
    """Returns `data` if it is a Frame, otherwise a Frame of `data`."""
    return data if isinstance(data, Frame) else Frame(data, columns)


def source_of(data: Any, columns: Optional[Iterable[str]] = None, read_parquet: bool = False) -> tuple[str, Any]:
    """Returns the path for the library, and the objects that must stay alive while the library uses the path. `data`: a
    path, or a table.

    read_parquet: makes PyArrow, instead of the library, read files that end in .parquet.
    """
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if not (read_parquet and str(path).endswith(".parquet")):
            return str(path), None
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise DataError(f"'{path}' is a Parquet file, which needs PyArrow: pip install pyarrow") from error
        data = pyarrow.parquet.read_table(path)
    if not is_table(data):
        raise UsageError(
            f"data has type {type(data).__name__}, expected a path, a DataFrame (pandas, Polars), a PyArrow Table or "
            f"a dict of columns"
        )
    frame = as_frame(data, columns)
    return frame.source, frame


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pandas"


def _vectors(data: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(data, Mapping):
        return data.items()
    if _is_pandas(data) and hasattr(data, "columns"):
        return ((name, data[name]) for name in data.columns)
    if isinstance(data, np.ndarray) and data.dtype.names:
        return ((name, data[name]) for name in data.dtype.names)
    raise UsageError(f"{type(data).__name__} is not a table: pass a DataFrame, a PyArrow Table or a dict of columns")


def _equal_lengths(columns: dict) -> int:
    lengths = {name: column.length for name, column in columns.items()}
    if not lengths:
        raise UsageError("the table has no columns")
    if len(set(lengths.values())) > 1:
        name, other = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise UsageError(
            f"column '{name}' has {lengths[name]} rows, but '{other}' has {lengths[other]}: "
            "expected the same number in all columns"
        )
    return next(iter(lengths.values()))


def _column(name: str, values: Any) -> _arrow.Column:
    try:
        return _column_of(values)
    except UsageError as error:
        raise UsageError(f"column '{name}': {error}") from None


def _column_of(values: Any) -> _arrow.Column:
    if _is_pandas(values):
        return _of_pandas(values)
    if hasattr(values, "__arrow_c_array__"):
        return _arrow.of_capsules(len(values), values.__arrow_c_array__())
    if hasattr(values, "combine_chunks"):  # a PyArrow ChunkedArray
        return _column_of(values.combine_chunks())
    if hasattr(values, "__arrow_c_stream__") and hasattr(values, "to_arrow"):  # a Polars Series
        return _column_of(values.to_arrow())
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = host_array(values)
    if not isinstance(values, np.ndarray):
        values = _array_of(values)
    if values.ndim == 2:
        width = values.shape[1]
        return _arrow.lists(np.full(len(values), width), _of_array(np.ascontiguousarray(values).reshape(-1)))
    if values.ndim != 1:
        raise UsageError(f"a column has shape {values.shape}, expected one dimension, or two for lists")
    return _of_array(values)


def host_array(values: Any) -> np.ndarray:
    """A NumPy array that shares the memory of a tensor. Raises UsageError for tensors on a GPU."""
    device = values.__dlpack_device__()[0] if hasattr(values, "__dlpack_device__") else 1
    if int(device) not in (1, 3):
        raise UsageError("a tensor is on a GPU: copy it to the host first, for example with .cpu()")
    if getattr(values, "requires_grad", False):
        values = values.detach()
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError) as error:
        raise UsageError(
            f"a {type(values).__name__} cannot be read through DLPack ({error}): convert it first"
        ) from error


def _array_of(values: Any) -> np.ndarray:
    """Converts an iterable to an array. Texts, lists and mixed values stay objects."""
    values = list(values)
    if values and all(isinstance(one, (bool, int, float, np.number, np.bool_)) for one in values):
        return np.array(values)
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _of_array(values: np.ndarray) -> _arrow.Column:
    if values.dtype.kind in "biuf":
        return _arrow.numbers(values)
    if values.dtype.kind == "M":
        return _arrow.seconds(values)
    if values.dtype.kind in "US":
        return _arrow.texts(values.tolist())
    if values.dtype.kind == "O":
        return _of_objects(values)
    raise UsageError(f"columns of {values.dtype} are not supported: expected numbers, booleans, times, texts or lists")


def _missing(value: Any) -> bool:
    return (
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def _of_objects(values: np.ndarray) -> _arrow.Column:
    first = next((one for one in values if not _missing(one)), None)
    if first is None:
        return _arrow.nothing(len(values))
    if isinstance(first, (list, tuple, set, frozenset, np.ndarray)):
        return _of_lists(values)
    if isinstance(first, (bool, int, float, np.number, np.bool_)):
        valid = np.fromiter((not _missing(one) for one in values), np.bool_, len(values))
        given = values[valid].tolist()
        if all(isinstance(one, (bool, int, float, np.number, np.bool_)) for one in given):
            found = np.array(given)
            if found.dtype.kind in "biuf":
                filled = np.zeros(len(values), found.dtype)
                filled[valid] = found
                return _arrow.numbers(filled, None if valid.all() else valid)
    return _arrow.texts([None if _missing(one) else one for one in values])


def _of_lists(values: np.ndarray) -> _arrow.Column:
    valid = np.fromiter((not _missing(one) for one in values), np.bool_, len(values))
    parts = [list(one) if there else [] for one, there in zip(values, valid)]
    items = _array_of([item for part in parts for item in part])
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    column = _of_array(items) if len(items) else _arrow.nothing(0)
    return _arrow.lists(lengths, column, None if valid.all() else valid)


def _of_pandas(series: Any) -> _arrow.Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return _of_array(series.to_numpy())
    name = type(dtype).__name__
    if name == "CategoricalDtype":
        return _arrow.categories(np.asarray(series.cat.codes), _of_pandas(series.cat.categories.to_series()))
    if name == "DatetimeTZDtype":
        return _arrow.seconds(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":  # pandas has its own dtypes for numbers with missing values
        valid = ~np.asarray(series.isna())
        plain = np.dtype(getattr(dtype, "numpy_dtype", "float64"))
        return _arrow.numbers(series.fillna(0).to_numpy(plain), None if valid.all() else valid)
    arrow = _arrow_of_pandas(series)
    return _column_of(arrow) if arrow is not None else _of_objects(series.to_numpy(object))


def _arrow_of_pandas(series: Any) -> Any:
    """Converts with PyArrow, which is much faster for texts. Returns None without PyArrow, and for unsupported
    objects.
    """
    try:
        import pyarrow
    except ImportError:
        return None
    try:
        array = pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError):
        return None
    wanted = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_list, pyarrow.types.is_null)
    return array if any(is_it(array.type) for is_it in wanted) else None
