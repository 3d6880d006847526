"""A trained model: scores, metrics, tables, exports."""

from __future__ import annotations

import ctypes as c
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import numpy as np

from . import _config, _library
from . import _structs as s
from ._arrays import ROLES, Inputs, Outputs, view
from ._calls import Conversation
from ._scores import Scores, joined, plain
from .errors import UsageError
from .frames import Frame, source_of
from .tables import Tables, saved_model

_FEW_ROWS = 512
EXPORTS = {"onnx": 0, "npz": 1, "safetensors": 2, "parquet": 3}


class Model:
    """A trained model in memory, usable by any number of threads.

    path: a run folder, a checkpoint or a snapshot_prefix; "@<iteration>" appended selects an older model.
    config: a config file, if none is saved with the model. device: "auto", "cpu" or "cuda". threads: CPU threads for
    each call; None: all usable cores. changes: changes of config fields, such as {"solver.batchsize_eval": 4096}.
    tables: a view of a store (huge_ctr.store). The model then reads rows from the store, with its updates, and loads no
    tables.

    Raises FileError if the model does not exist; DataError, ConfigError if its files do not match; DeviceError. A child
    of os.fork() cannot use the model (ForkError). Pickling includes the model's files.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike],
        *,
        config: Union[str, os.PathLike, None] = None,
        device: str = "auto",
        threads: Optional[int] = None,
        changes: Optional[Mapping[str, Any]] = None,
        tables: Any = None,
    ):
        if device not in s.DEVICES:
            raise UsageError(f"device {device!r} does not exist: expected one of {', '.join(s.DEVICES)}")
        self.path = os.fspath(path)
        self.device = device
        self.history: Any = None
        self._given = {"config": config, "device": device, "threads": threads, "changes": dict(changes or {})}
        changed, count = _library.texts(_config.set_changes({}, changes or {}))
        self._changes = (changed, count)
        options = s.ModelOptions(
            model=self.path.encode(),
            config=_library.path_bytes(config),
            changes=changed,
            change_count=count,
            device=s.DEVICES[device],
            threads=threads or 0,
            tables=None if tables is None else tables.pointer,
            **_library.common_options(),
        )
        self._from_store = tables is not None
        self._handle = _library.make("hctr_model_load", "hctr_model_destroy", "model", c.byref(options))
        self._inputs, self._outputs, self.iteration = self._describe()
        name, where = c.c_char_p(), c.c_char_p()
        _library.call("hctr_model_about", self._handle.pointer, c.byref(name), c.byref(where))
        self.name, self.device_name = (name.value or b"").decode(), (where.value or b"").decode()
        self._saved: Any = None
        self._owns = False

    # ---- Scores ----

    def predict(self, data: Any, out: Any = None) -> Any:
        """Returns scores: probabilities of label 1.

        data: a table (pandas, Polars, PyArrow, a dict of columns, Frame) with the config's columns; or a path of data
        in the config's format; or a dict of arrays by the names of `inputs`. Labels are not needed. The arrays are what
        the first layers and tables read: dense float32 [samples, columns], keys integers [samples, slots] or bags (keys
        [count], offsets [samples * slots + 1]). They may be DLPack tensors, also on the model's GPU, without a copy to
        the host.
        out: with a dict of arrays: the float32 array or tensor that receives the scores, or a dict of these by loss, on
        the host or on the model's GPU. The scores are written when the call returns; it returns `out`.
        Returns float32 [samples]; [samples, columns] for a loss with several labels; a dict by loss for several losses.
        A skipped bad record has NaN. On a CPU the scores equal those of huge_ctr --predict bit for bit.
        Raises DataError with row, column and value; UsageError.
        """
        if isinstance(data, Mapping) and data and set(data) <= set(self._inputs):
            return self._score(Inputs(data, self._inputs), out)
        if out is not None:
            raise UsageError("out= needs samples with a known number of rows: a dict of arrays by input name")
        source, frame = self._source(data)
        # Bad records after the last scored row are not reported. The table's number of rows gives their number.
        collected = Scores(self._outputs, frame.rows if frame is not None else None)
        callback = s.SCORED_ROWS(collected.add)
        pointer = self._handle.pointer
        # for so few rows, the call takes less time than starting a thread
        if frame is not None and frame.rows <= _FEW_ROWS:
            _library.call("hctr_model_predict", pointer, source.encode(), callback, None)
            return plain(collected.arrays())
        stopped: list[bool] = []
        collected.stopped = stopped
        Conversation().run(
            lambda: _library.call("hctr_model_predict", pointer, source.encode(), callback, None),
            lambda: stopped.append(True),
        )
        return plain(collected.arrays())

    def encode(self, data: Any) -> dict[str, Any]:
        """Converts a table, or the file at a path, to arrays for predict(). Programs that run an exported model accept
        the same arrays.

        Returns a dict by input: dense values as float32 [samples, columns]; keys as int64 [samples, slots], or as (keys
        [count], offsets [samples * slots + 1]) if some slot does not have exactly one key.
        """
        return self._encode(data, False)

    def _encode(self, data: Any, partial: bool) -> dict[str, Any]:
        source, frame = self._source(data)
        parts: dict[str, list] = {name: [] for name in self._inputs}

        def add(_user, _samples, inputs, count):
            for i in range(count):
                one = inputs[i]
                values = view(one.data).copy()
                parts[one.name.decode()].append((values, view(one.offsets).copy() if one.offsets.data else None))
            return 0

        callback = s.ENCODED(add)
        _library.call("hctr_model_encode", self._handle.pointer, source.encode(), int(partial), callback, None)
        del frame
        return {name: joined(blocks, self._inputs[name][1]) for name, blocks in parts.items() if blocks}

    # ---- Measures ----

    def evaluate(self, data: Any = None) -> dict[str, float]:
        """The config's eval_metrics by name; NaN if these samples do not define a metric.

        data: a table or path with labels; None: the config's eval_source. Evaluates the loaded model on one rank: the
        metrics equal those of huge_ctr --eval on one rank, bit for bit.
        """
        self._expect_own_tables()
        found: dict[str, float] = {}
        collect = s.NAMED(lambda _user, name, value: found.__setitem__(name.decode(), value))
        source, frame = self._source(data) if data is not None else (None, None)
        pointer, encoded = self._handle.pointer, None if source is None else source.encode()
        _stoppable(
            lambda stop: _library.call("hctr_model_evaluate", pointer, encoded, stop, collect, None, None),
        )
        del frame
        return found

    def feature_importance(self, data: Any = None, rows: int = 100_000, by: str = "AUC") -> dict[str, float]:
        """Permutation importance: the effect of shuffling each feature, largest first.

        data: a table or path with labels; None: the config's eval_source. rows: maximum number of scored rows. by:
        "AUC", the decrease of the first label's AUC; or "scores", the mean change of the scores.
        """
        if by not in ("AUC", "scores"):
            raise UsageError(f"by={by!r} is not supported: expected AUC or scores")
        found: dict[str, tuple[float, float]] = {}
        auc = c.c_double()
        collect = s.IMPORTANCE(lambda _user, name, value, moved: found.__setitem__(name.decode(), (value, moved)))
        options, keep = self._use_options(data)
        self._long("hctr_feature_importance", options, rows, collect, None, c.byref(auc))
        del keep
        lost = {name: auc.value - without if by == "AUC" else moved for name, (without, moved) in found.items()}
        return dict(sorted(lost.items(), key=lambda one: -one[1]))

    # ---- Contents ----

    @property
    def inputs(self) -> dict[str, tuple[str, int]]:
        """The role ("dense" or "keys") of each input, and the input's number of dense values or slots per sample."""
        return {name: (ROLES[role], columns) for name, (role, columns) in self._inputs.items()}

    @property
    def outputs(self) -> dict[str, int]:
        """The number of score columns of each loss, by the name of the loss."""
        return {name: columns for name, (_, columns) in self._outputs.items()}

    @property
    def config(self) -> dict:
        """The config saved with the model."""
        return self._files().config or {}

    @property
    def dense(self) -> dict[str, np.ndarray]:
        """Weights of dense layers: "fc1/weights", float32."""
        return self._files().dense

    @property
    def tables(self) -> Tables:
        """The embedding tables, by table name or column name: `.keys`, `.vectors`, `.vectors_of(values)`."""
        self._expect_own_tables()
        return Tables(self, self._files())

    @property
    def title(self) -> str:
        """The model's name. If the model's folder is temporary, only the iteration."""
        return f"iteration {self.iteration}" if self._owns else self.name

    def summary(self) -> str:
        """A description: name, device, inputs, layer weights and tables."""
        files = self._files()
        lines = [f"{self.title}, on {self.device_name}"]
        for name, (role, columns) in self.inputs.items():
            lines.append(f"  input {name}: {columns} {'slots' if role == 'keys' else 'values'}")
        for name, columns in self.outputs.items():
            lines.append(f"  scores {name}: {columns} {'column' if columns == 1 else 'columns'}")
        for name, table in files.tables.items():
            lines.append(f"  table {name}: {len(table)} rows of {table.dim}")
        for name, weights in files.dense.items():
            lines.append(f"  {name}: {' x '.join(map(str, weights.shape))}")
        lines += [f"  {name}: {value:.6f}" for name, value in files.metrics.items() if value is not None]
        return "\n".join(lines)

    # ---- Files ----

    def export(
        self, path: Union[str, os.PathLike], format: str = "onnx", rows: int = 0, data: Any = None
    ) -> list[Path]:
        """Writes weights and tables for other programs: "onnx", "npz", "safetensors" or "parquet".

        path: a new or empty folder. rows: for ONNX, the number of samples of `data` (or the eval_source) to write to
        rows.npz with their scores. Returns the paths of the files.
        """
        if format not in EXPORTS:
            raise UsageError(f"format {format!r} does not exist: expected one of {', '.join(EXPORTS)}")
        files: list[Path] = []
        collect = s.FILE(lambda _user, one: files.append(Path(os.fsdecode(one))))
        options, keep = self._use_options(data)
        self._long("hctr_export", options, EXPORTS[format], _library.path_bytes(path), rows, collect, None)
        del keep
        return files

    def predict_to(self, data: Any, out: Union[str, os.PathLike], keep: Iterable[str] = ()) -> int:
        """Writes the scores of a table or path to a .tsv, .csv or .parquet file, like --predict. Returns the number of
        rows.

        keep: columns to copy to the output.
        """
        options, living = self._use_options(data, None)
        summary = s.UseSummary()
        names, count = _library.texts(keep)
        self._long("hctr_predict", options, _library.path_bytes(out), names, count, c.byref(summary))
        del living
        return summary.samples

    def save(self, folder: Union[str, os.PathLike]) -> Path:
        """Copies the model's files to a new folder, which load() accepts. Raises FileExistsError."""
        self._expect_own_tables()
        folder = Path(folder)
        folder.mkdir(parents=True)
        for name, content in self._packed().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder

    def close(self) -> None:
        """Frees the model's memory. Later calls raise UsageError."""
        self._handle.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<huge_ctr.Model: {self.title}>"

    def _repr_html_(self) -> str:
        from ._html import model_page

        return model_page(self)

    def __getstate__(self) -> dict:
        self._expect_own_tables()
        return {"files": self._packed(), "name": self._name_in_folder(), "given": self._given, "history": self.history}

    def __setstate__(self, state: dict) -> None:
        own = tempfile.mkdtemp(prefix="huge_ctr-")
        for name, content in state["files"].items():
            (Path(own) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(own) / name).write_bytes(content)
        self.__init__(own + "/" + state["name"] if state["name"] else own, **state["given"])  # type: ignore[misc]
        self.own(own)
        self.history = state["history"]

    # ---- Inside ----

    def _expect_own_tables(self) -> None:
        if self._from_store:
            raise UsageError(
                "this call needs the tables of the model's files, but this model reads its tables from a store: "
                "load the model without tables="
            )

    def own(self, folder: str) -> None:
        """Makes this object the owner of a temporary folder, which is deleted together with it."""
        self._owns = True
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def _describe(self) -> tuple:
        inputs, outputs, iteration = c.c_size_t(), c.c_size_t(), c.c_int64()
        pointer = self._handle.pointer
        _library.call("hctr_model_describe", pointer, c.byref(inputs), c.byref(outputs), c.byref(iteration))
        tensor, found = s.Tensor(), []
        for i in range(inputs.value + outputs.value):
            _library.call("hctr_model_tensor", pointer, i, c.byref(tensor))
            found.append((tensor.name.decode(), (tensor.role, tensor.columns)))
        return dict(found[: inputs.value]), dict(found[inputs.value :]), iteration.value

    def _score(self, batch: Inputs, out: Any = None) -> Any:
        outputs = Outputs(self._outputs, batch.samples or 0, out)
        _library.call("hctr_model_score", self._handle.pointer, *batch.arguments(), *outputs.arguments())
        return plain(outputs.arrays) if out is None else out

    def _source(self, data: Any) -> tuple[str, Optional[Frame]]:
        config = self.config
        return source_of(
            data, _config.columns_of(config), _config.data_layer(config).get("format", "Norm") != "Parquet"
        )

    def _use_options(self, data: Any, columns: Any = ()) -> tuple[s.UseOptions, Any]:
        source = frame = None
        if data is not None:
            source, frame = self._source(data) if columns == () else source_of(data, columns)
        self._expect_own_tables()
        options = s.UseOptions(
            model=self._pinned().encode(),
            config=_library.path_bytes(self._given["config"]),
            changes=self._changes[0],
            change_count=self._changes[1],
            data=source.encode() if source else None,
            device=s.DEVICES[self.device],
            threads=self._given["threads"] or 0,
            allow_unmatched=1,
            **_library.common_options(),
        )
        return options, frame

    @staticmethod
    def _long(function: str, options: s.UseOptions, *arguments: Any) -> None:
        """Makes a call of the library that a KeyboardInterrupt stops."""

        def call(stop: Any) -> None:
            options.stop = stop.value
            _library.call(function, c.byref(options), *arguments)

        _stoppable(call)

    def _pinned(self) -> str:
        """The path from which this model can be loaded again. A snapshot_prefix gets the iteration appended, because a
        newer model may have been saved there.
        """
        is_prefix = not Path(self.path).is_dir() and "@" not in self.path and not self.path.endswith(".model")
        return f"{self.path}@{self.iteration}" if is_prefix else self.path

    def _files(self) -> Any:
        if self._saved is None:
            self._saved = saved_model(self._pinned(), self._given["config"])
        return self._saved

    def _name_in_folder(self) -> str:
        """The last component of the path if load() needs it in addition to the folder, otherwise an empty text."""
        return "" if Path(self.path).is_dir() and not self.path.endswith("/") else os.path.basename(self._pinned())

    def _packed(self) -> dict[str, bytes]:
        path = Path(self.path)
        if path.is_dir() and not self.path.endswith("/"):
            return {str(one.relative_to(path)): one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file()}
        folder, _, start = self.path.partition("@")[0].rpartition("/")
        found = [one for one in sorted(Path(folder or ".").iterdir()) if one.name.startswith(start) and one.is_file()]
        return {one.name: one.read_bytes() for one in found}


def _stoppable(call: Callable[[Any], None]) -> None:
    """Runs call(stop); a KeyboardInterrupt sets the stop flag."""
    stop = _library.make("hctr_stop_create", "hctr_stop_destroy", "stop")
    Conversation().run(lambda: call(stop.pointer), lambda: _library.library().hctr_stop_set(stop.pointer))


def load(path: Union[str, os.PathLike], **options: Any) -> Model:
    """Loads the model at a path: a run folder, a checkpoint, a snapshot_prefix. Options and errors: as for Model."""
    return Model(path, **options)
