"""The two PyTorch operators: the look-up of vectors, and the update of rows by gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .engine import engine_of

_library = torch.library.Library("huge_ctr", "DEF")
_KEYS = "Tensor values, Tensor? offsets, Tensor? weights, int[] at, SymInt[]? bounds, int tables, SymInt samples"
# Marks the operators as impure: equal look-ups must not be merged or recomputed by the compiler.
_TAGS = (torch.Tag.nondeterministic_seeded, torch.Tag.needs_fixed_stride_order, torch.Tag.pt2_compliant_tag)

_library.define(f"lookup(Tensor anchor, {_KEYS}, bool trains, bool pooled, int width) -> (Tensor, Tensor)", tags=_TAGS)
_library.define(
    f"update(Tensor dy, Tensor ticket, {_KEYS}, bool updates, bool wants_weights) -> (Tensor, Tensor)", tags=_TAGS
)


class _Keys(NamedTuple):
    """The arguments `_KEYS`, in the order of the schema."""

    values: Any
    offsets: Any
    weights: Any
    at: Any
    bounds: Any
    tables: Any
    samples: Any

    def of_engine(self) -> tuple:
        return self.values, self.offsets, self.weights, self.at, self.bounds, self.samples


def _keys_of(call: tuple) -> tuple[_Keys, tuple]:
    """Splits the arguments of a call into the keys and the arguments after them."""
    count = len(_Keys._fields)
    return _Keys(*call[:count]), call[count:]


def _lookup(_anchor: Any, *call: Any) -> tuple[torch.Tensor, torch.Tensor]:
    keys, (trains, _pooled, _width) = _keys_of(call)
    out, ticket = engine_of(keys.tables).lookup(*keys.of_engine(), trains)
    return out, torch.tensor([ticket], dtype=torch.int64, device="cpu")


def _lookup_shapes(_anchor: Any, *call: Any) -> tuple[torch.Tensor, torch.Tensor]:
    keys, (_trains, pooled, width) = _keys_of(call)
    rows = keys.samples if pooled else keys.values.shape[0]
    out = torch.empty((rows, width), dtype=torch.float32, device=keys.values.device)
    return out, torch.empty((1,), dtype=torch.int64, device="cpu")


def _update(dy: Any, ticket: Any, *call: Any) -> tuple[torch.Tensor, torch.Tensor]:
    keys, (updates, wants_weights) = _keys_of(call)
    anchor, of_weights = engine_of(keys.tables).backward(dy, int(ticket), *keys.of_engine(), updates, wants_weights)
    return dy.new_zeros(1) if anchor is None else anchor, dy.new_empty(0) if of_weights is None else of_weights


def _update_shapes(dy: Any, _ticket: Any, *call: Any) -> tuple[torch.Tensor, torch.Tensor]:
    keys, (_updates, wants_weights) = _keys_of(call)
    anchor = torch.empty((1,), dtype=torch.float32, device=dy.device)
    return anchor, torch.empty_like(keys.weights) if wants_weights else dy.new_empty(0)


def _keep(ctx: Any, inputs: tuple, output: tuple) -> None:
    _, values, offsets, weights, ctx.at, ctx.bounds, ctx.tables, ctx.samples, *_ = inputs
    ctx.save_for_backward(values, offsets, weights, output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, dy: Any, _: Any) -> tuple:
    values, offsets, weights, ticket = ctx.saved_tensors
    updates, wants_weights = ctx.needs_input_grad[0], ctx.needs_input_grad[3]
    if dy is None:
        return (None,) * 11
    anchor, of_weights = torch.ops.huge_ctr.update(
        dy, ticket, values, offsets, weights, ctx.at, ctx.bounds, ctx.tables, ctx.samples, updates, wants_weights
    )
    return (anchor if updates else None, None, None, of_weights if wants_weights else None, *(None,) * 7)


for _device in ("CPU", "CUDA"):
    _library.impl("lookup", _lookup, _device)
    _library.impl("update", _update, _device)
torch.library.register_fake("huge_ctr::lookup", _lookup_shapes, lib=_library)
torch.library.register_fake("huge_ctr::update", _update_shapes, lib=_library)
torch.library.register_autograd("huge_ctr::lookup", _backward, setup_context=_keep, lib=_library)


class _Lookup(torch.autograd.Function):
    """The look-up in eager mode. It makes the same calls as the operators, but saves the time of PyTorch's dispatcher.
    """

    @staticmethod
    def forward(ctx: Any, anchor: Any, values: Any, offsets: Any, weights: Any, rest: tuple) -> torch.Tensor:
        ctx.rest = rest
        ctx.save_for_backward(values, offsets, weights)
        ctx.set_materialize_grads(False)
        at, bounds, tables, samples = rest
        out, ctx.ticket = engine_of(tables).lookup(values, offsets, weights, at, bounds, samples, True)
        return out

    @staticmethod
    def backward(ctx: Any, dy: Any) -> tuple:
        values, offsets, weights = ctx.saved_tensors
        updates, wants_weights = ctx.needs_input_grad[0], ctx.needs_input_grad[3]
        if dy is None:
            return (None,) * 5
        at, bounds, tables, samples = ctx.rest
        if is_plain(dy):
            engine = engine_of(tables)
            anchor, of_weights = engine.backward(
                dy, ctx.ticket, values, offsets, weights, at, bounds, samples, updates, wants_weights
            )
            if anchor is None and updates:
                anchor = engine.no_gradient(dy)
        else:
            ticket = torch.tensor([ctx.ticket], dtype=torch.int64, device="cpu")
            anchor, of_weights = torch.ops.huge_ctr.update(
                dy, ticket, values, offsets, weights, at, bounds, tables, samples, updates, wants_weights
            )
        return anchor if updates else None, None, None, of_weights if wants_weights else None, None


def is_plain(tensor: Any) -> bool:
    """Whether calls on this tensor run immediately (eager mode), so that no compiler, mode or transform must see an
    operator.
    """
    return (
        type(tensor) is torch.Tensor
        and torch._C._len_torch_dispatch_stack() == 0
        and not torch._C._are_functorch_transforms_active()
    )


def lookup(
    anchor: torch.Tensor,
    values: Any,
    offsets: Any,
    weights: Any,
    at: Any,
    bounds: Any,
    tables: int,
    samples: Any,
    trains: bool,
    pooled: bool,
    width: int,
) -> torch.Tensor:
    if torch.compiler.is_compiling() or not is_plain(values):
        return torch.ops.huge_ctr.lookup(
            anchor, values, offsets, weights, at, bounds, tables, samples, trains, pooled, width
        )[0]
    if trains:
        return _Lookup.apply(anchor, values, offsets, weights, (at, bounds, tables, samples))
    with torch.no_grad():
        return engine_of(tables).lookup(values, offsets, weights, at, bounds, samples, False)[0]
