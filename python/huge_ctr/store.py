"""Embedding tables for inference: rows from memory and files, with versions and updates by training deltas.

    store = huge_ctr.store.Store("store.json")               # or the ps.json of HugeCTR's parameter server
    view = store.view("ctr")                                  # its active version
    rows = view.get("deep_emb", [7, 42])                      # float32 [2, dim]
    cache = store.cache("ctr")                                # the same rows through a cache in GPU memory
    model = huge_ctr.load("runs/first", tables=view)          # scores with the rows of the store
    store.update("ctr", "models/ctr")                         # the deltas of training at a prefix

HPS and ParameterServerConfig implement the API of HugeCTR's parameter server.
"""

from __future__ import annotations

import ctypes as c
import json
import os
import weakref
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _library
from . import _stream_structs, _structs as s
from ._arrays import array_of, keys_array, rows_array
from ._hps import (
    HPS,
    DatabaseOverflowPolicy_t,
    DatabaseType_t,
    EmbeddingCacheType_t,
    InferenceParams,
    ParameterServerConfig,
    PersistentDatabaseParams,
    UpdateSourceParams,
    UpdateSourceType_t,
    VolatileDatabaseParams,
)
from ._store_cache import POOLING, Cache
from ._store_stream import StoreStream
from ._streams import stream_options
from .errors import UsageError

__all__ = [
    "Cache",
    "HPS",
    "DatabaseOverflowPolicy_t",
    "DatabaseType_t",
    "EmbeddingCacheType_t",
    "InferenceParams",
    "ParameterServerConfig",
    "PersistentDatabaseParams",
    "Store",
    "StoreStream",
    "UpdateSourceParams",
    "UpdateSourceType_t",
    "View",
    "VolatileDatabaseParams",
]


class View:
    """One version of a model. A view stays valid after another version is activated, and after the store is closed.

    version: the version's name. tables: name to {"dim", "by_slot", "default_value"}. Thread-safe.
    """

    def __init__(self, handle: Any):
        self._handle = handle
        version, count = c.c_char_p(), c.c_size_t()
        _library.call("hctr_store_view_version", handle.pointer, c.byref(version), c.byref(count))
        self.version = (version.value or b"").decode()
        self.tables: dict[str, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        for number in range(count.value):
            table = s.StoreTable()
            _library.call("hctr_store_view_table", handle.pointer, number, c.byref(table))
            name = table.name.decode()
            self._numbers[name] = number
            self.tables[name] = {
                "dim": table.dim,
                "by_slot": bool(table.by_slot),
                "default_value": table.default_value,
            }

    @property
    def pointer(self) -> Any:
        return self._handle.pointer

    def get(
        self, table: Union[str, int], keys: Any, *, slot: int = 0, out: Optional[np.ndarray] = None, found: bool = False
    ) -> Any:
        """The rows of keys, float32 [keys, dim]; a key without a row gets the default row. found=True also returns bool
        [keys].

        out: memory for the rows, float32 [keys, dim] with contiguous rows. Raises UsageError; DataError for a key
        without a row, if the model is configured so.
        """
        number, dim = self._number(table)
        keys = keys_array(keys)
        if out is None:
            out = np.empty((len(keys), dim), np.float32)
        elif out.dtype != np.float32:
            raise UsageError(f"out has dtype {out.dtype}, expected float32")
        there = np.zeros(len(keys), np.uint8)
        (wanted, keep), (rows, keep_rows) = array_of(keys), array_of(out)
        self.get_into(number, wanted, rows, slot, there.ctypes.data)
        del keep, keep_rows
        return (out, there.astype(bool)) if found else out

    def get_into(self, number: int, keys: s.Array, rows: s.Array, slot: int = 0, found: Any = None) -> None:
        """Like get(), with the arrays as C structs."""
        _library.call("hctr_store_get", self.pointer, number, slot, c.byref(keys), c.byref(rows), found, None)

    def pooled(self, table: Union[str, int], keys: Any, offsets: Any, combiner: str = "sum", *, slot: int = 0) -> Any:
        """Pools the rows of keys[offsets[b]:offsets[b + 1]] by sum, mean or sqrtn; float32 [bags, dim]."""
        if combiner not in POOLING:
            raise UsageError(f"combiner {combiner!r} does not exist: expected one of {', '.join(POOLING)}")
        number, dim = self._number(table)
        keys, offsets = keys_array(keys), keys_array(offsets)
        out = np.empty((max(len(offsets) - 1, 0), dim), np.float32)
        (wanted, a), (bounds, b), (vectors, d) = array_of(keys), array_of(offsets), array_of(out)
        _library.call(
            "hctr_store_get_pooled",
            self.pointer,
            number,
            slot,
            c.byref(wanted),
            c.byref(bounds),
            POOLING[combiner],
            c.byref(vectors),
            None,
        )
        del a, b, d
        return out

    def close(self) -> None:
        self._handle.close()

    def _number(self, table: Union[str, int]) -> tuple[int, int]:
        names = list(self._numbers)
        if isinstance(table, int):
            if not 0 <= table < len(names):
                raise UsageError(f"table {table} does not exist: the version has {len(names)} tables")
            return table, self.tables[names[table]]["dim"]
        if table not in self._numbers:
            raise UsageError(f"no table is named {table!r}; tables are {', '.join(map(repr, names))}")
        return self._numbers[table], self.tables[table]["dim"]


class Store:
    """A store: embedding tables in levels of memory and files.

    config: a store.json or a ps.json; or a dict of its fields; None: a store in memory, without models.
    loads: loads the config's models that the store lacks, and applies their deltas.

    Raises ConfigError with every problem; FileError, DataError.
    """

    def __init__(self, config: Union[str, os.PathLike, Mapping[str, Any], None] = None, *, loads: bool = True):
        text = None
        if config is None or isinstance(config, Mapping):
            text = json.dumps(dict(config or {})).encode()
        options = s.StoreOptions(
            config=None if text else _library.path_bytes(config),
            config_text=text,
            loads=0 if loads else 1,
            **_library.common_options(),
        )
        self._handle = _library.make("hctr_store_open", "hctr_store_destroy", "store", c.byref(options))
        self._streams: weakref.WeakSet[StoreStream] = weakref.WeakSet()
        self._caches: weakref.WeakSet[Cache] = weakref.WeakSet()

    def load(
        self,
        name: str,
        model: Union[str, os.PathLike, None] = None,
        *,
        version: str = "1",
        tables: Optional[Mapping[str, Any]] = None,
        miss_is_error: bool = False,
    ) -> None:
        """Loads a version in addition to existing versions. The model's first version serves requests immediately.

        model: a run folder, a checkpoint or a snapshot_prefix. Otherwise tables: name to (keys, rows), or to a dict in
        the form of store.json ("dim" with "model_file", "file", or "keys" and "vectors", and "default_value"). "keys"
        and "vectors" may also be arrays.
        """
        keep: list = []
        sources = (s.StoreSource * max(len(tables or {}), 1))()
        for to, (table, given) in zip(sources, (tables or {}).items()):
            _fill_source(to, table, given, keep)
        options = s.StoreModel(
            name=name.encode(),
            version=version.encode(),
            model=_library.path_bytes(model),
            tables=c.cast(sources, c.c_void_p),
            table_count=len(tables or {}),
            miss_is_error=int(miss_is_error),
        )
        _library.call("hctr_store_load", self._handle.pointer, c.byref(options))

    def activate(self, name: str, version: str) -> None:
        """Activates a version. Views that are made later use it."""
        _library.call("hctr_store_activate", self._handle.pointer, name.encode(), version.encode())

    def unload(self, name: str, version: str) -> None:
        _library.call("hctr_store_unload", self._handle.pointer, name.encode(), version.encode())

    def view(self, name: str) -> View:
        pointer = self._handle.pointer
        return View(
            _library.make("hctr_store_view_create", "hctr_store_view_destroy", "view", pointer, name.encode())
        )

    def cache(self, name: str, gpu: Union[int, str, None] = None) -> Cache:
        """Returns a cache of a model's rows in GPU memory, with the "gpu_cache" section of the config.

        gpu: the index of a GPU; "none": the store's levels answer; None: GPU 0, or "none" if there is no GPU. Raises
        DeviceError if the GPU does not exist or has not enough memory.
        """
        cache = Cache(self._handle, name, gpu, View)
        self._caches.add(cache)
        return cache

    def update(self, name: str, prefix: Union[str, os.PathLike]) -> int:
        """Applies the training deltas at a prefix that are newer than the active version. Returns the number of applied
        deltas.
        """
        return self._count("hctr_store_update_from", name.encode(), _library.path_bytes(prefix))

    def apply_delta(self, name: str, folder: Union[str, os.PathLike]) -> bool:
        """Applies a delta. Returns False if the active version already contains it."""
        return bool(self._count("hctr_store_apply_delta", name.encode(), _library.path_bytes(folder)))

    def apply(
        self,
        name: str,
        iteration: int,
        changed: Optional[Mapping[str, tuple[Any, Any]]] = None,
        removed: Optional[Mapping[str, Any]] = None,
        *,
        slot: int = 0,
    ) -> bool:
        """Applies an update atomically. changed: {table: (keys, rows)}. removed: {table: keys}.

        iteration: the iteration of the rows after the update. Returns False, without changes, if `iteration` is not
        later than the active version's iteration.
        """
        changed, removed = changed or {}, removed or {}
        names = list(dict.fromkeys([*changed, *removed]))
        keep: list = []
        updates = (s.StoreUpdate * max(len(names), 1))()
        for to, table in zip(updates, names):
            to.size, to.table, to.slot = c.sizeof(s.StoreUpdate), table.encode(), slot
            if table in changed:
                keys, rows = changed[table]
                to.keys, to.vectors = _kept(keys_array(keys), keep), _kept(rows_array(rows), keep)
            if table in removed:
                to.removed = _kept(keys_array(removed[table]), keep)
        pointer = c.cast(updates, c.c_void_p)
        return bool(self._count("hctr_store_apply", name.encode(), iteration, pointer, len(names)))

    def refresh(self) -> bool:
        """Adopts the commits of the process that updates this store: for "shared_memory", or RocksDB with "open":
        "follow". Returns whether there were any.

        Existing views of shared memory change to the new rows. With RocksDB, take a new view if the result is True. If
        the process that updates shared memory has ended, this process takes over: `writable` becomes True. In other
        stores, refresh() changes nothing and returns False.
        """
        return self._flag("hctr_store_refresh")

    @property
    def writable(self) -> bool:
        """Whether this process may load and update. False: another process does so, or the store is open read-only."""
        return self._flag("hctr_store_writable")

    def follow(
        self,
        name: str,
        brokers: str,
        topic: str = "",
        *,
        updates: Union[str, os.PathLike, None] = None,
        hps: bool = False,
        key_bytes: int = 8,
        group: Optional[str] = None,
        held_bytes: int = 0,
        queue_bytes: int = 0,
        librdkafka: Optional[Mapping[str, str]] = None,
    ) -> StoreStream:
        """Returns a stream that applies a Kafka topic to a model: store.follow("ctr", "kafka1:9092", "deltas").start().

        updates: a snapshot_prefix; if the topic lacks a delta, deltas from these files are applied instead. hps: reads
        topics and messages of HugeCTR's parameter server, whose keys have key_bytes bytes. group: consumer group to
        which offsets are committed. held_bytes: maximum size of buffered incomplete deltas and deltas whose base is
        missing (0: 1 GiB). queue_bytes: maximum size of the queue of unread messages (0: 32 MiB). librdkafka: further
        settings of the client.
        """
        options = _stream_structs.StoreStreamOptions(
            stream=stream_options(
                brokers,
                topic,
                librdkafka,
                held_bytes=held_bytes,
                queue_bytes=queue_bytes,
                group=None if group is None else group.encode(),
            ),
            updates=_library.path_bytes(updates),
            hps=int(hps),
            key_bytes=key_bytes,
        )
        stream = StoreStream(self._handle, name, options)
        self._streams.add(stream)
        return stream

    @property
    def models(self) -> list[dict[str, Any]]:
        """The versions of all models, with the counts of their updates."""
        return self._states("hctr_store_models", s.STORE_MODELS, s.StoreModelState)

    @property
    def levels(self) -> list[dict[str, Any]]:
        """Statistics of each level of each table: rows, bytes, keys looked up, keys found."""
        return self._states("hctr_store_levels", s.STORE_LEVELS, s.StoreLevelState)

    def verify(self) -> int:
        """Reads every row of the files. Returns the number of rows. Raises DataError with the name of the damaged part.
        """
        return self._count("hctr_store_verify")

    def compact(self) -> int:
        """Rewrites the files without their free slots. Returns the bytes freed."""
        return self._count("hctr_store_compact")

    def close(self) -> None:
        """Ends streams and caches, and frees the memory that no view uses. Later calls raise UsageError."""
        for user in [*self._streams, *self._caches]:
            user.close()
        self._handle.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()

    def _count(self, function: str, *arguments: Any) -> int:
        count = c.c_int64()
        _library.call(function, self._handle.pointer, *arguments, c.byref(count))
        return count.value

    def _flag(self, function: str) -> bool:
        flag = c.c_int32()
        _library.call(function, self._handle.pointer, c.byref(flag))
        return bool(flag.value)

    def _states(self, function: str, callback: Any, struct: Any) -> list[dict[str, Any]]:
        states: list[dict[str, Any]] = []

        def add(_user: Any, state: Any) -> None:
            one = {name: getattr(state[0], name) for name, _type in struct._fields_ if name != "size"}
            states.append({name: value.decode() if isinstance(value, bytes) else value for name, value in one.items()})

        _library.call(function, self._handle.pointer, callback(add), None)
        return states


def _kept(values: np.ndarray, keep: list) -> s.Array:
    made, pointed_to = array_of(values)
    keep.append(pointed_to)
    return made


def _fill_source(to: Any, table: str, given: Any, keep: list) -> None:
    fields: Sequence[str] = ("dim", "model_file", "file", "keys", "vectors", "default_value", "by_slot")
    if not isinstance(given, Mapping):
        given = dict(zip(("keys", "vectors"), given))
    unknown = [name for name in given if name not in fields]
    if unknown:
        raise UsageError(f"table {table!r}: unknown field {unknown[0]!r}; fields are {', '.join(fields)}")
    to.size, to.name = c.sizeof(s.StoreSource), table.encode()
    to.dim, to.default_value = given.get("dim", 0), given.get("default_value", 0)
    to.by_slot = int(given.get("by_slot", False))
    to.model_file, to.file = (_library.path_bytes(given.get(name)) for name in ("model_file", "file"))
    keys, vectors = given.get("keys"), given.get("vectors")
    if isinstance(keys, (str, os.PathLike)):
        to.keys_file, to.vectors_file = _library.path_bytes(keys), _library.path_bytes(vectors)
    elif keys is not None:
        rows = rows_array(vectors)
        to.keys, to.vectors = _kept(keys_array(keys), keep), _kept(rows, keep)
        to.dim = given.get("dim", rows.shape[1])
