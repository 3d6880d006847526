"""The structs of include/hctr/huge_ctr.h and of Arrow's C data interface, field by field."""

from __future__ import annotations

import ctypes as c
from typing import Any

F32, I32, U32, I64, U64 = range(5)
DTYPE_NAMES = ("float32", "int32", "uint32", "int64", "uint64")
DENSE, KEYS, SCORES, LABELS = range(4)
DEVICES = {"auto": 0, "cpu": 1, "cuda": 2}

LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
NAMED = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_double)
FILE = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
IMPORTANCE = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_double, c.c_double)


# fields that several option structs have
CHANGES = [("changes", c.POINTER(c.c_char_p)), ("change_count", c.c_size_t)]
DEVICE = [("device", c.c_int32), ("threads", c.c_int32)]
LOGGING = [("log", LOG), ("log_user", c.c_void_p)]
ENVIRONMENT = [("getenv", c.c_void_p), ("setenv", c.c_void_p)]


class Array(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int32),
        ("dims", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("gpu", c.c_int32),
    ]


class Sized(c.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields: Any):
        super().__init__(size=c.sizeof(self), **fields)


class ModelOptions(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("model", c.c_char_p),
        ("config", c.c_char_p),
        *CHANGES,
        *DEVICE,
        ("most_samples", c.c_int64),
        *LOGGING,
        *ENVIRONMENT,
        ("tables", c.c_void_p),
    ]


class Tensor(Sized):
    _fields_ = [("size", c.c_size_t), ("role", c.c_int32), ("name", c.c_char_p), ("columns", c.c_int64)]


class Input(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("data", Array),
        ("offsets", Array),
        ("stream", c.c_void_p),
    ]


class Output(Sized):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("scores", Array), ("stream", c.c_void_p)]


SCORED_ROWS = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.POINTER(Output), c.c_size_t)
ENCODED = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.POINTER(Input), c.c_size_t)


class UseOptions(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("model", c.c_char_p),
        ("config", c.c_char_p),
        *CHANGES,
        ("data", c.c_char_p),
        *DEVICE,
        ("allow_unmatched", c.c_int32),
        *LOGGING,
        *ENVIRONMENT,
        ("stop", c.c_void_p),
    ]


class UseSummary(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("iteration", c.c_int64),
        ("samples", c.c_int64),
        ("skipped_records", c.c_int64),
        ("seconds", c.c_double),
    ]


class TrainerOptions(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("config", c.c_char_p),
        ("config_text", c.c_char_p),
        *CHANGES,
        ("run_folder", c.c_char_p),
        ("resume", c.c_char_p),
        *DEVICE,
        *LOGGING,
        ("allow_unmatched", c.c_int32),
        *ENVIRONMENT,
    ]


class MetricValue(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class TrainerState(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("iteration", c.c_int64),
        ("samples", c.c_int64),
        ("loss", c.c_double),
        ("mean_loss", c.c_double),
        ("learning_rate", c.c_double),
        ("samples_per_second", c.c_double),
        ("seconds", c.c_double),
        ("evaluated_at", c.c_int64),
        ("passes", c.c_int64),
        ("epoch", c.c_double),
        ("metrics", c.POINTER(MetricValue)),
        ("metric_count", c.c_size_t),
    ]


STATE_CALLBACK = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(TrainerState))


class FitOptions(Sized):
    _fields_ = [("size", c.c_size_t)] + [
        (name, c.c_int64) for name in ("iteration", "passes", "display", "eval_interval", "snapshot")
    ]


class WeightFiles(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("dense", c.c_char_p),
        ("dense_states", c.c_char_p),
        ("table_names", c.POINTER(c.c_char_p)),
        ("table_files", c.POINTER(c.c_char_p)),
        ("table_count", c.c_size_t),
        ("table_state_names", c.POINTER(c.c_char_p)),
        ("table_state_files", c.POINTER(c.c_char_p)),
        ("table_state_count", c.c_size_t),
    ]


class StoreOptions(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("config", c.c_char_p),
        ("config_text", c.c_char_p),
        ("loads", c.c_int32),
        *LOGGING,
        *ENVIRONMENT,
    ]


class StoreSource(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("dim", c.c_int64),
        ("model_file", c.c_char_p),
        ("file", c.c_char_p),
        ("keys_file", c.c_char_p),
        ("vectors_file", c.c_char_p),
        ("keys", Array),
        ("vectors", Array),
        ("default_value", c.c_float),
        ("by_slot", c.c_int32),
    ]


class StoreModel(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("version", c.c_char_p),
        ("model", c.c_char_p),
        ("tables", c.c_void_p),
        ("table_count", c.c_size_t),
        ("miss_is_error", c.c_int32),
    ]


class StoreUpdate(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("table", c.c_char_p),
        ("slot", c.c_int32),
        ("keys", Array),
        ("vectors", Array),
        ("removed", Array),
    ]


class StoreModelState(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("model", c.c_char_p),
        ("version", c.c_char_p),
        ("active", c.c_int32),
        ("iteration", c.c_int64),
        ("updates", c.c_int64),
        ("updated_rows", c.c_int64),
        ("removed_rows", c.c_int64),
        ("age_seconds", c.c_double),
        ("waiting", c.c_int64),
    ]


class StoreLevelState(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("model", c.c_char_p),
        ("version", c.c_char_p),
        ("table", c.c_char_p),
        ("level", c.c_char_p),
        ("rows", c.c_int64),
        ("bytes", c.c_int64),
        ("asked", c.c_int64),
        ("found", c.c_int64),
    ]


class StoreTable(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("dim", c.c_int64),
        ("by_slot", c.c_int32),
        ("default_value", c.c_float),
    ]


class StoreLookup(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("table", c.c_size_t),
        ("slot", c.c_int32),
        ("keys", Array),
        ("offsets", Array),
        ("pooling", c.c_int32),
        ("vectors", Array),
    ]


class StoreCacheState(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("version", c.c_char_p),
        ("gpu", c.c_int32),
        ("whole_tables", c.c_int64),
        ("keys", c.c_int64),
        ("bytes", c.c_int64),
        ("requests", c.c_int64),
        ("asked", c.c_int64),
        ("misses", c.c_int64),
        ("defaults", c.c_int64),
        ("admitted", c.c_int64),
        ("evicted", c.c_int64),
        ("updated", c.c_int64),
        ("repeated", c.c_int64),
        ("bypassed", c.c_int64),
    ]


STORE_MODELS = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(StoreModelState))
STORE_LEVELS = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(StoreLevelState))


class ArrowSchema(c.Structure):
    pass


SCHEMA_RELEASE = c.CFUNCTYPE(None, c.POINTER(ArrowSchema))
ArrowSchema._fields_ = [
    ("format", c.c_char_p),
    ("name", c.c_char_p),
    ("metadata", c.c_char_p),
    ("flags", c.c_int64),
    ("n_children", c.c_int64),
    ("children", c.POINTER(c.POINTER(ArrowSchema))),
    ("dictionary", c.POINTER(ArrowSchema)),
    ("release", c.c_void_p),
    ("private_data", c.c_void_p),
]


class ArrowArray(c.Structure):
    pass


ARRAY_RELEASE = c.CFUNCTYPE(None, c.POINTER(ArrowArray))
ArrowArray._fields_ = [
    ("length", c.c_int64),
    ("null_count", c.c_int64),
    ("offset", c.c_int64),
    ("n_buffers", c.c_int64),
    ("n_children", c.c_int64),
    ("buffers", c.POINTER(c.c_void_p)),
    ("children", c.POINTER(c.POINTER(ArrowArray))),
    ("dictionary", c.POINTER(ArrowArray)),
    ("release", c.c_void_p),
    ("private_data", c.c_void_p),
]
