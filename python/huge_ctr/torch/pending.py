"""Gradients that are stored for the optimizer's step()."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import torch

from .given import Given

if TYPE_CHECKING:
    from .engine import Engine


class Pending:
    """The gradients of the batches since the last step, and their norm. The norm becomes the gradient of the module's
    anchor. If a program clips or scales all gradients of a model, the row gradients are therefore scaled, too.
    """

    def __init__(self, engine: "Engine"):
        self._engine = engine
        self._parts: list[tuple[int, Given, torch.Tensor]] = []
        self._sums: list[tuple[torch.Tensor, torch.Tensor]] = []  # by table: keys and their summed gradients
        self._norm: Optional[float] = None

    def add(self, ticket: int, given: Given, dy: torch.Tensor) -> torch.Tensor:
        """Stores a gradient. Returns the value that autograd must add to the anchor's gradient."""
        anchor = self._engine.anchor()
        before = None if anchor is None or anchor.grad is None else float(anchor.grad)
        if self._parts and not before:
            self.drop()  # the anchor has no gradient any more, so the caller has called zero_grad()
        self._parts.append((ticket, given, dy))
        self._merge(self._row_gradients(ticket, given, dy))
        self._norm = self._norm_of_all()
        return dy.new_full((1,), self._norm - (before or 0.0))

    def has(self, ticket: int) -> bool:
        return any(one == ticket for one, _, _ in self._parts)

    def note(self, anchor: torch.Tensor) -> None:
        """Sets the anchor's gradient to exactly the norm, because the sum that autograd has computed may be rounded.
        Between this call and apply(), the caller may scale the gradient. apply() then scales the row gradients by the
        same factor.
        """
        if self._norm is not None and anchor.grad is not None and self._parts:
            anchor.grad.fill_(self._norm)  # exact: the norm is a float32

    def apply(self) -> None:
        """Updates the rows with the stored gradients."""
        anchor, engine = self._engine.anchor(), self._engine
        if not self._parts or anchor is None or anchor.grad is None:
            return self.drop()
        now, norm = float(anchor.grad), float(self._norm or 0.0)
        factor = now / norm if norm not in (0.0, now) and math.isfinite(norm) else 1.0
        if len(self._parts) == 1:
            ticket, given, dy = self._parts[0]
            batch = engine.at_front(ticket, given)
        else:
            batch, given, dy = engine.joined_batch(self._parts)
        engine.apply(batch, given, dy, factor)
        self.drop()

    def drop(self) -> None:
        for ticket, _, _ in self._parts:
            self._engine.finish(ticket)
        self._parts, self._sums, self._norm = [], [], None

    def _row_gradients(self, ticket: int, given: Given, dy: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        engine = self._engine
        batch = engine.at_front(ticket, given)
        most = engine.set().keys_of_batch(batch)
        made = [
            (
                torch.empty(max(int(keys), 1), dtype=torch.int64, device=dy.device),
                torch.empty(max(int(keys), 1), table.dim, device=dy.device),
            )
            for keys, table in zip(most, engine.tables)
        ]
        to = [(keys.data_ptr(), sums.data_ptr()) for keys, sums in made]
        places = engine.places(given, dy)
        counts = engine.set().row_gradients(batch, engine.rows_of(given), *places, to, ends=False)
        return [(keys[:count], sums[:count]) for (keys, sums), count in zip(made, counts)]

    def _merge(self, more: list) -> None:
        if not self._sums:
            self._sums = more
            return
        merged = []
        for (keys, sums), (new_keys, new_sums) in zip(self._sums, more):
            all_keys, at = torch.unique(torch.cat([keys, new_keys]), return_inverse=True)
            both = sums.new_zeros(len(all_keys), sums.shape[1])
            merged.append((all_keys, both.index_add_(0, at, torch.cat([sums, new_sums]))))
        self._sums = merged

    def _norm_of_all(self) -> float:
        # the host waits once for the sums of all tables
        squares = float(sum(sums.double().square().sum() for _, sums in self._sums))
        if self._engine.ranks > 1:
            total: Any = torch.tensor([squares], dtype=torch.float64, device=self._parts[-1][2].device)
            torch.distributed.all_reduce(total)
            squares = float(total)
        divisor = self._engine.ranks if self._engine.averages else 1
        return float(np.float32(math.sqrt(squares) / divisor)) if math.isfinite(squares) else squares
