"""Look-ups in a store through a cache in GPU memory."""

from __future__ import annotations

import ctypes as c
from typing import Any, Mapping, Optional, Union

import numpy as np

from . import _library
from . import _structs as s
from ._arrays import array_of, keys_array
from ._dlpack import Borrowed, is_on_gpu
from .errors import UsageError

POOLING = {"sum": 0, "mean": 1, "sqrtn": 2}
_GPU_IF_ANY, _NO_GPU = -2, -1


class Cache:
    """A cache of a model's rows in GPU memory, above the levels of its store; Store.cache() makes it.

    Keys, offsets and answers may be on the host (NumPy arrays, lists, tensors) or on the cache's GPU (tensors with
    DLPack, int64 and float32). Answers equal those of a View, bit for bit, unless the store's config rounds cached rows
    or answers missed keys with default rows. Updates of the store reach the cache before Store.apply() returns. Without
    a GPU, the store's levels answer.

    stream: a cudaStream_t as an integer, in whose order look-ups read keys and write answers on the GPU. None: CUDA's
    default stream, and answers are complete when the call returns. Thread-safe.
    """

    def __init__(self, store_handle: Any, model: str, gpu: Union[int, str, None], view_of: Any):
        if gpu == "none":
            number = _NO_GPU
        elif gpu is None:
            number = _GPU_IF_ANY
        elif isinstance(gpu, int) and gpu >= 0:
            number = gpu
        else:
            raise UsageError(
                f'gpu is {gpu!r}, expected the index of a GPU, "none", or None for the first GPU if one exists'
            )
        self._view_of = view_of
        self._handle = _library.make(
            "hctr_store_cache_create",
            "hctr_store_cache_destroy",
            "cache",
            store_handle.pointer,
            model.encode(),
            number,
        )
        self.gpu: Optional[int] = self.statistics["gpu"]

    def view(self) -> Any:
        """A View of the version that the cache uses now."""
        return self._view_of(
            _library.make("hctr_store_cache_view", "hctr_store_view_destroy", "view", self._handle.pointer)
        )

    def get(
        self, table: Union[str, int], keys: Any, *, slot: int = 0, out: Any = None, stream: Optional[int] = None
    ) -> Any:
        """The rows of keys, float32 [keys, dim]; a key without a row gets the default row.

        out: memory for the rows on the host or on the GPU; None: a new NumPy array. Raises UsageError; DataError for a
        key without a row, if the model is configured so.
        """
        return self._look_up([(table, slot, keys, None, 0, out)], stream)[0]

    def pooled(
        self,
        table: Union[str, int],
        keys: Any,
        offsets: Any,
        combiner: str = "sum",
        *,
        slot: int = 0,
        out: Any = None,
        stream: Optional[int] = None,
    ) -> Any:
        """Pools the rows of keys[offsets[b]:offsets[b + 1]] by sum, mean or sqrtn; float32 [bags, dim]."""
        if combiner not in POOLING:
            raise UsageError(f"combiner {combiner!r}, expected one of {', '.join(POOLING)}")
        return self._look_up([(table, slot, keys, offsets, POOLING[combiner], out)], stream)[0]

    def get_tables(
        self,
        keys: Mapping[Union[str, int], Any],
        *,
        out: Optional[Mapping[Union[str, int], Any]] = None,
        stream: Optional[int] = None,
    ) -> dict[Union[str, int], Any]:
        """Looks up rows in several tables: {table: keys} becomes {table: rows}. All rows are from the same state of the
        store.
        """
        out = out or {}
        parts = [(table, 0, of, None, 0, out.get(table)) for table, of in keys.items()]
        return dict(zip(keys, self._look_up(parts, stream)))

    def activate(self, version: str) -> None:
        """Activates another version in the store. Before that, it loads the most recently used keys of the current
        version into the cache of the new version.
        """
        _library.call("hctr_store_cache_activate", self._handle.pointer, version.encode())

    @property
    def version(self) -> str:
        return self.statistics["version"]

    @property
    def statistics(self) -> dict[str, Any]:
        """version; gpu (None: no GPU); whole_tables: number of tables whose rows are all in the cache; keys and bytes
        in the cache; counts of requests, asked keys, misses, defaults, admitted, evicted and updated rows, and of
        requests that were repeated because of an update, or bypassed the cache.
        """
        now = s.StoreCacheState()
        _library.call("hctr_store_cache_statistics", self._handle.pointer, c.byref(now))
        state = {name: getattr(now, name) for name, _type in s.StoreCacheState._fields_ if name != "size"}
        return {**state, "version": now.version.decode(), "gpu": now.gpu if now.gpu >= 0 else None}

    def close(self) -> None:
        """Frees the memory of the cache. Later calls raise UsageError."""
        self._handle.close()

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()

    def _look_up(self, parts: list, stream: Optional[int]) -> list:
        view = self.view()
        keep: list = []
        structs = (s.StoreLookup * max(len(parts), 1))()
        answers = []
        for to, (table, slot, keys, offsets, pooling, out) in zip(structs, parts):
            number, dim = view._number(table)
            to.size, to.table, to.slot, to.pooling = c.sizeof(s.StoreLookup), number, slot, pooling
            to.keys, count = _integers(keys, f"keys of table {table!r}", keep)
            if offsets is not None:
                to.offsets, bounds = _integers(offsets, f"offsets of table {table!r}", keep)
                count = max(bounds - 1, 0)
            if out is None:
                out = np.empty((count, dim), np.float32)
            to.vectors = _floats(out, f"out of table {table!r}", keep)
            answers.append(out)
        pointer = c.cast(structs, c.c_void_p)
        _library.call("hctr_store_cache_look_up", self._handle.pointer, pointer, len(parts), stream, None)
        return answers


def _integers(values: Any, what: str, keep: list) -> tuple[s.Array, int]:
    if is_on_gpu(values):
        tensor = Borrowed(values, what)
        keep.append(tensor)
        return tensor.array, tensor.shape[0] if tensor.shape else 0
    host = keys_array(values)
    made, pointed_to = array_of(host)
    keep.append(pointed_to)
    return made, len(host)


def _floats(out: Any, what: str, keep: list) -> s.Array:
    if not isinstance(out, np.ndarray):
        tensor = Borrowed(out, what, written=True)
        keep.append(tensor)
        return tensor.array
    if out.dtype != np.float32:
        raise UsageError(f"{what} has dtype {out.dtype}, expected float32")
    made, pointed_to = array_of(out)
    keep.append(pointed_to)
    return made
