"""Deltas of embedding tables in a Kafka topic: any trainer publishes them, any server reads them.

    producer = huge_ctr.stream.DeltaProducer("kafka1:9092", "ctr-deltas")
    producer.publish(2000, 1000, {"item": (keys, rows)}, removed={"item": gone}, run="my-run")

    source = huge_ctr.stream.DeltaSource("kafka1:9092", "ctr-deltas")
    delta = source.next(10)                                   # None: none arrived within 10 s
    delta.tables["item"].keys, delta.tables["item"].vectors
    source.taken()

Store.follow() of huge_ctr.store applies deltas to a store. These classes need librdkafka (Debian: librdkafka1); without
it they raise FileError, which says how to install it.
"""

from __future__ import annotations

import ctypes as c
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Union

import numpy as np

from . import _library
from . import _stream_structs as s
from ._arrays import array_of, keys_array, rows_array
from ._streams import counts, stream_options, waits
from .errors import UsageError

__all__ = ["Delta", "DeltaProducer", "DeltaSource", "DeltaTable", "DeltaWriter"]

def _slots(slots: Any, count: int) -> Optional[np.ndarray]:
    if slots is None:
        return None
    slots = np.ascontiguousarray(slots, np.int32)
    if slots.shape != (count,):
        raise UsageError(f"slots have shape {slots.shape}, expected ({count},)")
    return slots


class DeltaWriter:
    """Writes the parts of one delta, inside the block of DeltaProducer.delta()."""

    def __init__(self, pointer: Any, numbers: Mapping[str, int]):
        self._pointer, self._numbers = pointer, dict(numbers)

    def rows(self, table: str, keys: Any, rows: Any, *, slots: Any = None) -> None:
        """Adds changed and new rows: keys are integers [count], rows float32 [count, dim]. slots: int32 [count], only
        for a table with by_slot.

        Raises UsageError; DataError for a number that is not finite; FileError if the broker does not accept the rows.
        """
        keys = keys_array(keys)
        (wanted, keep), (vectors, keep_rows) = array_of(keys), array_of(rows_array(rows))
        slots = _slots(slots, len(keys))
        at = None if slots is None else slots.ctypes.data
        number = self._number(table)
        _library.call("hctr_delta_producer_rows", self._pointer, number, c.byref(wanted), c.byref(vectors), at)
        del keep, keep_rows

    def removed(self, table: str, keys: Any, *, slots: Any = None) -> None:
        keys = keys_array(keys)
        wanted, keep = array_of(keys)
        slots = _slots(slots, len(keys))
        at = None if slots is None else slots.ctypes.data
        _library.call("hctr_delta_producer_removed", self._pointer, self._number(table), c.byref(wanted), at)
        del keep

    def file(self, name: str, content: bytes) -> None:
        """Adds a file of the dense part."""
        _library.call("hctr_delta_producer_file", self._pointer, name.encode(), content, len(content))

    def _number(self, table: str) -> int:
        if table not in self._numbers:
            names = ", ".join(map(repr, self._numbers))
            raise UsageError(f"this delta has no table {table!r}; its tables are {names}")
        return self._numbers[table]


class DeltaProducer:
    """Publishes deltas. Needs no broker until the first delta.

    brokers: comma-separated "host:port" addresses. topic: must exist. message_bytes: maximum size of a message (0: 256
    KiB). queue_bytes: maximum size of the queue of unsent messages (0: 32 MiB). wait: maximum seconds that a call waits
    for the broker. librdkafka: further settings of the client. Not thread-safe, except for stop().
    """

    def __init__(
        self,
        brokers: str,
        topic: str,
        *,
        message_bytes: int = 0,
        queue_bytes: int = 0,
        wait: float = 30,
        librdkafka: Optional[Mapping[str, str]] = None,
    ):
        options = stream_options(brokers, topic, librdkafka, message_bytes=message_bytes, queue_bytes=queue_bytes)
        self._handle = _library.make(
            "hctr_delta_producer_create", "hctr_delta_producer_destroy", "producer", c.byref(options)
        )
        _library.call("hctr_delta_producer_set_wait", self._handle.pointer, wait)

    @contextmanager
    def delta(
        self,
        iteration: int,
        base: Optional[int],
        tables: Mapping[str, Union[int, Mapping[str, Any]]],
        *,
        run: str = "",
        written: float = 0,
    ) -> Iterator[DeltaWriter]:
        """Publishes a delta in parts:

            with producer.delta(2000, 1000, {"item": 16}) as delta:
                delta.rows("item", keys, rows)

        base: the iteration that the delta builds on; None: the delta is a whole model. tables: the dim of each table,
        or {"dim", "by_slot", "rows"}, where rows is the number of rows of the table after the delta. written: seconds
        since 1970 (0: now). Consumers see the delta when the block has ended; if the block raises, they never see any
        part of the delta. Raises UsageError; FileError if the broker does not confirm all messages in time.
        """
        structs = (s.DeltaTable * max(len(tables), 1))()
        for to, (name, about) in zip(structs, tables.items()):
            about = dict(about) if isinstance(about, Mapping) else {"dim": about}
            unknown = set(about) - {"dim", "by_slot", "rows"}
            if unknown:
                raise UsageError(f"table {name!r} has the unknown field {unknown.pop()!r}; fields are dim, by_slot, rows")
            to.size, to.name, to.dim = c.sizeof(s.DeltaTable), name.encode(), about.get("dim", 0)
            to.by_slot, to.rows = int(about.get("by_slot", False)), about.get("rows", -1)
        about = s.DeltaAbout(
            run=run.encode(),
            iteration=iteration,
            base=-1 if base is None else base,
            written=written,
            tables=c.cast(structs, c.POINTER(s.DeltaTable)),
            table_count=len(tables),
        )
        pointer = self._handle.pointer
        _library.call("hctr_delta_producer_begin", pointer, c.byref(about))
        yield DeltaWriter(pointer, {name: number for number, name in enumerate(tables)})
        _library.call("hctr_delta_producer_end", pointer)

    def publish(
        self,
        iteration: int,
        base: Optional[int],
        changed: Optional[Mapping[str, tuple[Any, Any]]] = None,
        *,
        removed: Optional[Mapping[str, Any]] = None,
        dims: Optional[Mapping[str, int]] = None,
        files: Optional[Mapping[str, bytes]] = None,
        run: str = "",
    ) -> None:
        """Publishes a whole delta. changed: {table: (keys, rows)}. removed: {table: keys}. files: {name: bytes}.

        dims: {table: dim}, required for tables without changed rows. Other arguments and errors: as for delta().
        """
        changed, removed = changed or {}, removed or {}
        rows = {table: rows_array(given[1]) for table, given in changed.items()}
        sizes = {**(dims or {}), **{table: of.shape[1] for table, of in rows.items()}}
        for table in removed:
            if table not in sizes:
                raise UsageError(f"table {table!r} has only removed keys: state its dim as dims={{{table!r}: …}}")
        with self.delta(iteration, base, sizes, run=run) as delta:
            for table, given in changed.items():
                delta.rows(table, given[0], rows[table])
            for table, keys in removed.items():
                delta.removed(table, keys)
            for name, content in (files or {}).items():
                delta.file(name, content)

    def stop(self) -> None:
        """Makes a call that is waiting, and all later calls, abandon their delta and raise FileError. Any thread may
        call stop().
        """
        _library.library().hctr_delta_producer_stop(self._handle.pointer)

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> DeltaProducer:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()


class DeltaTable(NamedTuple):
    """A table of a delta: keys int64 [n], vectors float32 [n, dim], removed int64 [m]. With by_slot: slots int32 [n],
    removed_slots int32 [m]. rows: rows of the whole table after the delta; None: unknown.
    """

    dim: int
    by_slot: bool
    rows: Optional[int]
    keys: np.ndarray
    vectors: np.ndarray
    removed: np.ndarray
    slots: Optional[np.ndarray]
    removed_slots: Optional[np.ndarray]


class Delta(NamedTuple):
    """A delta. base: the iteration that it builds on; None: the delta is a whole model. written: time of publication in
    seconds since 1970. tables, files: by name.
    """

    run: str
    iteration: int
    base: Optional[int]
    written: float
    tables: dict[str, DeltaTable]
    files: dict[str, bytes]


class DeltaSource:
    """Returns each delta of a topic exactly once, complete and in order. Not thread-safe.

    position: the `position` of an earlier source, to continue there (None: the topic's first message). run: deltas of
    other training runs are skipped (None: accepts every run). iteration: the iteration of the caller's tables (None:
    unknown). group: the consumer group to which stored() commits offsets. held_bytes: maximum size of buffered
    incomplete deltas and deltas whose base is missing (0: 1 GiB).
    """

    def __init__(
        self,
        brokers: str,
        topic: str,
        *,
        position: Optional[str] = None,
        run: Optional[str] = None,
        iteration: Optional[int] = None,
        group: Optional[str] = None,
        held_bytes: int = 0,
        queue_bytes: int = 0,
        librdkafka: Optional[Mapping[str, str]] = None,
    ):
        options = stream_options(
            brokers,
            topic,
            librdkafka,
            held_bytes=held_bytes,
            queue_bytes=queue_bytes,
            group=None if group is None else group.encode(),
        )
        self._handle = _library.make(
            "hctr_delta_source_create",
            "hctr_delta_source_destroy",
            "source",
            c.byref(options),
            None if position is None else position.encode(),
            None if run is None else run.encode(),
            -1 if iteration is None else iteration,
        )

    def next(self, seconds: Optional[float] = None) -> Optional[Delta]:
        """Returns the next delta; None if no delta arrived within `seconds`. seconds=None: no timeout.

        Returns the same delta again until taken() is called. An unreachable broker is not an error, but
        statistics["trouble"] describes it.
        """
        pointer = c.c_void_p()
        for wait in waits(seconds):
            _library.call("hctr_delta_source_next", self._handle.pointer, wait, c.byref(pointer))
            if pointer.value is not None:
                handle = _library.Handle(pointer, "hctr_delta_destroy", "delta")
                try:
                    return _delta_of(handle.pointer)
                finally:
                    handle.close()
        return None

    def taken(self) -> None:
        """Confirms that the caller has applied the delta of next()."""
        _library.call("hctr_delta_source_taken", self._handle.pointer)

    @property
    def position(self) -> str:
        """The position to resume from after the delta of next(). Store it in the same commit as the delta's rows."""
        text = c.c_char_p()
        _library.call("hctr_delta_source_position", self._handle.pointer, c.byref(text))
        return (text.value or b"").decode()

    def stored(self) -> None:
        """Commits `position` to the consumer group, if any. Call it after the position is stored."""
        _library.call("hctr_delta_source_stored", self._handle.pointer)

    def skip_to(self, iteration: int) -> None:
        """Sets the current iteration after the caller has updated the tables by other means, such as files."""
        _library.call("hctr_delta_source_skip_to", self._handle.pointer, iteration)

    def caught_up(self, seconds: float = 10) -> bool:
        """Whether all messages that the topic had at the first call have been read. Raises FileError if a broker does
        not answer within `seconds`.
        """
        answer = c.c_int32()
        _library.call("hctr_delta_source_caught_up", self._handle.pointer, seconds, c.byref(answer))
        return bool(answer.value)

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts of deltas and messages; "behind": unread messages (-1: unknown); "trouble": the last invalid message
        or, if there was none, the client's last error.
        """
        now, trouble = s.StreamStatistics(), c.c_char_p()
        _library.call("hctr_delta_source_statistics", self._handle.pointer, c.byref(now), c.byref(trouble))
        return {**counts(now), "trouble": (trouble.value or b"").decode()}

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> DeltaSource:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()


def _copy(address: Optional[int], ctype: Any, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(ctype)
    if not address or 0 in shape:
        return np.empty(shape, dtype)
    count = int(np.prod(shape))
    return np.frombuffer((ctype * count).from_address(address), dtype).reshape(shape).copy()


def _delta_of(pointer: Any) -> Delta:
    about, file_count = s.DeltaAbout(), c.c_size_t()
    _library.call("hctr_delta_read_about", pointer, c.byref(about), c.byref(file_count))
    tables: dict[str, DeltaTable] = {}
    for number in range(about.table_count):
        table, rows = s.DeltaTable(), s.DeltaRows()
        _library.call("hctr_delta_read_table", pointer, number, c.byref(table), c.byref(rows))
        tables[table.name.decode()] = DeltaTable(
            dim=table.dim,
            by_slot=bool(table.by_slot),
            rows=None if table.rows < 0 else table.rows,
            keys=_copy(rows.keys, c.c_int64, (rows.count,)),
            vectors=_copy(rows.vectors, c.c_float, (rows.count, table.dim)),
            removed=_copy(rows.removed, c.c_int64, (rows.removed_count,)),
            slots=_copy(rows.slots, c.c_int32, (rows.count,)) if table.by_slot else None,
            removed_slots=_copy(rows.removed_slots, c.c_int32, (rows.removed_count,)) if table.by_slot else None,
        )
    files: dict[str, bytes] = {}
    for number in range(file_count.value):
        name, content, size = c.c_char_p(), c.c_void_p(), c.c_size_t()
        _library.call("hctr_delta_read_file", pointer, number, c.byref(name), c.byref(content), c.byref(size))
        files[(name.value or b"").decode()] = c.string_at(content, size.value) if size.value else b""
    return Delta(
        run=(about.run or b"").decode(),
        iteration=about.iteration,
        base=None if about.base < 0 else about.base,
        written=about.written,
        tables=tables,
        files=files,
    )
