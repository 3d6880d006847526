"""The structs of include/hctr/c/c_stream.h, field by field, and the functions that take them."""

from __future__ import annotations

import ctypes as c

from ._structs import Array, Sized


class StreamOptions(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("brokers", c.c_char_p),
        ("topic", c.c_char_p),
        ("message_bytes", c.c_int64),
        ("queue_bytes", c.c_int64),
        ("held_bytes", c.c_int64),
        ("group", c.c_char_p),
        ("librdkafka", c.POINTER(c.c_char_p)),
        ("librdkafka_count", c.c_size_t),
    ]


class DeltaTable(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("dim", c.c_int64),
        ("by_slot", c.c_int32),
        ("rows", c.c_int64),
    ]


class DeltaAbout(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("run", c.c_char_p),
        ("iteration", c.c_int64),
        ("base", c.c_int64),
        ("written", c.c_double),
        ("tables", c.POINTER(DeltaTable)),
        ("table_count", c.c_size_t),
    ]


class DeltaRows(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("keys", c.c_void_p),
        ("slots", c.c_void_p),
        ("vectors", c.c_void_p),
        ("count", c.c_int64),
        ("removed", c.c_void_p),
        ("removed_slots", c.c_void_p),
        ("removed_count", c.c_int64),
    ]


class StreamStatistics(Sized):
    _fields_ = [("size", c.c_size_t)] + [
        (name, c.c_int64)
        for name in ("deltas", "messages", "bytes", "doubled", "damaged", "missing", "given_up", "held", "behind")
    ]


class StoreStreamOptions(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("stream", StreamOptions),
        ("updates", c.c_char_p),
        ("hps", c.c_int32),
        ("key_bytes", c.c_int32),
    ]


class StoreStreamState(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("stream", StreamStatistics),
        ("applied", c.c_int64),
        ("rows", c.c_int64),
        ("age_seconds", c.c_double),
    ]


_handle = c.c_void_p
_array = c.POINTER(Array)
_count = c.POINTER(c.c_int64)
_text = c.POINTER(c.c_char_p)
PROTOTYPES = {
    "hctr_delta_producer_create": [c.POINTER(StreamOptions), c.POINTER(_handle)],
    "hctr_delta_producer_set_wait": [_handle, c.c_double],
    "hctr_delta_producer_begin": [_handle, c.POINTER(DeltaAbout)],
    "hctr_delta_producer_rows": [_handle, c.c_size_t, _array, _array, c.c_void_p],
    "hctr_delta_producer_removed": [_handle, c.c_size_t, _array, c.c_void_p],
    "hctr_delta_producer_file": [_handle, c.c_char_p, c.c_char_p, c.c_size_t],
    "hctr_delta_producer_end": [_handle],
    "hctr_delta_source_create": [c.POINTER(StreamOptions), c.c_char_p, c.c_char_p, c.c_int64, c.POINTER(_handle)],
    "hctr_delta_source_next": [_handle, c.c_double, c.POINTER(_handle)],
    "hctr_delta_source_taken": [_handle],
    "hctr_delta_source_position": [_handle, _text],
    "hctr_delta_source_stored": [_handle],
    "hctr_delta_source_skip_to": [_handle, c.c_int64],
    "hctr_delta_source_caught_up": [_handle, c.c_double, c.POINTER(c.c_int32)],
    "hctr_delta_source_statistics": [_handle, c.POINTER(StreamStatistics), _text],
    "hctr_delta_read_about": [_handle, c.POINTER(DeltaAbout), c.POINTER(c.c_size_t)],
    "hctr_delta_read_table": [_handle, c.c_size_t, c.POINTER(DeltaTable), c.POINTER(DeltaRows)],
    "hctr_delta_read_file": [_handle, c.c_size_t, _text, c.POINTER(_handle), c.POINTER(c.c_size_t)],
    "hctr_store_stream_create": [_handle, c.c_char_p, c.POINTER(StoreStreamOptions), c.POINTER(_handle)],
    "hctr_store_stream_apply": [_handle, c.c_double, _count],
    "hctr_store_stream_catch_up": [_handle, c.c_double, _count],
    "hctr_store_stream_start": [_handle],
    "hctr_store_stream_stop": [_handle],
    "hctr_store_stream_statistics": [_handle, c.POINTER(StoreStreamState), _text, _text],
}
DESTROYERS = {
    "hctr_delta_producer_destroy": ([_handle], None),
    "hctr_delta_producer_stop": ([_handle], None),
    "hctr_delta_source_destroy": ([_handle], None),
    "hctr_delta_destroy": ([_handle], None),
    "hctr_store_stream_destroy": ([_handle], None),
}
