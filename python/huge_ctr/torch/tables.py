"""What all modules with tables share: the set behind them, its optimizer, and their state."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any, Iterator, Optional

import numpy as np
import torch

from .. import _embedding_rows as rows_of_tables
from .._embedding import EmbeddingSet, FeatureOptions, TableOptions
from ..errors import UsageError
from . import ops
from .engine import Engine
from .rules import checked_words, default_rate, plain_name, rule_of

_SET_WORDS = ("threads", "seed", "batches", "most_keys", "device_bytes", "host_bytes", "disk", "disk_bytes")
_TABLE_WORDS = (
    "most_rows",
    "when_full",
    "min_count",
    "admit_probability",
    "expire_after",
    "marks_changes",
    "placement",
    "whole_on",
    "format",
)
_FORMATS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def format_of(dtype: Any) -> tuple[str, torch.dtype]:
    """How rows are kept, and the type of vectors that a module returns."""
    dtype = dtype or torch.get_default_dtype()
    if dtype not in _FORMATS:
        raise UsageError(f"rows of {dtype}: float32, float16 and bfloat16 are kept")
    return _FORMATS[dtype], dtype


def split_words(words: dict) -> tuple[dict, dict, dict]:
    """Words of the set, of its tables, and of the optimizer."""
    of_set = {name: words.pop(name) for name in _SET_WORDS if name in words}
    of_tables = {name: words.pop(name) for name in _TABLE_WORDS if name in words}
    return of_set, of_tables, words


class Tables(torch.nn.Module):
    """Its one parameter, `anchor`, has autograd come here; its gradient is 0, or with update="step" the norm of the
    gradients of all rows."""

    _state_elsewhere = False  # state_dict() has no rows: save() does

    def __init__(
        self,
        tables: list[TableOptions],
        features: list[FeatureOptions],
        device: Any,
        dtype: torch.dtype,
        *,
        optimizer: Any = None,
        lr: Optional[float] = None,
        update: str = "backward",
        distributed: Optional[bool] = None,
        average: bool = True,
        set_words: Optional[dict] = None,
        optimizer_words: Optional[dict] = None,
    ):
        super().__init__()
        if update not in ("backward", "step"):
            raise UsageError(f"update='{update}': 'backward' or 'step'")
        self._tables, self._features, self._set_words = tables, features, dict(set_words or {})
        self._distributed, self._average = distributed, average
        self._update, self.output_dtype = update, dtype
        self._kind: Optional[str] = None
        self._hyper: dict = {}
        self._lr: Any = lr
        self._group: Any = None  # (weak reference to an Optimizer, number of its group)
        self._first_rows: dict[str, tuple] = {}  # rows that the set begins with: (keys, vectors, states)
        self._first_updates = 0
        self.scaler: Any = None  # a torch.amp.GradScaler that multiplies the loss, with update="backward"
        self.anchor = torch.nn.Parameter(torch.zeros(1, device=device or torch.get_default_device()))
        if optimizer is not None:
            self.use_optimizer(optimizer, lr, optimizer_words or {})
        elif optimizer_words:
            raise UsageError(f"there is no word '{next(iter(optimizer_words))}' of {type(self).__name__}")
        self._connect()

    # The set.

    def _connect(self) -> None:
        me = weakref.ref(self)
        engine = Engine(self._tables, self._features, lambda one: me()._make_set(one))
        # A graph may outlive its module, whose rows then nobody reads.
        engine.anchor = lambda: getattr(me(), "anchor", None)
        engine.rate = lambda: 0.0 if me() is None else me().rate()
        engine.scaler = lambda: getattr(me(), "scaler", None)
        engine.in_step = self._update == "step"
        self._engine = engine
        # Plain numbers, which torch.compile takes as constants.
        self._number, self._pooled = engine.number, engine.pooled
        self._width = int(engine.dims.sum()) if engine.pooled else int(engine.dims[0])
        self.anchor.register_post_accumulate_grad_hook(lambda anchor: engine.pending.note(anchor))

    def _make_set(self, engine: Engine) -> EmbeddingSet:
        device = self.anchor.device
        if device.type not in ("cpu", "cuda"):
            raise UsageError(f"tables on {device}: 'cpu' and 'cuda' are there; move the module with .to()")
        gpu = -1 if device.type == "cpu" else (device.index or 0)
        self._take_marks()
        rule = rule_of(self._kind or "none", self._hyper)
        for table in self._tables:
            table.optimizer = rule
        words = {"threads": torch.get_num_threads(), "batches": 2, "seed": 0, **self._set_words}
        rank = self._rank()
        if rank is not None:
            words["rank"] = rank.pointer
            engine.ranks, engine.averages = rank.size, self._average
        made = EmbeddingSet(self._tables, self._features, gpu, **words)
        if rank is not None:
            rank.close()
        policies = ("most_rows", "min_count", "admit_probability", "expire_after")
        tiers = self._set_words.get("host_bytes") or self._set_words.get("disk")
        one = tiers or any(table.words.get(name) for table in self._tables for name in policies)
        engine.most_batches = 1 if one else int(words["batches"])
        engine.has_rule = self._kind not in (None, "none")
        for table, (keys, vectors, states) in self._first_rows.items():
            rows_of_tables.import_rows(made, table, keys, vectors, states)
        self._first_rows = {}
        if self._first_updates:
            made.updates = self._first_updates
        return made

    def _rank(self) -> Any:
        from .ranks import rank_of_group

        return rank_of_group(self._distributed)

    def _take_marks(self) -> None:
        """Those of torch.distributed.optim._apply_optimizer_in_backward, by name."""
        classes = getattr(self.anchor, "_optimizer_classes", None)
        if classes and self._kind is None:
            words = dict(getattr(self.anchor, "_optimizer_kwargs", [{}])[0])
            self.use_optimizer(classes[0], words.pop("lr", None), words)

    # The optimizer.

    def use_optimizer(self, kind: Any, lr: Any = None, words: Optional[dict] = None) -> None:
        """Rows are updated so from now on. Rows stay, states of another optimizer do not."""
        kind, hyper = plain_name(kind), checked_words(kind, words or {})
        if (kind, hyper) != (self._kind, self._hyper) and getattr(self, "_engine", None) and self._engine.exists:
            self._remember(states=False)
        self._kind, self._hyper = kind, hyper
        self._lr = default_rate(kind) if lr is None else lr

    def rate(self) -> Any:
        """The learning rate: of the optimizer that has this module, or its own."""
        owner = self._group[0]() if self._group else None
        if owner is None:
            return self._lr
        group = owner.param_groups[self._group[1]]
        now = checked_words(self._kind, {k: v for k, v in group.items() if k in self._hyper})
        if now != self._hyper:
            raise UsageError(f"a group of the optimizer says {now}, and the tables were made with {self._hyper}")
        return group["lr"]

    @property
    def lr(self) -> Any:
        return self.rate()

    @lr.setter
    def lr(self, value: Any) -> None:
        self._lr = value

    # Look-ups.

    def _weights_train(self, weights: Optional[torch.Tensor]) -> bool:
        return weights is not None and weights.requires_grad

    def _vectors(self, values: Any, offsets: Any, weights: Any, at: list, samples: Any) -> torch.Tensor:
        learns = self.training and torch.is_grad_enabled()
        trains = learns and (self.anchor.requires_grad or self._weights_train(weights))
        if not learns and torch.is_grad_enabled() and self._weights_train(weights):
            raise UsageError("weights need gradients and the tables are in eval(): call train() or torch.no_grad()")
        anchor = self.anchor if trains else self.anchor.detach()
        out = ops.lookup(anchor, values, offsets, weights, at, self._number, samples, trains, self._pooled, self._width)
        return out if out.dtype == self.output_dtype else out.to(self.output_dtype)

    # Rows.

    def table_names(self) -> list[str]:
        return [table.name for table in self._tables]

    def _table(self, name: str) -> TableOptions:
        found = [table for table in self._tables if table.name == name]
        if not found:
            raise UsageError(f"there is no table '{name}': there are {', '.join(self.table_names())}")
        return found[0]

    def rows(self, table: str) -> int:
        """How many rows it has."""
        self._table(table)
        self._engine.settle()
        return self._engine.set().rows(table)

    def figures(self, table: str) -> dict[str, int]:
        """Rows and bytes by memory, and what a policy has evicted, expired and not admitted."""
        self._table(table)
        return rows_of_tables.figures(self._engine.settle(), table)

    def export(self, table: str, states: bool = False) -> tuple:
        """(keys, vectors), or (keys, vectors, states): tensors of the CPU, by ascending keys; of several ranks on 0."""
        self._table(table)
        found = self._engine.export(table, states)
        keys, vectors = torch.from_numpy(found.keys), torch.from_numpy(found.vectors)
        return (keys, vectors, [torch.from_numpy(one) for one in found.states]) if states else (keys, vectors)

    def weight_of(self, table: str) -> torch.Tensor:
        """A copy of the rows of a table, by ascending keys."""
        if self.anchor.device.type == "meta":
            one = self._table(table)
            return torch.empty(one.rows, one.dim, device="meta", dtype=self.output_dtype)
        return self.export(table)[1].to(self.anchor.device, self.output_dtype)

    def set_rows(self, table: str, keys: Any, vectors: Any, states: Any = (), only: bool = False) -> None:
        """Adds or overwrites rows. `only`: others are removed, where the table grows."""
        one = self._table(table)
        as_array = lambda x, dtype: np.ascontiguousarray(torch.as_tensor(x).detach().cpu().numpy().astype(dtype))  # noqa
        keys = as_array(keys, np.int64)
        vectors = None if vectors is None else as_array(torch.as_tensor(vectors).float(), np.float32)
        if vectors is not None and vectors.shape != (len(keys), one.dim):
            raise UsageError(f"rows of table '{table}' have shape {vectors.shape}, and need {(len(keys), one.dim)}")
        states = [as_array(torch.as_tensor(one).float(), np.float32) for one in states]
        if not self._engine.exists and vectors is not None:
            before = self._first_rows.get(table)
            if only or before is None or len(before[0]) == len(keys):
                self._first_rows[table] = (keys, vectors, states)
                return
        of = self._engine.settle()
        if only and one.rows == 0:
            there = rows_of_tables.export_rows(of, table).keys
            rows_of_tables.remove_rows(of, table, np.setdiff1d(there, keys))
        rows_of_tables.import_rows(of, table, keys, vectors, states)

    def _remember(self, states: bool = True) -> None:
        """Takes all rows out of the set, which is made anew when it is needed."""
        for name in self.table_names():
            found = self._engine.export(name, states)
            self._first_rows[name] = (found.keys, found.vectors, found.states)
        self._first_updates = self._engine.set().updates if states else 0
        self._engine.close()

    def save(self, folder: Any) -> None:
        """Everything that decides later numbers, to a folder; every rank makes the call."""
        rows_of_tables.save(self._engine.settle(), folder)

    def load(self, folder: Any) -> None:
        """Goes on as the module that save() was called of, on any number of ranks."""
        self._engine.close()
        self._first_rows, self._first_updates = {}, 0
        rows_of_tables.load(self._engine.set(), folder)

    # State.

    def _state_name(self, table: str) -> str:
        return "weight"

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        if self._state_elsewhere:
            return
        for table in self._tables:
            name = prefix + self._state_name(table.name)
            if table.rows > 0:
                destination[name] = self.weight_of(table.name)
            else:
                keys, vectors = self.export(table.name)
                destination[name] = vectors.to(self.anchor.device, self.output_dtype)
                destination[name[: -len("weight")] + "keys"] = keys

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        if self._state_elsewhere:
            return
        taken = set()
        for table in self._tables:
            name = prefix + self._state_name(table.name)
            keys_name = name[: -len("weight")] + "keys"
            taken.update((name, keys_name))
            if name not in state_dict:
                missing_keys.append(name)
                continue
            weight = state_dict[name]
            weight = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
            if hasattr(weight, "local_shards"):
                shards = weight.local_shards()
                if len(shards) != 1 or shards[0].tensor.shape != weight.size():
                    error_msgs.append(f"{name} is sharded over ranks: save it whole, or gather it first")
                    continue
                weight = shards[0].tensor
            keys = state_dict.get(keys_name, range(len(weight)))
            if table.rows > 0 and tuple(weight.shape) != (table.rows, table.dim):
                error_msgs.append(f"{name} has shape {tuple(weight.shape)}, and the table {(table.rows, table.dim)}")
                continue
            try:
                self.set_rows(table.name, torch.as_tensor(keys), weight, only=True)
            except UsageError as error:
                error_msgs.append(f"{name}: {error}")
        if strict:
            unexpected_keys.extend(key for key in state_dict if key.startswith(prefix) and key not in taken)

    def _apply(self, fn: Any, recurse: bool = True) -> "Tables":
        device = self.anchor.device
        probe = fn(torch.zeros(1, device=device if device.type != "meta" else None, dtype=self.output_dtype))
        if probe.device != device and self._engine.exists:
            self._remember()
        super()._apply(fn, recurse)
        if self.anchor.dtype != torch.float32:
            self.anchor.data = self.anchor.data.float()
        self.output_dtype = probe.dtype
        return self

    def __getstate__(self) -> dict:
        """With everything of the set, as files."""
        state = self.__dict__.copy()
        engine = state.pop("_engine")
        state["_group"] = state["scaler"] = None
        if engine.exists:
            if engine.ranks > 1:
                raise UsageError("tables on several ranks are not pickled: every rank calls save(folder)")
            with tempfile.TemporaryDirectory() as folder:
                self.save(os.path.join(folder, "set"))
                state["_saved"] = _read_files(os.path.join(folder, "set"))
        for table in self._tables:
            table.optimizer = None
        return state

    def __setstate__(self, state: dict) -> None:
        saved = state.pop("_saved", None)
        super().__setstate__(state)
        self._connect()
        if saved is not None:
            with tempfile.TemporaryDirectory() as folder:
                for name, data in saved.items():
                    path = os.path.join(folder, "set", name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as file:
                        file.write(data)
                rows_of_tables.load(self._engine.set(), os.path.join(folder, "set"))

    def __deepcopy__(self, memo: dict) -> "Tables":
        import copy

        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made


def _read_files(folder: str) -> dict[str, bytes]:
    found = {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(here, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def tables_of(model: torch.nn.Module) -> Iterator[tuple[str, Tables]]:
    """The modules with tables in a model, by name."""
    return ((name, one) for name, one in model.named_modules() if isinstance(one, Tables))
