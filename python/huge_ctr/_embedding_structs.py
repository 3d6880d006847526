"""The embedding structs of include/hctr/huge_ctr.h, and the signatures of their functions."""

from __future__ import annotations

import ctypes as c

from . import _structs as s

_handle = c.c_void_p
_i64 = c.POINTER(c.c_int64)

SUM, MEAN, SQRTN, MAX, NONE = range(5)
POOLINGS = {"sum": SUM, "mean": MEAN, "sqrtn": SQRTN, "max": MAX, "none": NONE}
RULES = {
    name: number
    for number, name in enumerate(
        "none sgd momentum_sgd nesterov adagrad rmsprop ftrl adam adamw adamax adadelta".split()
    )
}
ROWS = {"local": 0, "global": 1, "lazy_global": 2}
FORMULAS = {"config": 0, "torch": 1, "keras": 2}
INITIAL = {"uniform": 0, "normal": 1, "constant": 2, "by_rows": 3}
FORMATS = {"f32": 0, "f16": 1, "bf16": 2}
PLACES = {"automatic": 0, "whole": 1, "spread": 2, "replicated": 3}
WHEN_FULL = {"error": 0, "evict_lru": 1, "evict_lfu": 2, "ignore": 3}


class Optimizer(s.Sized):
    _fields_ = (
        [("size", c.c_size_t)]
        + [(name, c.c_int32) for name in ("rule", "rows", "formula", "row_wise")]
        + [
            (name, c.c_float)
            for name in (
                "beta1 beta2 epsilon momentum smoothing initial beta lambda1 lambda2 weight_decay most_gradient".split()
            )
        ]
    )


class Table(s.Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("dim", c.c_int64),
        ("rows", c.c_int64),
        ("format", c.c_int32),
        ("optimizer", c.POINTER(Optimizer)),
        ("initial", c.c_int32),
        ("initial_value", c.c_float),
        ("most_rows", c.c_int64),
        ("when_full", c.c_int32),
        ("min_count", c.c_int64),
        ("admit_probability", c.c_double),
        ("expire_after", c.c_int64),
        ("marks_changes", c.c_int32),
        ("placement", c.c_int32),
        ("whole_on", c.c_int32),
    ]


class Feature(s.Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("table", c.c_char_p),
        ("pooling", c.c_int32),
        ("weighted", c.c_int32),
    ]


class EmbeddingOptions(s.Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("tables", c.POINTER(Table)),
        ("table_count", c.c_size_t),
        ("features", c.POINTER(Feature)),
        ("feature_count", c.c_size_t),
        ("gpu", c.c_int32),
        ("stream", c.c_void_p),
        ("threads", c.c_int32),
        ("seed", c.c_uint64),
        ("batches", c.c_int32),
        ("most_keys", c.c_int64),
        ("device_bytes", c.c_int64),
        ("host_bytes", c.c_int64),
        ("disk", c.c_char_p),
        ("disk_bytes", c.c_int64),
        ("rank", c.c_void_p),
        ("allocate", c.c_void_p),
        ("free", c.c_void_p),
        ("allocator_user", c.c_void_p),
    ]


class FeatureKeys(s.Sized):
    _fields_ = [("size", c.c_size_t), ("keys", s.Array), ("offsets", s.Array), ("weights", s.Array)]


class Update(s.Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("learning_rate", c.c_float),
        ("rate_on_device", c.c_void_p),
        ("loss_scale", c.c_float),
        ("skip", c.c_void_p),
    ]


class RowGradients(s.Sized):
    _fields_ = [("size", c.c_size_t), ("keys", c.c_void_p), ("values", c.c_void_p)]


ENVIRONMENT = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)


class Join(s.Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("ranks", c.c_int32),
        ("address", c.c_char_p),
        ("port", c.c_int32),
        ("process", c.c_int32),
        ("processes", c.c_int32),
        ("secret", c.c_char_p),
        ("call_seconds", c.c_int32),
        ("join_seconds", c.c_int32),
        ("silence_seconds", c.c_int32),
        ("environment", c.c_void_p),
        ("environment_user", c.c_void_p),
        *s.LOGGING,
    ]


ALLOCATE = c.CFUNCTYPE(c.c_void_p, c.c_size_t, c.c_void_p, c.c_void_p)  # arguments: bytes, stream, user
FREE = c.CFUNCTYPE(None, c.c_void_p, c.c_size_t, c.c_void_p, c.c_void_p)  # arguments: memory, bytes, stream, user
ROWS_SINK = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p), c.c_int32)
FIGURE = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_int64)

PROTOTYPES = {
    "hctr_ranks_create": [c.POINTER(Join), c.POINTER(_handle)],
    "hctr_optimizer_defaults": [c.c_int32, c.c_int32, c.POINTER(Optimizer)],
    "hctr_embedding_create": [c.POINTER(EmbeddingOptions), c.POINTER(_handle)],
    "hctr_embedding_set_stream": [_handle, c.c_void_p],
    "hctr_embedding_forward": [_handle, c.c_int64, c.c_void_p, c.c_void_p, _i64],
    "hctr_embedding_prefetch": [_handle, c.c_int64, c.c_void_p, _i64],
    "hctr_embedding_row_numbers": [_handle, c.c_int64, c.c_void_p, _i64],
    "hctr_embedding_prefetch_rows": [_handle, c.c_int64, c.c_void_p, c.c_void_p, c.c_int64, _i64],
    "hctr_embedding_vectors": [_handle, c.c_int64, c.c_void_p],
    "hctr_embedding_reserve": [_handle, c.c_int64, _i64],
    "hctr_embedding_reserve_lookup": [_handle, c.c_int64, _i64],
    "hctr_embedding_weight_gradients": [_handle, c.c_int64, c.c_void_p, c.c_void_p],
    "hctr_embedding_update": [_handle, c.c_int64, c.c_void_p, c.POINTER(Update)],
    "hctr_embedding_keys_of_batch": [_handle, c.c_int64, _i64],
    "hctr_embedding_row_gradients": [_handle, c.c_int64, c.c_void_p, c.c_void_p, _i64],
    "hctr_embedding_read_row_gradients": [_handle, c.c_int64, c.c_void_p, c.c_void_p, _i64],
    "hctr_embedding_release": [_handle, c.c_int64],
    "hctr_embedding_lookup": [_handle, c.c_int64, c.c_void_p, c.c_void_p],
    "hctr_embedding_updates": [_handle, _i64],
    "hctr_embedding_set_updates": [_handle, c.c_int64],
    "hctr_embedding_rows": [_handle, c.c_char_p, _i64],
    "hctr_embedding_export": [_handle, c.c_char_p, c.c_int, c.c_int, ROWS_SINK, c.c_void_p],
    "hctr_embedding_note_exported": [_handle],
    "hctr_embedding_import": [
        _handle,
        c.c_char_p,
        c.POINTER(s.Array),
        c.POINTER(s.Array),
        c.POINTER(s.Array),
        c.c_int32,
    ],
    "hctr_embedding_remove": [_handle, c.c_char_p, c.c_void_p, c.c_int64, _i64],
    "hctr_embedding_removed_keys": [_handle, c.c_char_p, c.c_void_p, c.c_int64, _i64],
    "hctr_embedding_figures": [_handle, c.c_char_p, FIGURE, c.c_void_p],
    "hctr_embedding_save": [_handle, c.c_char_p],
    "hctr_embedding_load": [_handle, c.c_char_p],
}
DESTROYERS = {"hctr_embedding_destroy": ([_handle], None), "hctr_rank_destroy": ([_handle], None)}
