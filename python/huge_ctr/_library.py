"""Loads libhuge_ctr.so and calls its functions. Calls release the GIL, as all ctypes calls do."""

from __future__ import annotations

import ctypes as c
import importlib.util
import logging
import os
from pathlib import Path
from typing import Any, Iterable, Optional

from . import _embedding_structs, _stream_structs
from . import _structs as s
from .errors import KINDS, ForkError, HugeCtrError, LibraryMissing, UsageError

logger = logging.getLogger("huge_ctr")
logger.addHandler(logging.NullHandler())

_FILE = "libhuge_ctr.so"
_handle = c.c_void_p
_array = c.POINTER(s.Array)
_forks = 0  # number of os.fork() calls between the first process and this one


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def library_path() -> Path:
    """The path of the library. In this order: $HUGE_CTR_LIBRARY, the library of the CUDA add-on, the library of this
    package.

    Raises LibraryMissing if there is none.
    """
    named = os.environ.get("HUGE_CTR_LIBRARY")
    if named:
        return Path(named)
    addon = importlib.util.find_spec("huge_ctr_cuda")
    folders = [Path(folder) for folder in (addon.submodule_search_locations or ())] if addon else []
    folders.append(Path(__file__).parent / "lib")
    for folder in folders:
        if (folder / _FILE).is_file():
            return folder / _FILE
    raise LibraryMissing(
        f"there is no {_FILE} in {' or '.join(map(str, folders))}: install the wheel (pip install huge-ctr), or name "
        f"a library that you have built in the variable HUGE_CTR_LIBRARY"
    )


_PROTOTYPES = {
    "hctr_model_load": [c.POINTER(s.ModelOptions), c.POINTER(_handle)],
    "hctr_model_describe": [_handle, c.POINTER(c.c_size_t), c.POINTER(c.c_size_t), c.POINTER(c.c_int64)],
    "hctr_model_tensor": [_handle, c.c_size_t, c.POINTER(s.Tensor)],
    "hctr_model_score": [_handle, c.c_int64, c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t],
    "hctr_model_predict": [_handle, c.c_char_p, s.SCORED_ROWS, c.c_void_p],
    "hctr_model_encode": [_handle, c.c_char_p, c.c_int32, s.ENCODED, c.c_void_p],
    "hctr_model_about": [_handle, c.POINTER(c.c_char_p), c.POINTER(c.c_char_p)],
    "hctr_model_evaluate": [_handle, c.c_char_p, _handle, s.NAMED, c.c_void_p, c.POINTER(s.UseSummary)],
    "hctr_array_from_dlpack": [c.c_void_p, c.POINTER(s.Array)],
    "hctr_array_from_dlpack_versioned": [c.c_void_p, c.POINTER(s.Array)],
    "hctr_frame_create": [c.POINTER(s.ArrowSchema), c.POINTER(c.POINTER(s.ArrowArray)), c.c_size_t, c.POINTER(_handle)],
    "hctr_frame_from_stream": [c.c_void_p, c.POINTER(_handle)],
    "hctr_stop_create": [c.POINTER(_handle)],
    "hctr_predict": [
        c.POINTER(s.UseOptions),
        c.c_char_p,
        c.POINTER(c.c_char_p),
        c.c_size_t,
        c.POINTER(s.UseSummary),
    ],
    "hctr_export": [c.POINTER(s.UseOptions), c.c_int32, c.c_char_p, c.c_int64, s.FILE, c.c_void_p],
    "hctr_feature_importance": [c.POINTER(s.UseOptions), c.c_int64, s.IMPORTANCE, c.c_void_p, c.POINTER(c.c_double)],
    "hctr_trainer_create": [c.POINTER(s.TrainerOptions), c.POINTER(_handle)],
    "hctr_trainer_on_display": [_handle, s.STATE_CALLBACK, c.c_void_p],
    "hctr_trainer_on_evaluation": [_handle, s.STATE_CALLBACK, c.c_void_p],
    "hctr_trainer_fit_until": [_handle, c.POINTER(s.FitOptions), c.POINTER(c.c_int32)],
    "hctr_trainer_step": [_handle, c.c_int64, c.POINTER(c.c_int32)],
    "hctr_trainer_step_samples": [_handle, c.c_int64, c.c_void_p, c.c_size_t, c.POINTER(c.c_int32)],
    "hctr_trainer_evaluate": [_handle, s.NAMED, c.c_void_p],
    "hctr_trainer_evaluate_samples": [_handle, c.c_int64, c.c_void_p, c.c_size_t, s.NAMED, c.c_void_p],
    "hctr_trainer_read_state": [_handle, c.POINTER(s.TrainerState)],
    "hctr_trainer_tensor": [_handle, c.c_size_t, c.POINTER(s.Tensor), c.POINTER(c.c_size_t)],
    "hctr_trainer_set_learning_rate": [_handle, c.c_double],
    "hctr_trainer_set_source": [_handle, c.c_char_p],
    "hctr_trainer_set_evaluation_source": [_handle, c.c_char_p],
    "hctr_trainer_freeze": [_handle, c.POINTER(c.c_char_p), c.c_size_t],
    "hctr_trainer_unfreeze": [_handle, c.POINTER(c.c_char_p), c.c_size_t],
    "hctr_trainer_save": [_handle, c.c_char_p, s.FILE, c.c_void_p],
    "hctr_trainer_load": [_handle, c.POINTER(s.WeightFiles)],
    "hctr_trainer_checkpoint": [_handle, c.c_char_p, s.FILE, c.c_void_p],
    "hctr_trainer_finish": [_handle],
    "hctr_array_from_dlpack": [c.c_void_p, _array],
    "hctr_store_open": [c.POINTER(s.StoreOptions), c.POINTER(_handle)],
    "hctr_store_load": [_handle, c.POINTER(s.StoreModel)],
    "hctr_store_activate": [_handle, c.c_char_p, c.c_char_p],
    "hctr_store_unload": [_handle, c.c_char_p, c.c_char_p],
    "hctr_store_update_from": [_handle, c.c_char_p, c.c_char_p, c.POINTER(c.c_int64)],
    "hctr_store_apply_delta": [_handle, c.c_char_p, c.c_char_p, c.POINTER(c.c_int64)],
    "hctr_store_apply": [_handle, c.c_char_p, c.c_int64, c.c_void_p, c.c_size_t, c.POINTER(c.c_int64)],
    "hctr_store_refresh": [_handle, c.POINTER(c.c_int32)],
    "hctr_store_writable": [_handle, c.POINTER(c.c_int32)],
    "hctr_store_models": [_handle, s.STORE_MODELS, c.c_void_p],
    "hctr_store_levels": [_handle, s.STORE_LEVELS, c.c_void_p],
    "hctr_store_verify": [_handle, c.POINTER(c.c_int64)],
    "hctr_store_compact": [_handle, c.POINTER(c.c_int64)],
    "hctr_store_view_create": [_handle, c.c_char_p, c.POINTER(_handle)],
    "hctr_store_view_version": [_handle, c.POINTER(c.c_char_p), c.POINTER(c.c_size_t)],
    "hctr_store_view_table": [_handle, c.c_size_t, c.POINTER(s.StoreTable)],
    "hctr_store_get": [_handle, c.c_size_t, c.c_int32, _array, _array, c.c_void_p, c.POINTER(c.c_int64)],
    "hctr_store_get_pooled": [_handle, c.c_size_t, c.c_int32, _array, _array, c.c_int32, _array, c.POINTER(c.c_int64)],
    "hctr_store_cache_create": [_handle, c.c_char_p, c.c_int32, c.POINTER(_handle)],
    "hctr_store_cache_look_up": [_handle, c.c_void_p, c.c_size_t, c.c_void_p, c.POINTER(c.c_int64)],
    "hctr_store_cache_activate": [_handle, c.c_char_p],
    "hctr_store_cache_view": [_handle, c.POINTER(_handle)],
    "hctr_store_cache_statistics": [_handle, c.POINTER(s.StoreCacheState)],
    **_embedding_structs.PROTOTYPES,
    **_stream_structs.PROTOTYPES,
}
_OTHERS = {
    "hctr_version": ([], c.c_char_p),
    "hctr_error_message": ([], c.c_char_p),
    "hctr_stop_set": ([_handle], None),
    "hctr_stop_destroy": ([_handle], None),
    "hctr_frame_rows": ([_handle], c.c_int64),
    "hctr_frame_source": ([_handle], c.c_char_p),
    "hctr_frame_destroy": ([_handle], None),
    "hctr_model_destroy": ([_handle], None),
    "hctr_trainer_destroy": ([_handle], None),
    "hctr_trainer_stop": ([_handle], None),
    "hctr_store_destroy": ([_handle], None),
    "hctr_store_view_destroy": ([_handle], None),
    "hctr_store_cache_destroy": ([_handle], None),
    **_embedding_structs.DESTROYERS,
    **_stream_structs.DESTROYERS,
}

_loaded: Optional[c.CDLL] = None


def library() -> c.CDLL:
    """The library, loaded at first use. Raises LibraryMissing."""
    global _loaded
    if _loaded is not None:
        return _loaded
    path = library_path()
    try:
        _load_bundled(Path(__file__).parent / "lib")
        loaded = c.CDLL(str(path))
        for name, arguments in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = arguments, c.c_int
        for name, (arguments, result) in _OTHERS.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = arguments, result
    except (OSError, AttributeError) as error:
        raise LibraryMissing(f"'{path}' cannot be used: {error}") from error
    _loaded = loaded
    return loaded


def _load_bundled(folder: Path) -> None:
    """Loads the wheel's copies of system libraries, so that the library finds its dependencies by name.

    OpenBLAS is not loaded here, because the library itself loads it and sets the number of its threads.
    """
    left = [one for one in sorted(folder.glob("lib*.so.*")) if "blas" not in one.name]
    # a library fails to load until the libraries that it depends on are loaded, so try all several times
    for _ in range(len(left)):
        for one in list(left):
            try:
                c.CDLL(str(one))
                left.remove(one)
            except OSError:
                pass


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status. If the status is an error, raises the exception of its kind."""
    loaded = library()
    status = getattr(loaded, name)(*arguments)
    if status != 0:
        raise_status(status)


def raise_status(status: int) -> None:
    message = library().hctr_error_message().decode(errors="replace")
    raise KINDS.get(status, HugeCtrError)(message)


@s.LOG
def _log_line(_user, level, line):
    logger.log(logging.WARNING if level else logging.INFO, line.decode(errors="replace"))


def common_options() -> dict:
    """The log callback, and the C library's functions that read and set environment variables."""
    libc = c.CDLL(None)
    return {
        "log": _log_line,
        "getenv": c.cast(libc.getenv, c.c_void_p),
        "setenv": c.cast(libc.setenv, c.c_void_p),
    }


def texts(items: Iterable[str]) -> tuple[Any, int]:
    """Returns texts as a char*[], and their number."""
    encoded = [item.encode() for item in items]
    return (c.c_char_p * max(len(encoded), 1))(*encoded), len(encoded)


def path_bytes(path: Any) -> Optional[bytes]:
    return None if path is None else os.fsencode(path)


class Handle:
    """A handle of the library, destroyed with this object. It is valid only in this process, not in a child of
    os.fork().
    """

    def __init__(self, pointer: c.c_void_p, destroy: str, what: str):
        self._pointer: Optional[c.c_void_p] = pointer
        self._destroy, self._what, self._forks = destroy, what, _forks
        self.kept: tuple = ()  # callbacks that must stay alive, because the handle's destruction may call them

    @property
    def pointer(self) -> c.c_void_p:
        if self._forks != _forks:
            raise ForkError(
                f"this {self._what} belongs to the parent process, whose threads a fork does not copy: make one in "
                f"this process, or start it with multiprocessing's method 'spawn'"
            )
        if self._pointer is None:
            raise UsageError(f"this {self._what} is closed")
        return self._pointer

    def close(self) -> None:
        """Frees the handle's memory. Later calls raise UsageError."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None and self._forks == _forks and _loaded is not None:
            getattr(_loaded, self._destroy)(pointer)

    def __del__(self):
        try:
            self.close()
        except Exception:  # while the interpreter shuts down, the call may fail
            pass


def make(function: str, destroy: str, what: str, *arguments: Any) -> Handle:
    """Calls a library function that creates a handle."""
    pointer = _handle()
    call(function, *arguments, c.byref(pointer))
    return Handle(pointer, destroy, what)
