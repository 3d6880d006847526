"""Trains a model step by step: the caller decides how far each call trains."""

from __future__ import annotations

import ctypes as c
import json
import os
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import _config, _library
from . import _structs as s
from ._arrays import ROLES, Inputs
from ._calls import Conversation
from .errors import UsageError
from .frames import is_table, source_of
from .progress import Progress
from .state import ENDS, Callback, History, State, call_each


class Trainer:
    """Trains the model of a config. The constructor creates the model, tables, optimizer states and position in the
    data.

    config: a dict, a path, JSON text, or an object with to_json().
    data, eval_data: replace `source` and `eval_source` of the config: a path, or a table (pandas, Polars, PyArrow, a
    dict of columns, Frame) if the Data layer names columns (Csv, Parquet).
    run_dir: a folder for metrics, summary and models; None: no folder is written.
    resume: a checkpoint, a folder of checkpoints, or "latest". Checkpoints contain no rates or frozen names: set these
    again.
    device: "auto", "cpu" or "cuda". threads: CPU threads; None: all usable cores.
    changes: changes of config fields, such as {"solver.max_iter": 100}.
    allow_unmatched: accepts a column whose values match nothing.

    Consecutive calls are one run: fit() to iterations 10, 20 and 30 gives, bit for bit, the result of fit() to 30. Not
    thread-safe. Raises ConfigError, DataError, FileError, DeviceError, UsageError. A call with wrong arguments
    (UsageError) changes nothing; any other error ends training. Ctrl-C ends a call after its current step, and later
    calls continue. A child of os.fork() cannot use the trainer (ForkError).
    """

    def __init__(
        self,
        config: Any,
        data: Any = None,
        eval_data: Any = None,
        *,
        run_dir: Union[str, os.PathLike, None] = None,
        resume: Union[str, os.PathLike, None] = None,
        device: str = "auto",
        threads: Optional[int] = None,
        changes: Optional[Mapping[str, Any]] = None,
        allow_unmatched: bool = False,
    ):
        if eval_data is None and hasattr(config, "without_evaluation"):
            config = config.without_evaluation()
        path, text, self._plain = _read(config)
        self._columns = _config.columns_of(self._plain)
        self._sources: dict[str, Any] = {}
        lines = _config.set_changes(self._plain, changes or {})
        for name, given in (("source", data), ("eval_source", eval_data)):
            if given is not None:
                lines.append(f"layers.0.{name}={self._source(name, given)}")
        changed, count = _library.texts(lines)
        if device not in s.DEVICES:
            raise UsageError(f"device {device!r} does not exist: expected one of {', '.join(s.DEVICES)}")
        options = s.TrainerOptions(
            config=path.encode(),
            config_text=text.encode() if text is not None else None,
            changes=changed,
            change_count=count,
            run_folder=_library.path_bytes(run_dir),
            resume=_library.path_bytes(resume),
            device=s.DEVICES[device],
            threads=threads or 0,
            allow_unmatched=int(allow_unmatched),
            **_library.common_options(),
        )
        self._handle = _library.make("hctr_trainer_create", "hctr_trainer_destroy", "trainer", c.byref(options))
        self.run_dir: Optional[Path] = None if run_dir is None else Path(run_dir)
        self.device = device
        self.history = History()
        self._finished = False
        self._inputs = self._tensors()

    # ---- Training ----

    def fit(
        self,
        batches: Optional[Iterable[Any]] = None,
        *,
        names: Optional[Sequence[str]] = None,
        iterations: Optional[int] = None,
        passes: Optional[int] = None,
        display: Optional[int] = None,
        eval_interval: Optional[int] = None,
        snapshot: Optional[int] = None,
        callbacks: Sequence[Union[Callback, Callable[[State], Any]]] = (),
        progress: Optional[bool] = None,
    ) -> History:
        """Trains to the config's end, or to an iteration or pass, counted from the start of training.

        batches: an iterator of samples that replaces the source, such as a torch DataLoader. Its items are tables, or
        dicts of arrays as in step(). Each item is trained on once, in batches of the config's batchsize.
        names: for items that are tuples or lists: the names of their elements, such as ("dense", "keys", "label").
        display, eval_interval, snapshot: in iterations; 0: never; default: the config's values.
        callbacks: Callback objects, or functions that receive the State of displays and evaluations.
        progress: shows a progress bar; None: only in terminals and notebooks.
        Returns the history, whose `ended` is "reached", "metric" (early stopping, or a threshold) or "stopped".
        """
        if batches is not None:
            return self._fit_batches(batches, names)
        limits = [iterations, passes, display, eval_interval, snapshot]
        options = s.FitOptions(
            **dict(zip([name for name, _ in s.FitOptions._fields_[1:]], [-1 if n is None else int(n) for n in limits]))
        )
        ended = c.c_int32()
        talk = Conversation()
        with Progress(self._plain, iterations, passes, progress) as bar:

            def at_display(state: State) -> bool:
                self.history.displays.append(state)
                bar.update(state)
                return call_each(callbacks, "on_display", state)

            def at_evaluation(state: State) -> bool:
                self.history.evaluations.append(state)
                bar.update(state)
                return call_each(callbacks, "on_evaluation", state)

            hooks = [_hook(talk, at_display), _hook(talk, at_evaluation)]
            _library.call("hctr_trainer_on_display", self._handle.pointer, hooks[0], None)
            _library.call("hctr_trainer_on_evaluation", self._handle.pointer, hooks[1], None)
            try:
                self._long(talk, "hctr_trainer_fit_until", c.byref(options), c.byref(ended))
                bar.update(self.state)  # shows the end of training instead of the last display
            finally:
                none = s.STATE_CALLBACK()
                _library.call("hctr_trainer_on_display", self._handle.pointer, none, None)
                _library.call("hctr_trainer_on_evaluation", self._handle.pointer, none, None)
        self.history.ended = ENDS[ended.value]
        return self.history

    def step(self, samples: Union[int, Any] = 1) -> str:
        """Trains for a number of iterations, or on samples in memory, without displays, evaluations or snapshots.

        samples: a number of iterations; a table; or a dict of arrays by the names of `inputs`: labels, dense values and
        weights float32 [samples, columns], keys integers [samples, slots] or bags (keys [count], offsets [samples *
        slots + 1]). NumPy arrays and DLPack tensors of these types are not copied. Tensors on the trainer's GPU stay
        there, except labels, which are checked on the host.
        Returns "reached", "pass_ended" or "stopped".
        """
        ended = c.c_int32()
        if isinstance(samples, int):
            self._long(Conversation(), "hctr_trainer_step", samples, c.byref(ended))
        elif isinstance(samples, Mapping) and set(samples) <= set(self._inputs):
            batch = Inputs(samples, self._inputs)
            _library.call("hctr_trainer_step_samples", self._handle.pointer, *batch.arguments(), c.byref(ended))
        else:
            self.set_source(samples)
            while ended.value != ENDS.index("pass_ended"):
                self._long(Conversation(), "hctr_trainer_step", 1 << 40, c.byref(ended))
                if ended.value == ENDS.index("stopped"):
                    break
        return ENDS[ended.value]

    def evaluate(self, data: Any = None) -> dict[str, float]:
        """The metrics by name, on eval_source, on a table or path, or on a dict of arrays as for step().

        NaN: these samples do not define the metric. A table or path becomes the evaluation source.
        """
        found: dict[str, float] = {}
        collect = s.NAMED(lambda _user, name, value: found.__setitem__(name.decode(), value))
        if isinstance(data, Mapping) and set(data) <= set(self._inputs):
            batch = Inputs(data, self._inputs)
            _library.call("hctr_trainer_evaluate_samples", self._handle.pointer, *batch.arguments(), collect, None)
            return found
        if data is not None:
            self.set_evaluation_source(data)
        self._long(Conversation(), "hctr_trainer_evaluate", collect, None)
        return found

    def finish(self) -> None:
        """Ends the run: last evaluation, final model, summary. Training cannot continue after this call."""
        self._long(Conversation(), "hctr_trainer_finish")
        self._finished = True

    # ---- Between calls ----

    @property
    def state(self) -> State:
        at = s.TrainerState()
        _library.call("hctr_trainer_read_state", self._handle.pointer, c.byref(at))
        return State._of(at)

    @property
    def inputs(self) -> dict[str, tuple[str, int]]:
        """The arrays that step() accepts: name to role ("labels", "dense", "keys") and columns."""
        return {name: (ROLES[role], columns) for name, (role, columns) in self._inputs.items()}

    def set_learning_rate(self, rate: Optional[float]) -> None:
        """Sets a constant rate for later steps; None: the config's schedule."""
        _library.call("hctr_trainer_set_learning_rate", self._handle.pointer, -1.0 if rate is None else float(rate))

    def set_source(self, data: Any) -> None:
        """Switches to other training data, from their beginning: a path or a table."""
        self._set_source("source", "hctr_trainer_set_source", data)

    def set_evaluation_source(self, data: Any) -> None:
        """Switches to other evaluation data: a path or a table."""
        self._set_source("eval_source", "hctr_trainer_set_evaluation_source", data)

    def freeze(self, *names: str) -> None:
        """Freezes weights. Names: layers by their first top, tables by their name."""
        _library.call("hctr_trainer_freeze", self._handle.pointer, *_library.texts(names))

    def unfreeze(self, *names: str) -> None:
        _library.call("hctr_trainer_unfreeze", self._handle.pointer, *_library.texts(names))

    # ---- Files ----

    def save(self, prefix: Union[str, os.PathLike]) -> list[Path]:
        """Saves the model at a prefix ("out/mine") with optimizer states. Returns the paths of the files, the dense
        model first.
        """
        files: list[Path] = []
        collect = s.FILE(lambda _user, path: files.append(Path(os.fsdecode(path))))
        _library.call("hctr_trainer_save", self._handle.pointer, _library.path_bytes(prefix), collect, None)
        return files

    def load(
        self,
        dense: Union[str, os.PathLike, None] = None,
        tables: Optional[Mapping[str, Any]] = None,
        *,
        dense_states: Union[str, os.PathLike, None] = None,
        table_states: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """Loads weights and rows, and optimizer states, from files that save() writes. Tables are given by name.

        Parts without a file are unchanged. Optimizer states of a loaded part are reset, unless their file is given.
        """
        names, count = _library.texts(list(tables or {}))
        files, _ = _library.texts([os.fspath(one) for one in (tables or {}).values()])
        state_names, state_count = _library.texts(list(table_states or {}))
        state_files, _ = _library.texts([os.fspath(one) for one in (table_states or {}).values()])
        what = s.WeightFiles(
            dense=_library.path_bytes(dense),
            dense_states=_library.path_bytes(dense_states),
            table_names=names,
            table_files=files,
            table_count=count,
            table_state_names=state_names,
            table_state_files=state_files,
            table_state_count=state_count,
        )
        _library.call("hctr_trainer_load", self._handle.pointer, c.byref(what))

    def checkpoint(self, folder: Union[str, os.PathLike]) -> Path:
        """Saves a checkpoint in a new folder inside this folder, and returns its path, for `resume`."""
        made: list[Path] = []
        collect = s.FILE(lambda _user, path: made.append(Path(os.fsdecode(path))))
        _library.call("hctr_trainer_checkpoint", self._handle.pointer, _library.path_bytes(folder), collect, None)
        return made[0]

    def model(self, **options: Any) -> Any:
        """Returns the current model (`Model`). Its files are temporary and are deleted together with the object.
        options: as for load().
        """
        from .training import model_of

        return model_of(self, options)

    def close(self) -> None:
        """Frees the model and its tables. Later calls raise UsageError."""
        self._handle.close()
        self._sources.clear()

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<huge_ctr.Trainer, {len(self._plain.get('layers', []))} layers, device {self.device}>"

    def _repr_html_(self) -> str:
        from ._html import trainer_page

        return trainer_page(self)

    # ---- Inside ----

    def _source(self, name: str, data: Any) -> str:
        source, self._sources[name] = source_of(data, self._columns, self._reads_no_parquet())
        return source

    def _set_source(self, name: str, function: str, data: Any) -> None:
        """The previous table must exist until the library has the new one."""
        source, table = source_of(data, self._columns, self._reads_no_parquet())
        _library.call(function, self._handle.pointer, source.encode())
        self._sources[name] = table

    def _reads_no_parquet(self) -> bool:
        return _config.data_layer(self._plain).get("format") != "Parquet"

    def _tensors(self) -> dict[str, tuple[int, int]]:
        count, tensor = c.c_size_t(), s.Tensor()
        _library.call("hctr_trainer_tensor", self._handle.pointer, 0, c.byref(tensor), c.byref(count))
        found = {}
        for i in range(count.value):
            _library.call("hctr_trainer_tensor", self._handle.pointer, i, c.byref(tensor), None)
            found[tensor.name.decode()] = (tensor.role, tensor.columns)
        return found

    def _long(self, talk: Conversation, function: str, *arguments: Any) -> None:
        pointer = self._handle.pointer
        talk.run(
            lambda: _library.call(function, pointer, *arguments), lambda: _library.library().hctr_trainer_stop(pointer)
        )

    def _fit_batches(self, batches: Iterable[Any], names: Optional[Sequence[str]]) -> History:
        self.history.ended = "reached"
        for batch in batches:
            batch = _named(batch, names)
            if self.step(batch) == "stopped":
                self.history.ended = "stopped"
                break
        self.history.displays.append(self.state)
        return self.history


def _read(config: Any) -> tuple[str, Optional[str], dict]:
    """Returns the config's path, its text (None: the library reads the path), and its content as Python parses it."""
    is_path = isinstance(config, (str, os.PathLike)) and not os.fspath(config).lstrip().startswith("{")
    if is_path:
        try:
            return os.fspath(config), None, _config.config_dict(config)[0]
        except Exception:  # Python cannot parse this file: the library parses it or reports the error
            return os.fspath(config), None, {}
    plain, name = _config.config_dict(config)
    text = config if isinstance(config, str) else json.dumps(plain)
    return name, text, plain


def _named(batch: Any, names: Optional[Sequence[str]]) -> Any:
    """Converts an iterator's item to a table, or a dict of arrays. Raises UsageError."""
    if isinstance(batch, (tuple, list)) and names is not None:
        if len(batch) != len(names):
            raise UsageError(f"an iterator gave {len(batch)} parts, but names has {len(names)}: {', '.join(names)}")
        return dict(zip(names, batch))
    if is_table(batch):
        return batch
    raise UsageError(
        f"an iterator gave {type(batch).__name__}, expected tables, dicts of arrays by input name, or with names= "
        f"tuples of arrays"
    )


def _hook(talk: Conversation, function: Callable[[State], Any]) -> Any:
    return s.STATE_CALLBACK(lambda _user, at: 0 if talk.ask(function, State._of(at.contents)) else 1)
