"""The API of HugeCTR's Hierarchical Parameter Server (hugectr.inference, 3.5 to 24.06), implemented by a store."""

from __future__ import annotations

import ctypes as c
import enum
import logging
import os
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _library
from . import _structs as s
from .errors import ConfigError, UsageError

logger = logging.getLogger("huge_ctr")


class DatabaseType_t(enum.Enum):
    Disabled = "disabled"
    HashMap = "hash_map"
    ParallelHashMap = "parallel_hash_map"
    MultiProcessHashMap = "multi_process_hash_map"
    RedisCluster = "redis_cluster"
    RocksDB = "rocks_db"


class DatabaseOverflowPolicy_t(enum.Enum):
    EvictRandom = "evict_random"
    EvictLeastUsed = "evict_least_used"
    EvictOldest = "evict_oldest"


class UpdateSourceType_t(enum.Enum):
    Null = "null"
    KafkaMessageQueue = "kafka_message_queue"


class EmbeddingCacheType_t(enum.Enum):
    Dynamic = "dynamic"
    UVM = "uvm"
    Static = "static"
    Stochastic = "stochastic"


class _Section:
    """A section of ps.json with the given fields. The store checks them when it reads the config."""

    def __init__(self, **fields: Any):
        self.fields = fields

    def section(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in self.fields.items()}


class VolatileDatabaseParams(_Section):
    def __init__(self, type: DatabaseType_t = DatabaseType_t.ParallelHashMap, **fields: Any):
        super().__init__(type=type, **fields)


class PersistentDatabaseParams(_Section):
    def __init__(self, type: DatabaseType_t = DatabaseType_t.Disabled, **fields: Any):
        super().__init__(type=type, **fields)


class UpdateSourceParams(_Section):
    def __init__(self, type: UpdateSourceType_t = UpdateSourceType_t.Null, **fields: Any):
        super().__init__(type=type, **fields)


# The original's Python arguments in their order, each with the field of ps.json that it sets; "": there is no such
# field.
_NAMES = {
    "model_name": "model",
    "max_batchsize": "max_batch_size",
    "hit_rate_threshold": "hit_rate_threshold",
    "dense_model_file": "dense_file",
    "sparse_model_files": "sparse_files",
    "device_id": "",
    "use_gpu_embedding_cache": "gpucache",
    "cache_size_percentage": "gpucacheper",
    "i64_input_key": "",
    "use_mixed_precision": "",
    "scaler": "",
    "use_algorithm_search": "",
    "use_cuda_graph": "",
    "number_of_worker_buffers_in_pool": "num_of_worker_buffer_in_pool",
    "number_of_refresh_buffers_in_pool": "num_of_refresher_buffer_in_pool",
    "thread_pool_size": "thread_pool_size",
    "cache_refresh_percentage_per_iteration": "cache_refresh_percentage_per_iteration",
    "deployed_devices": "deployed_device_list",
    "default_value_for_each_table": "default_value_for_each_table",
    "volatile_db": "",
    "persistent_db": "",
    "update_source": "",
    "maxnum_des_feature_per_sample": "maxnum_des_feature_per_sample",
    "refresh_delay": "refresh_delay",
    "refresh_interval": "refresh_interval",
    "maxnum_catfeature_query_per_table_per_sample": "maxnum_catfeature_query_per_table_per_sample",
    "embedding_vecsize_per_table": "embedding_vecsize_per_table",
    "embedding_table_names": "embedding_table_names",
    "network_file": "network_file",
    "label_dim": "label_dim",
    "slot_num": "slot_num",
    "use_static_table": "use_static_table",
    "embedding_cache_type": "embedding_cache_type",
    "use_context_stream": "use_context_stream",
    "fuse_embedding_table": "fuse_embedding_table",
    "use_hctr_cache_implementation": "use_hctr_cache_implementation",
    "init_ec": "init_ec",
    "enable_pagelock": "enable_pagelock",
    "fp8_quant": "fp8_quant",
}
_WITHOUT_EFFECT = ("device_id", "use_mixed_precision", "scaler", "use_algorithm_search", "use_cuda_graph")


class InferenceParams:
    """A model. Arguments are given by name, or by position in the original's order; missing arguments have the
    original's defaults.
    """

    def __init__(self, *given: Any, **fields: Any):
        names = list(_NAMES)
        if len(given) > len(names):
            raise UsageError(f"InferenceParams has {len(names)} arguments, not {len(given)}")
        for name, value in zip(names, given):
            if name in fields:
                raise UsageError(f"InferenceParams: {name!r} is given twice")
            fields[name] = value
        for name in fields:
            if name not in _NAMES:
                raise UsageError(f"InferenceParams has no argument {name!r}; arguments are {', '.join(names)}")
        for needed in ("model_name", "sparse_model_files"):
            if needed not in fields:
                raise UsageError(f"InferenceParams needs {needed!r}")
        self.fields = fields

    def section(self) -> dict[str, Any]:
        for name in _WITHOUT_EFFECT:
            if name in self.fields:
                logger.info("InferenceParams of %s: %s has no effect here", self.fields["model_name"], name)
        return {_NAMES[name]: _plain(value) for name, value in self.fields.items() if _NAMES[name]}


class ParameterServerConfig:
    """Describes models and databases, as a ps.json does. Raises ConfigError if the arguments contradict each other."""

    def __init__(
        self,
        emb_table_name: Mapping[str, Sequence[str]],
        embedding_vec_size: Mapping[str, Sequence[int]],
        max_feature_num_per_sample_per_emb_table: Mapping[str, Sequence[int]],
        inference_params_array: Sequence[InferenceParams],
        volatile_db: Optional[VolatileDatabaseParams] = None,
        persistent_db: Optional[PersistentDatabaseParams] = None,
        update_source: Optional[UpdateSourceParams] = None,
    ):
        by_model = {
            "embedding_table_names": emb_table_name,
            "embedding_vecsize_per_table": embedding_vec_size,
            "maxnum_catfeature_query_per_table_per_sample": max_feature_num_per_sample_per_emb_table,
        }
        databases = {"volatile_db": volatile_db, "persistent_db": persistent_db, "update_source": update_source}
        wide = [params.fields.get("i64_input_key", True) for params in inference_params_array]
        if len(set(wide)) > 1:
            raise ConfigError("i64_input_key differs between models: set the same value for all models")
        self.json: dict[str, Any] = {"supportlonglong": bool(wide[0]) if wide else True, "models": []}
        for params in inference_params_array:
            model = params.section()
            for name, lists in by_model.items():
                if params.fields["model_name"] not in lists:
                    raise ConfigError(f"model {params.fields['model_name']!r} has no {name}")
                model[name] = _plain(lists[params.fields["model_name"]])
            self.json["models"].append(model)
            for name in databases:
                own = params.fields.get(name)
                if own is None:
                    continue
                if databases[name] is not None and databases[name].section() != own.section():
                    raise ConfigError(
                        f"{name} differs between models, which share their databases: set the same value for all models"
                    )
                databases[name] = own
        for name, section in databases.items():
            if section is not None:
                self.json[name] = section.section()


class HPS:
    """The parameter server of a ps.json, or of a ParameterServerConfig. Keys without a row get default rows.

    Look-ups always return the tables' rows, even where the original returns default rows for misses of its GPU cache.
    """

    def __init__(self, config: Union[str, os.PathLike, ParameterServerConfig]):
        from .store import Store

        self.store = Store(config.json if isinstance(config, ParameterServerConfig) else config)

    def lookup(self, keys: Any, model_name: str, table_id: int, device_id: int = 0) -> np.ndarray:
        """Returns the rows of table number `table_id`: float32 [keys, dim]. device_id has no effect, because the host
        looks up.
        """
        return self._view(model_name).get(table_id, keys)

    def lookup_fromdlpack(self, keys: Any, out: Any, model_name: str, table_id: int, device_id: int = 0) -> None:
        """Writes the rows of keys to `out`, float32 [keys, dim]. Keys and `out` are host tensors, or their DLPack
        capsules.
        """
        given_keys, given_rows = _Borrowed(keys), _Borrowed(out)
        self._view(model_name).get_into(table_id, given_keys.array, given_rows.array)

    def _view(self, model_name: str) -> Any:
        return self.store.view(model_name)


class _Borrowed:
    """The memory of a host DLPack tensor, valid during this object's lifetime. Raises UsageError."""

    def __init__(self, given: Any):
        self._capsule = given.__dlpack__() if hasattr(given, "__dlpack__") else given
        get = c.pythonapi.PyCapsule_GetPointer
        get.argtypes, get.restype = [c.py_object, c.c_char_p], c.c_void_p
        try:
            pointer = get(self._capsule, b"dltensor")
        except (TypeError, ValueError) as error:
            raise UsageError(f"{type(given).__name__} is not a DLPack tensor, or was already used: {error}") from error
        self.array = s.Array()
        _library.call("hctr_array_from_dlpack", pointer, c.byref(self.array))
        if self.array.gpu >= 0:
            raise UsageError("a tensor is on a GPU: copy it to the host first")


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
