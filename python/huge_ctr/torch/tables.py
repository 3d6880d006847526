"""The base class of all modules with tables: their set, optimizer and look-ups."""

from __future__ import annotations

import weakref
from typing import Any, Iterator, Optional, Sequence

import torch

from .. import _embedding_rows as rows_of_tables
from .._embedding import EmbeddingSet, FeatureOptions, TableOptions
from ..errors import UsageError
from . import ops
from .engine import Engine
from .memory import allocator_of
from .rows import RowsOfTables
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
    """The storage format of rows, and the type of the vectors that a module returns."""
    dtype = dtype or torch.get_default_dtype()
    if dtype not in _FORMATS:
        raise UsageError(f"dtype of rows is {dtype}, expected float32, float16 or bfloat16")
    return _FORMATS[dtype], dtype


def split_words(words: dict) -> tuple[dict, dict, dict]:
    """Splits options into those of the set, of its tables, and of the optimizer."""
    of_set = {name: words.pop(name) for name in _SET_WORDS if name in words}
    of_tables = {name: words.pop(name) for name in _TABLE_WORDS if name in words}
    return of_set, of_tables, words


class Tables(RowsOfTables):
    """A module with embedding tables. The module's only parameter, `anchor`, makes autograd call the backward operator.
    The gradient of `anchor` is 0 or, with update="step", the norm of the gradients of all rows.
    """

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
            raise UsageError(f"update is '{update}', expected 'backward' or 'step'")
        self._tables, self._features, self._set_words = tables, features, dict(set_words or {})
        self._distributed, self._average = distributed, average
        self._update, self.output_dtype = update, dtype
        self._kind: Optional[str] = None
        self._hyper: dict = {}
        self._lr: Any = lr
        self._group: Any = None  # (weak reference to an Optimizer, index of the module's group)
        self._first_rows: dict[str, tuple] = {}  # initial rows of the set: (keys, vectors, states)
        self._first_updates = 0
        self.scaler: Any = None  # with update="backward": the torch.amp.GradScaler that scales the loss
        self.anchor = torch.nn.Parameter(torch.zeros(1, device=device or torch.get_default_device()))
        if optimizer is not None:
            self.use_optimizer(optimizer, lr, optimizer_words or {})
        elif optimizer_words:
            word = next(iter(optimizer_words))
            raise UsageError(f"{type(self).__name__} has no argument '{word}' without optimizer=")
        self._connect()

    # The set.

    def _connect(self) -> None:
        me = weakref.ref(self)
        engine = Engine(self._tables, self._features, lambda one: me()._make_set(one))
        # The engine refers weakly to the module, because an autograd graph may keep the engine alive longer than the
        # module. In that case the module's rows are not needed.
        engine.anchor = lambda: getattr(me(), "anchor", None)
        engine.rate = lambda: 0.0 if (module := me()) is None else module.rate()
        engine.has_optimizer = lambda: me() is None or bool(me()._group and me()._group[0]())
        engine.scaler = lambda: getattr(me(), "scaler", None)
        self._engine = engine
        # torch.compile treats attributes that are plain numbers as constants.
        self._number, self._pooled = engine.number, engine.pooled
        self._width = int(engine.dims.sum()) if engine.pooled else int(engine.dims[0])
        self._watched = False
        self._set_update(self._update)

    def _set_update(self, update: str) -> None:
        self._update, self._engine.in_step = update, update == "step"
        if self._engine.in_step and not self._watched:
            engine, self._watched = self._engine, True
            self.anchor.register_post_accumulate_grad_hook(lambda anchor: engine.pending.note(anchor))

    def _make_set(self, engine: Engine) -> EmbeddingSet:
        device = self.anchor.device
        if device.type not in ("cpu", "cuda"):
            raise UsageError(f"tables are on {device}, expected 'cpu' or 'cuda'; move the module with .to()")
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
        made = EmbeddingSet(self._tables, self._features, gpu, allocator_of(gpu), **words)
        if rank is not None:
            rank.close()
        policies = ("most_rows", "min_count", "admit_probability", "expire_after")
        tiers = self._set_words.get("host_bytes") or self._set_words.get("disk")
        one = tiers or any(table.words.get(name) for table in self._tables for name in policies)
        engine.most_batches = 1 if one else int(words["batches"])
        engine.rows_stay = rank is None and not one
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
        """Adopts the optimizer set by torch.distributed.optim._apply_optimizer_in_backward, by name."""
        classes = getattr(self.anchor, "_optimizer_classes", None)
        if classes and self._kind is None:
            words = dict(getattr(self.anchor, "_optimizer_kwargs", [{}])[0])
            self.use_optimizer(classes[0], words.pop("lr", None), words)

    # The optimizer.

    def use_optimizer(self, kind: Any, lr: Any = None, words: Optional[dict] = None) -> None:
        """Sets the optimizer for later updates. Rows stay; states of another optimizer are discarded."""
        kind, hyper = plain_name(kind), checked_words(kind, words or {})
        if (kind, hyper) != (self._kind, self._hyper) and getattr(self, "_engine", None) and self._engine.exists:
            self._remember(states=False)
        self._kind, self._hyper = kind, hyper
        self._lr = default_rate(kind) if lr is None else lr

    def rate(self) -> Any:
        """The learning rate of the Optimizer that contains this module or, without an Optimizer, of the module itself.
        """
        owner = self._group[0]() if self._group else None
        if owner is None:
            return self._lr
        group = owner.param_groups[self._group[1]]
        if self._hyper and any(group[word] != value for word, value in self._hyper.items()):
            now = checked_words(self._kind, {word: value for word, value in group.items() if word in self._hyper})
            if now != self._hyper:
                raise UsageError(f"a parameter group has {now}, but the tables were created with {self._hyper}")
        return group["lr"]

    @property
    def lr(self) -> Any:
        return self.rate()

    @lr.setter
    def lr(self, value: Any) -> None:
        self._lr = value

    # Look-ups.

    def reserve(self, samples: int, keys: Sequence[int]) -> None:
        """Reserves memory for a batch of at most `samples` samples, and at most keys[f] keys of feature f. Call it
        before a step is recorded into a CUDA graph, and before each replay.
        """
        self._engine.settle().reserve(samples, keys)

    def _weights_train(self, weights: Optional[torch.Tensor]) -> bool:
        return weights is not None and weights.requires_grad

    def _vectors(self, values: Any, offsets: Any, weights: Any, at: list, bounds: Any, samples: Any) -> torch.Tensor:
        graph, anchor = torch.is_grad_enabled(), self.anchor
        learns = self.training and graph
        trains = learns and (anchor.requires_grad or self._weights_train(weights))
        if not learns and graph and self._weights_train(weights):
            raise UsageError(
                "weights need gradients, but the tables are in eval() mode: call train() or torch.no_grad()"
            )
        if not trains:
            anchor = anchor.detach()
        out = ops.lookup(
            anchor, values, offsets, weights, at, bounds, self._number, samples, trains, self._pooled, self._width
        )
        return out if out.dtype == self.output_dtype else out.to(self.output_dtype)

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


def tables_of(model: torch.nn.Module) -> Iterator[tuple[str, Tables]]:
    """The modules with tables in a model, by name."""
    return ((name, one) for name, one in model.named_modules() if isinstance(one, Tables))
