"""Embedding tables with raw pointers, for framework adapters. docs/embedding_set.md documents the calls."""

from __future__ import annotations

import ctypes as c
import threading
from dataclasses import dataclass, field
from typing import Any, Optional, Protocol, Sequence

import numpy as np

from . import _embedding_structs as e
from . import _structs as s
from ._library import call, library, make, path_bytes, raise_status
from .errors import UsageError

# NumPy types with the layouts of C structs. The structs of all features are one array, so a field is set for all
# features at once.
_ARRAY = np.dtype(
    {
        "names": ["data", "dtype", "dims", "shape", "strides", "gpu"],
        "formats": ["u8", "i4", "i4", "u8", "u8", "i4"],
        "offsets": [0, 8, 12, 16, 24, 32],
        "itemsize": c.sizeof(s.Array),
    }
)
_PARTS = ("keys", "offsets", "weights")
_KEYS = np.dtype(
    {
        "names": ["size", *_PARTS],
        "formats": ["u8", _ARRAY, _ARRAY, _ARRAY],
        "offsets": [getattr(e.FeatureKeys, name).offset for name in ("size", *_PARTS)],
        "itemsize": c.sizeof(e.FeatureKeys),
    }
)


@dataclass
class TableOptions:
    """The options of hctr_table. `optimizer`: a result of optimizer_of(). `words`: the other fields, by their names in
    docs/embedding_set.md.
    """

    name: str
    dim: int
    rows: int = 0
    optimizer: Optional[e.Optimizer] = None
    words: dict = field(default_factory=dict)


@dataclass
class FeatureOptions:
    name: str
    table: str
    pooling: str = "sum"
    weighted: bool = False


def optimizer_of(rule: str, formula: str = "torch", **values: Any) -> e.Optimizer:
    """Returns the options of a rule: the given values, and defaults for all other fields. Raises UsageError."""
    made = e.Optimizer()
    call("hctr_optimizer_defaults", _number(e.RULES, rule, "optimizer"), _number(e.FORMULAS, formula, "formula"), made)
    for name, value in values.items():
        setattr(made, name, _number(e.ROWS, value, "rows") if name == "rows" else value)
    return made


def _number(names: dict, name: str, what: str) -> int:
    if name not in names:
        raise UsageError(f"{what} '{name}' does not exist: expected one of {', '.join(names)}")
    return names[name]


def _table(options: TableOptions) -> e.Table:
    made = e.Table(name=options.name.encode(), dim=options.dim, rows=options.rows)
    if options.optimizer is not None:
        made.optimizer = c.pointer(options.optimizer)
    numbers = {"format": e.FORMATS, "initial": e.INITIAL, "when_full": e.WHEN_FULL, "placement": e.PLACES}
    known = [name for name, _ in e.Table._fields_]
    for name, value in options.words.items():
        if name not in known:
            raise UsageError(f"table '{options.name}' has no option '{name}'; options are {', '.join(known[4:])}")
        setattr(made, name, _number(numbers[name], value, name) if name in numbers else value)
    return made


class Allocator(Protocol):
    """Device memory for a set. Work on `stream` uses the memory."""

    def allocate(self, size: int, stream: int) -> Optional[int]:
        """An address aligned to 256 bytes; None if there is no memory."""

    def free(self, memory: int, stream: int) -> None: ...


def _callbacks(allocator: Allocator) -> tuple[Any, Any]:
    """Returns the callbacks by which the library allocates and frees memory with `allocator`."""
    return (
        e.ALLOCATE(lambda size, stream, _user: allocator.allocate(size, stream or 0)),
        e.FREE(lambda memory, _size, stream, _user: allocator.free(memory, stream or 0)),
    )


@dataclass
class Keys:
    """The keys of a batch by feature: addresses, counts, and type constants of _structs. `bases` are added to the
    addresses of keys, offsets and weights. If a batch has the same `layout` object as the previous one, only `bases`
    differ, and the other fields of the structs are not written again.
    """

    samples: int
    at: np.ndarray
    counts: np.ndarray
    type: int
    offsets_at: Optional[np.ndarray] = None
    offsets_type: int = s.I64
    weights_at: Optional[np.ndarray] = None
    layout: Any = None
    bases: tuple[int, int, int] = (0, 0, 0)


class EmbeddingSet:
    """Wraps hctr_embedding. Tensors are passed as addresses on the device `gpu` (-1: the CPU). Calls of several threads
    run one after another.
    """

    def __init__(
        self,
        tables: Sequence[TableOptions],
        features: Sequence[FeatureOptions],
        gpu: int = -1,
        allocator: Optional[Allocator] = None,
        **words: Any,
    ):
        self.tables, self.features, self.gpu = list(tables), list(features), gpu
        dims = {table.name: table.dim for table in tables}
        missing = [one.table for one in features if one.table not in dims]
        if missing:
            raise UsageError(f"there is no table '{missing[0]}'; tables are {', '.join(dims)}")
        self.dims = np.array([dims[one.table] for one in features], np.int64)
        self.pooled = np.array([one.pooling != "none" for one in features])
        self._all_pooled = bool(self.pooled.all())
        self._lock = threading.RLock()
        count = len(self.features)
        self._keys = np.zeros(count, _KEYS)
        self._vectors, self._weights = np.zeros(count, _ARRAY), np.zeros(count, _ARRAY)
        self._numbers = np.zeros((6, count, 2), np.int64)  # shapes and strides that the structs point to
        self._prepare_structs()
        table_structs = (e.Table * len(self.tables))(*[_table(one) for one in self.tables])
        feature_structs = (e.Feature * count)(
            *[
                e.Feature(
                    name=one.name.encode(),
                    table=one.table.encode(),
                    pooling=_number(e.POOLINGS, one.pooling, "pooling"),
                    weighted=one.weighted,
                )
                for one in self.features
            ]
        )
        disk = path_bytes(words.pop("disk", None))
        callbacks = () if allocator is None else _callbacks(allocator)
        words.update({name: c.cast(one, c.c_void_p) for name, one in zip(("allocate", "free"), callbacks)})
        options = e.EmbeddingOptions(
            tables=table_structs,
            table_count=len(self.tables),
            features=feature_structs,
            feature_count=count,
            gpu=gpu,
            disk=disk,
            **words,
        )
        self._handle = make("hctr_embedding_create", "hctr_embedding_destroy", "set of embeddings", c.byref(options))
        self._handle.kept = callbacks  # the handle's destruction calls these callbacks
        self._forward, self._update = library().hctr_embedding_forward, library().hctr_embedding_update
        self._batch, self._step = c.c_int64(), e.Update()  # the calls of each step reuse these structs

    def _prepare_structs(self) -> None:
        count, base = len(self.features), self._numbers.ctypes.data
        row = np.arange(count, dtype=np.uint64) * np.uint64(16)
        numbers = [base + k * count * 16 + row for k in range(6)]
        self._keys["size"] = c.sizeof(e.FeatureKeys)
        for k, name in enumerate(_PARTS):
            part = self._keys[name]
            part["dims"], part["gpu"], part["shape"] = 1, self.gpu, numbers[k]
        self._keys["weights"]["dtype"] = s.F32
        for array, dims, shape in ((self._vectors, 2, numbers[3]), (self._weights, 1, numbers[5])):
            array["dims"], array["gpu"], array["dtype"], array["shape"] = dims, self.gpu, s.F32, shape
        self._vectors["strides"] = numbers[4]
        self._numbers[4, :, 1] = 1
        self._numbers[3, :, 1] = self.dims
        # Views of fields of the structs above, to which each step assigns new values.
        self._keys_data, self._offsets_data, self._weights_data = (self._keys[part]["data"] for part in _PARTS)
        self._key_types, self._offset_types = self._keys["keys"]["dtype"], self._keys["offsets"]["dtype"]
        self._key_counts, self._weight_counts = self._numbers[0, :, 0], self._numbers[2, :, 0]
        self._offset_counts, self._vectors_at = self._numbers[1, :, 0], self._vectors["data"]
        self._row_counts, self._strides = self._numbers[3, :, 0], self._numbers[4, :, 0]
        self._keys_at, self._vector_structs_at = self._keys.ctypes.data, self._vectors.ctypes.data
        self._layout: Any = None  # the `layout` of the keys that the structs describe now
        # number of rows and stride, if they are the same for the vectors of all features; otherwise None
        self._shape: Any = None

    def _give_keys(self, keys: Keys) -> int:
        of_keys, of_offsets, of_weights = keys.bases
        np.add(keys.at, of_keys, self._keys_data)
        if keys.offsets_at is not None:
            np.add(keys.offsets_at, of_offsets, self._offsets_data)
        if keys.weights_at is not None:
            np.add(keys.weights_at, of_weights, self._weights_data)
        if keys.layout is None or keys.layout is not self._layout:
            self._layout = keys.layout
            self._key_types[:], self._offset_types[:] = keys.type, keys.offsets_type
            self._key_counts[:] = self._weight_counts[:] = keys.counts
            self._offset_counts[:] = keys.samples + 1
            if keys.offsets_at is None:
                self._offsets_data[:] = 0
            if keys.weights_at is None:
                self._weights_data[:] = 0
        return self._keys_at

    def _give_vectors(self, at: np.ndarray, rows: Any, stride: Any) -> int:
        self._vectors_at[:] = at
        shape = (rows, stride) if type(rows) is int and type(stride) is int else None
        if shape is None or shape != self._shape:
            self._shape = shape
            self._row_counts[:], self._strides[:] = rows, stride
        return self._vector_structs_at

    def rows_of(self, keys: Keys) -> Any:
        """The number of vectors of each feature: an array, or a single number if all features have the same number."""
        return keys.samples if self._all_pooled else np.where(self.pooled, keys.samples, keys.counts)

    def set_stream(self, stream: int) -> None:
        with self._lock:
            call("hctr_embedding_set_stream", self._handle.pointer, stream)

    def forward(self, keys: Keys, at: np.ndarray, stride: Any) -> int:
        batch = self._batch
        with self._lock:
            vectors = self._give_vectors(at, self.rows_of(keys), stride)
            status = self._forward(self._handle.pointer, keys.samples, self._give_keys(keys), vectors, batch)
            if status != 0:
                raise_status(status)
            return batch.value

    def prefetch(self, keys: Keys) -> int:
        batch = c.c_int64()
        with self._lock:
            call("hctr_embedding_prefetch", self._handle.pointer, keys.samples, self._give_keys(keys), batch)
        return batch.value

    def row_numbers(self, batch: int, to: np.ndarray) -> int:
        """Writes the row numbers of each feature's keys to int32 arrays at the addresses `to`, uint64 [features].
        Returns the number of removals so far.
        """
        removals = c.c_int64()
        with self._lock:
            call("hctr_embedding_row_numbers", self._handle.pointer, batch, to.ctypes.data, removals)
        return removals.value

    def prefetch_rows(self, keys: Keys, numbers: np.ndarray, removals: int) -> int:
        """Like prefetch(), for keys whose row numbers are known: int32 arrays at the addresses `numbers`."""
        batch = c.c_int64()
        with self._lock:
            given = self._give_keys(keys)
            at, pointer = numbers.ctypes.data, self._handle.pointer
            call("hctr_embedding_prefetch_rows", pointer, keys.samples, given, at, removals, batch)
        return batch.value

    def vectors(self, batch: int, rows: Any, at: np.ndarray, stride: Any) -> None:
        with self._lock:
            call("hctr_embedding_vectors", self._handle.pointer, batch, self._give_vectors(at, rows, stride))

    def lookup(self, keys: Keys, at: np.ndarray, stride: Any) -> None:
        with self._lock:
            vectors = self._give_vectors(at, self.rows_of(keys), stride)
            call("hctr_embedding_lookup", self._handle.pointer, keys.samples, self._give_keys(keys), vectors)

    def weight_gradients(self, batch: int, keys: Keys, at: np.ndarray, stride: Any, weights_at: Sequence[int]) -> None:
        with self._lock:
            self._weights["data"] = weights_at
            self._numbers[5, :, 0] = keys.counts
            vectors = self._give_vectors(at, self.rows_of(keys), stride)
            call("hctr_embedding_weight_gradients", self._handle.pointer, batch, vectors, self._weights.ctypes.data)

    def update(
        self,
        batch: int,
        rows: Any,
        at: np.ndarray,
        stride: Any,
        rate: float,
        loss_scale: float = 1.0,
        rate_on_device: Optional[int] = None,
        skip: Optional[int] = None,
    ) -> None:
        step = self._step
        with self._lock:
            step.learning_rate, step.loss_scale = rate, loss_scale
            step.rate_on_device, step.skip = rate_on_device, skip
            status = self._update(self._handle.pointer, batch, self._give_vectors(at, rows, stride), step)
            if status != 0:
                raise_status(status)

    def keys_of_batch(self, batch: int) -> np.ndarray:
        counts = np.zeros(len(self.tables), np.int64)
        with self._lock:
            call("hctr_embedding_keys_of_batch", self._handle.pointer, batch, counts.ctypes.data_as(e._i64))
        return counts

    def row_gradients(
        self,
        batch: int,
        rows: Any,
        at: np.ndarray,
        stride: Any,
        to: Sequence[tuple[int, int]],
        ends: bool = True,
    ) -> np.ndarray:
        """Sums the gradients of each row. `to`: for each table, the addresses to which the keys and the sums are
        written. Returns the number of rows of each table.
        """
        counts = np.zeros(len(self.tables), np.int64)
        structs = (e.RowGradients * len(to))(*[e.RowGradients(keys=keys, values=values) for keys, values in to])
        name = "hctr_embedding_row_gradients" if ends else "hctr_embedding_read_row_gradients"
        with self._lock:
            vectors = self._give_vectors(at, rows, stride)
            call(name, self._handle.pointer, batch, vectors, structs, counts.ctypes.data_as(e._i64))
        return counts

    def reserve(self, samples: int, keys: Sequence[int]) -> None:
        """Reserves memory for a batch of at most `samples` samples, and at most keys[f] keys of feature f."""
        counts = np.ascontiguousarray(keys, np.int64)
        if counts.shape != (len(self.features),):
            raise UsageError(f"keys of {counts.size} features were passed, but there are {len(self.features)} features")
        with self._lock:
            call("hctr_embedding_reserve", self._handle.pointer, samples, counts.ctypes.data_as(e._i64))

    def release(self, batch: int) -> None:
        with self._lock:
            call("hctr_embedding_release", self._handle.pointer, batch)

    @property
    def updates(self) -> int:
        number = c.c_int64()
        with self._lock:
            call("hctr_embedding_updates", self._handle.pointer, number)
        return number.value

    @updates.setter
    def updates(self, number: int) -> None:
        with self._lock:
            call("hctr_embedding_set_updates", self._handle.pointer, number)

    def rows(self, table: str) -> int:
        number = c.c_int64()
        with self._lock:
            call("hctr_embedding_rows", self._handle.pointer, table.encode(), number)
        return number.value

    def close(self) -> None:
        self._handle.close()
