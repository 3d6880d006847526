"""A store that follows a topic."""

from __future__ import annotations

import ctypes as c
from typing import Any, Optional

from . import _library
from . import _stream_structs as s
from ._streams import counts, waits


class StoreStream:
    """A store that follows a topic; Store.follow() makes it.

    One thread at a time calls apply(), catch_up(), start() and stop(); any thread reads statistics.
    """

    def __init__(self, store_handle: Any, model: str, options: s.StoreStreamOptions):
        self._store = store_handle  # keeps the store alive as long as this object
        self._handle = _library.make(
            "hctr_store_stream_create",
            "hctr_store_stream_destroy",
            "stream",
            store_handle.pointer,
            model.encode(),
            c.byref(options),
        )

    def apply(self, seconds: Optional[float] = None) -> int:
        """Applies the deltas that arrive within `seconds` (None: no timeout). Returns the number of applied deltas."""
        applied = 0
        for wait in waits(seconds):
            applied += self._count("hctr_store_stream_apply", wait)
        return applied

    def catch_up(self, seconds: float = 30) -> int:
        """Applies all deltas that are in the topic now. Raises FileError if a broker does not answer in time."""
        return self._count("hctr_store_stream_catch_up", seconds)

    def start(self) -> None:
        """Starts a thread that applies deltas until stop(), close() or an error (statistics["error"])."""
        _library.call("hctr_store_stream_start", self._handle.pointer)

    def stop(self) -> None:
        _library.call("hctr_store_stream_stop", self._handle.pointer)

    @property
    def statistics(self) -> dict[str, Any]:
        """applied deltas; changed and removed rows; age_seconds of the newest applied delta (-1: none); the error that
        ended the thread; and the statistics of the source (DeltaSource.statistics).
        """
        now, error, trouble = s.StoreStreamState(), c.c_char_p(), c.c_char_p()
        now.stream.size = c.sizeof(s.StreamStatistics)
        pointer = self._handle.pointer
        _library.call("hctr_store_stream_statistics", pointer, c.byref(now), c.byref(error), c.byref(trouble))
        return {
            **counts(now.stream),
            "applied": now.applied,
            "rows": now.rows,
            "age_seconds": now.age_seconds,
            "error": (error.value or b"").decode(),
            "trouble": (trouble.value or b"").decode(),
        }

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> StoreStream:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()

    def _count(self, function: str, seconds: float) -> int:
        count = c.c_int64()
        _library.call(function, self._handle.pointer, seconds, c.byref(count))
        return count.value
