"""Code shared by producers, sources, and stores that follow a topic."""

from __future__ import annotations

import ctypes as c
import time
from typing import Any, Iterator, Mapping, Optional

from . import _library
from . import _stream_structs as s

_SLICE = 0.2  # maximum seconds that one call waits, because Ctrl-C takes effect only between calls


def stream_options(brokers: str, topic: str, librdkafka: Optional[Mapping[str, str]], **fields: Any) -> s.StreamOptions:
    settings, count = _library.texts(f"{name}={value}" for name, value in (librdkafka or {}).items())
    return s.StreamOptions(
        brokers=brokers.encode(),
        topic=topic.encode(),
        librdkafka=c.cast(settings, c.POINTER(c.c_char_p)),
        librdkafka_count=count,
        **fields,
    )


def waits(seconds: Optional[float]) -> Iterator[float]:
    """Yields timeouts of at most _SLICE until `seconds` have passed; None: without end. Yields at least one timeout."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = _SLICE if end is None else max(0.0, end - time.monotonic())
        yield min(left, _SLICE)
        if end is not None and time.monotonic() >= end:
            return


def counts(from_struct: s.StreamStatistics) -> dict[str, Any]:
    return {name: getattr(from_struct, name) for name, _type in s.StreamStatistics._fields_ if name != "size"}
