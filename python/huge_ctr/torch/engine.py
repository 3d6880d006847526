"""The calls of a module's training step: forward, backward and update. autograd passes a ticket from forward to
backward.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Callable, Optional

import numpy as np
import torch

from .. import _embedding_rows as rows_of_tables
from .._embedding import EmbeddingSet
from ..errors import UsageError
from .batches import Batches
from .given import Given, RowNumbers, joined, joined_numbers, without
from .pending import Pending

_MOST_OPEN = 1 << 16
_numbers = itertools.count(1)
_tickets = itertools.count(1)
_engines: "weakref.WeakValueDictionary[int, Engine]" = weakref.WeakValueDictionary()


def engine_of(number: int) -> "Engine":
    found = _engines.get(number)
    if found is None:
        raise UsageError(
            f"the module that created tables {number} does not exist any more: an exported or pickled graph "
            "needs this module in its process"
        )
    return found


# the number of the backward pass that is running in this thread; -1: none
_graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def _inside_backward() -> bool:
    """Whether a backward pass is running. A forward pass is then a recomputation (activation checkpointing)."""
    return _graph_task() != -1


class Engine(Batches):
    """The batches and calls of one module with tables. Each update of rows calls `rate`, which returns the learning
    rate as a number or tensor.
    """

    def __init__(self, tables: list, features: list, make: Callable[[Any], EmbeddingSet]):
        super().__init__(tables, features, make)
        self.number = next(_numbers)
        _engines[self.number] = self
        self.in_step = False  # True: the optimizer's step() updates rows; False: backward() does
        self.has_rule = False
        self.ranks, self.averages = 1, True
        self.rows_stay = False  # whether rows keep their numbers until a caller removes rows
        self.padding: Optional[int] = None
        self.rate: Callable[[], Any] = lambda: 0.0
        self.has_optimizer: Callable[[], bool] = lambda: True  # whether an optimizer exists whose step() updates rows
        self.anchor: Callable[[], Optional[torch.Tensor]] = lambda: None
        self.scaler: Callable[[], Any] = lambda: None  # the GradScaler that scales the loss, if backward() updates rows
        self.following: Optional[Callable[[], None]] = None  # prefetches the next batch
        self.pending = Pending(self)
        self._zero: Optional[torch.Tensor] = None  # the gradient of the anchor, if rows are updated in backward()
        self._zero_version = 0

    def close(self) -> None:
        super().close()
        self.pending.drop()

    # Calls of a training step.

    def _given(self, values: Any, offsets: Any, weights: Any, at: Any, bounds: Any, samples: int) -> Given:
        anchor = self.anchor()
        if anchor is not None and anchor.device != values.device:
            raise UsageError(f"keys are on {values.device}, but the tables are on {anchor.device}")
        keep = None
        if self.padding is not None:
            values, offsets, weights, keep = without(self.padding, values, offsets, weights)
            if not self.pooled:
                samples = values.numel()
            bounds = None
        given = Given(values, offsets, weights, at, samples, bounds)
        given.keep = keep
        return given

    def lookup(
        self, values: Any, offsets: Any, weights: Any, at: Any, bounds: Any, samples: int, trains: bool
    ) -> tuple[torch.Tensor, int]:
        """Returns the vectors, and the ticket for their backward pass; 0: no backward pass."""
        given = self._given(values, offsets, weights, at, bounds, samples)
        out = self.empty_vectors(given)
        ticket = self._forward(given, out) if trains else self._look_up(given, out)
        if trains and self.following is not None and not _inside_backward():
            following, self.following = self.following, None
            following()
        if given.keep is not None and not self.pooled:
            whole = self._row(values, self.padding).expand(values.numel(), -1).clone()
            whole[given.keep] = out
            out = whole
        return out, ticket

    def _row(self, like: torch.Tensor, key: Optional[int]) -> torch.Tensor:
        given = Given(torch.full((1,), key, dtype=like.dtype, device=like.device), None, None, [0], 1)
        out = self.empty_vectors(given)
        self._look_up(given, out)
        return out

    def _look_up(self, given: Given, out: torch.Tensor) -> int:
        self.set().lookup(given.keys, *self.places(given, out))
        return 0

    def _forward(self, given: Given, out: torch.Tensor) -> int:
        if _inside_backward():
            for ticket, _, before in self._flight:
                if ticket in self._open and before.same_keys(given):
                    self._look_up(given, out)
                    return ticket
        # if many forward passes had no backward pass, forgets a ticket whose batch is released
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next((one for one, batch in self._open.items() if batch is None), 0), None)
        ticket = next(_tickets)
        for early in self._early:
            if early.same_keys(given) if self.ranks == 1 else early.same_place(given):
                self._take_early(early, ticket, given, out)
                return ticket
        vectors = self.places(given, out)
        self._open[ticket] = self._begin(ticket, given, lambda: self.set().forward(given.keys, *vectors))
        return ticket

    def _take_early(self, early: Given, ticket: int, given: Given, out: torch.Tensor) -> None:
        self._early = [one for one in self._early if one is not early]
        place = next(i for i, one in enumerate(self._flight) if one[2] is early)
        batch = self._flight[place][1]
        self._flight[place] = (ticket, batch, given)
        self._release_before(batch)
        self._open[ticket] = batch
        self.set().vectors(batch, self.rows_of(given), *self.places(given, out))

    def prefetch(self, values: Any, offsets: Any, weights: Any, at: Any, bounds: Any, samples: int) -> None:
        """Finds the rows of a later batch. Does nothing if only one batch may be in flight."""
        if len(self._flight) >= self.most_batches:
            return
        given = self._given(values, offsets, weights, at, bounds, samples)
        self._begin(None, given, lambda: self.set().prefetch(given.keys))
        self._early.append(given)

    def backward(
        self,
        dy: torch.Tensor,
        ticket: int,
        values: Any,
        offsets: Any,
        weights: Any,
        at: Any,
        bounds: Any,
        samples: int,
        updates: bool,
        wants_weights: bool,
    ) -> tuple[Optional[torch.Tensor], Optional[torch.Tensor]]:
        """Updates rows, or stores the gradient for step(). Returns the gradient of the anchor (None: it is zero) and of
        the weights of keys (None: the caller does not want it).
        """
        if ticket not in self._open or self.pending.has(ticket):
            raise UsageError(
                "second backward pass for one forward pass of embedding tables: only one is supported, because it "
                "updates rows"
            )
        if updates and self.in_step and not self.has_optimizer():
            raise UsageError(
                'tables with update="step" are trained, but no huge_ctr.torch.optimizer(model) contains them'
            )
        given = self._given_of(ticket) or self._given(values, offsets, weights, at, bounds, samples)
        if given.keep is not None and not self.pooled:
            dy = dy[given.keep]
        dy = dy.contiguous() if dy.dtype == torch.float32 else dy.to(torch.float32).contiguous()
        batch = self.at_front(ticket, given)
        of_weights = self._weight_gradients(batch, given, dy, weights) if wants_weights else None
        # without an update, only the weights of keys have gradients, and the backward pass may be repeated
        if not updates:
            return None, of_weights
        if self.in_step:
            return self.pending.add(ticket, given, dy), of_weights
        self._apply_scaled(batch, given, dy)
        del self._open[ticket]
        return None, of_weights

    def no_gradient(self, like: torch.Tensor) -> torch.Tensor:
        """Returns a zero [1] on the device of `like`. All calls return the same memory, which saves a kernel in each
        backward pass. If somebody has written to this memory, the next call allocates a new zero.
        """
        zero = self._zero
        if zero is None or zero.device != like.device or zero._version != self._zero_version:
            zero = torch.zeros(1, device=like.device)
            # memory that is allocated while a CUDA graph is recorded belongs to the graph
            if zero.is_cuda and torch.cuda.is_current_stream_capturing():
                return zero
            self._zero, self._zero_version = zero, zero._version
        return zero.view(1)  # a new tensor object on the same memory, so that autograd stores it without a copy

    def _weight_gradients(self, batch: int, given: Given, dy: Any, weights: Any) -> torch.Tensor:
        layout = given.layout
        parts = torch.zeros(layout.total, device=dy.device)
        at = [parts.data_ptr() + int(at) * 4 if f.weighted else 0 for f, at in zip(self.features, layout.row_starts)]
        self.set().weight_gradients(batch, given.keys, *self.places(given, dy), at)
        if len(parts) == given.values.numel() and np.array_equal(layout.starts, layout.row_starts):
            to = parts
        else:
            # A list of keys may belong to no feature, or to several features. Add the gradients of each feature at the
            # positions of its list.
            to = torch.zeros(given.values.numel(), device=dy.device)
            for start, count, at_part in zip(layout.starts, layout.counts, layout.row_starts):
                to[start : start + count] += parts[at_part : at_part + count]
        if given.keep is not None:
            whole = torch.zeros(given.keep.shape, device=dy.device)
            whole[given.keep] = to
            to = whole
        return to.to(weights.dtype)

    def _apply_scaled(self, batch: int, given: Given, dy: torch.Tensor) -> None:
        """Calls apply(). With a GradScaler, first undoes its scaling; gradients that are not finite skip the update."""
        scaler = self.scaler()
        if scaler is None:
            return self.apply(batch, given, dy, 1.0)
        # The scale and the flag stay on the device: the host does not wait.
        scale = scaler.scale(dy.new_ones(1))
        skip = torch.isfinite(dy).all().logical_not().float().view(1)
        if self.ranks > 1:
            torch.distributed.all_reduce(skip, torch.distributed.ReduceOp.MAX)
        self.apply(batch, given, dy / scale, 1.0, skip)

    def apply(
        self, batch: int, given: Given, dy: torch.Tensor, factor: float, skip: Optional[torch.Tensor] = None
    ) -> None:
        """Updates the rows of the first batch in flight with `factor` times its gradients, and ends the batch. If the
        value of `skip` [1] is not zero, rows keep their values.
        """
        if not self.has_rule:
            raise UsageError(
                "tables without an optimizer are trained: give their module optimizer= and lr=, or call "
                "huge_ctr.torch.optimizer(model, 'adam', lr=...) before"
            )
        rate, rate_at = self.rate(), None
        if isinstance(rate, torch.Tensor) and rate.is_cuda and rate.dtype == torch.float32:
            rate_at, rate = rate.data_ptr(), 0.0
        scale = (self.ranks if self.averages else 1) / factor if factor != 0 else float("inf")
        skip_at = None if skip is None else skip.data_ptr()
        at, stride = self.places(given, dy)
        self.set().update(batch, self.rows_of(given), at, stride, float(rate), scale, rate_at, skip_at)
        self._end()

    def finish(self, ticket: int) -> None:
        """Forgets a ticket after its update, or if its update is dropped."""
        self._open.pop(ticket, None)

    def _before_release(self, ticket: Optional[int], batch: int, given: Given) -> None:
        """Reads the row numbers of a batch whose gradients are stored for step()."""
        if self.rows_stay and ticket is not None and self.pending.has(ticket):
            values = torch.empty(given.layout.total, dtype=torch.int32, device=given.values.device)
            given.numbers = RowNumbers(values, self.set().row_numbers(batch, self._at(given, values)), self.settled)

    @staticmethod
    def _at(given: Given, numbers: torch.Tensor) -> np.ndarray:
        return (given.layout.row_starts * 4 + numbers.data_ptr()).astype(np.uint64)

    def joined_batch(self, parts: list) -> tuple[int, Given, torch.Tensor]:
        """Merges several batches and their gradients into one batch. Keys are looked up again only if rows may have
        been removed.
        """
        self._release_before(None)
        several = [one for _, one, _ in parts]
        given, numbers = joined(several), joined_numbers(several, self.settled)
        if self.pooled:
            dy = torch.cat([dy for _, _, dy in parts])
        else:
            features = range(len(self.features))
            starts = [one.layout.row_starts for _, one, _ in parts]
            dy = torch.cat(
                [dy[at[f] : at[f] + g.counts[f]] for f in features for at, (_, g, dy) in zip(starts, parts)]
            )
        if numbers is None:
            batch = self.begin_again(None, given)
        else:
            of, at = self.set(), self._at(given, numbers.values)
            batch = self._begin(None, given, lambda: of.prefetch_rows(given.keys, at, numbers.removals))
            # max pooling: computes the vectors again, which finds the keys that have the maxima
            if any(feature.pooling == "max" for feature in self.features):
                again = self.empty_vectors(given)
                of.vectors(batch, self.rows_of(given), *self.places(given, again))
        return batch, given, dy.contiguous()

    # Row access between batches.

    def export(self, table: str, states: bool = False, changed: bool = False) -> rows_of_tables.Rows:
        return rows_of_tables.export_rows(self.settle(), table, states, changed)
