"""The keys of a batch as tensors, with their addresses for the library."""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence

import numpy as np
import torch

from .. import _structs as s
from .._embedding import Keys
from ..errors import UsageError

_KEY_TYPES = {torch.int32: s.I32, torch.int64: s.I64}
for _name, _type in (("uint32", s.U32), ("uint64", s.U64)):
    if hasattr(torch, _name):
        _KEY_TYPES[getattr(torch, _name)] = _type


_OFFSET_TYPES = {torch.int32: (s.I32, 4), torch.int64: (s.I64, 8)}


class _Layout:
    """Where the keys of each feature are in the tensors of a batch. `bounds`: the index of each list's first key; None:
    each sample has one key.
    """

    def __init__(self, at: tuple, bounds: Optional[tuple], samples: int, key_bytes: int, offset_bytes: int):
        lists = np.asarray(at, np.int64)
        if bounds is None:
            self.starts, self.counts = lists * samples, np.full(len(lists), samples, np.int64)
        else:
            ends = np.asarray(bounds, np.int64)
            self.starts = ends[lists]
            self.counts = ends[lists + 1] - self.starts
        self.total = int(self.counts.sum())
        self.row_starts = np.cumsum(self.counts) - self.counts
        self.key_bytes = (self.starts * key_bytes).astype(np.uint64)
        self.offset_bytes = (lists * samples * offset_bytes).astype(np.uint64)
        self.weight_bytes = (self.starts * 4).astype(np.uint64)
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False  # many batches share this array


@functools.lru_cache(maxsize=256)
def _layout(
    at: tuple, bounds: Optional[tuple], samples: int, key_bytes: int, offset_bytes: int, *kinds: Any
) -> _Layout:
    """`kinds`: further properties that all batches of one layout share."""
    return _Layout(at, bounds, samples, key_bytes, offset_bytes)


class RowNumbers:
    """The row numbers of a batch's keys, int32 [layout.total], ordered by feature. `removals`: see
    EmbeddingSet.row_numbers(). `settled`: see Batches.
    """

    def __init__(self, values: torch.Tensor, removals: int, settled: int):
        self.values, self.removals, self.settled = values, removals, settled


class Given:
    """The keys of all features of a set. The tensors contain concatenated lists of keys; feature f uses list number
    at[f].
    """

    def __init__(
        self,
        values: torch.Tensor,
        offsets: Optional[torch.Tensor],
        weights: Optional[torch.Tensor],
        at: Sequence[int],
        samples: int,
        known: Optional[Sequence[int]] = None,
    ):
        """`known`: where each feature's list begins, and the end of the last list. Without it, GPU tensors require a
        synchronization.
        """
        key_type = _KEY_TYPES.get(values.dtype)
        if key_type is None:
            raise UsageError(f"keys have dtype {values.dtype}, expected int32, int64, uint32 or uint64")
        self.values = values.contiguous()
        self.offsets: Optional[torch.Tensor] = None
        self.weights: Optional[torch.Tensor] = None
        self.at, self.samples = at, samples
        self.keep: Optional[torch.Tensor] = None  # mask of the caller's keys without padding; None: no padding
        self.numbers: Optional[RowNumbers] = None  # set once the batch is released and its gradients are stored
        bounds, offset_type, offset_bytes = None, s.I64, 0
        if offsets is not None:
            if offsets.dtype not in _OFFSET_TYPES:
                raise UsageError(f"offsets have dtype {offsets.dtype}, expected int32 or int64")
            offset_type, offset_bytes = _OFFSET_TYPES[offsets.dtype]
            self._expect_device(offsets, "offsets")
            self.offsets = offsets.contiguous()
            bounds = self._bounds(known)
        if weights is not None:
            self._expect_device(weights, "weights")
            self.weights = weights.detach().to(torch.float32).contiguous()
        layout = _layout(tuple(at), bounds, samples, values.element_size(), offset_bytes, key_type, weights is None)
        self.layout, self.counts = layout, layout.counts
        bases = [0 if one is None else one.data_ptr() for one in (self.values, self.offsets, self.weights)]
        self.keys = Keys(
            samples,
            layout.key_bytes,
            layout.counts,
            key_type,
            None if self.offsets is None else layout.offset_bytes,
            offset_type,
            None if self.weights is None else layout.weight_bytes,
            layout,
            tuple(bases),
        )

    def _expect_device(self, others: torch.Tensor, what: str) -> None:
        if others.device != self.values.device:
            raise UsageError(f"keys are on {self.values.device} and {what} on {others.device}: move them to one device")

    def _bounds(self, known: Optional[Sequence[int]]) -> tuple:
        assert self.offsets is not None
        if self.samples == 0:
            return (0,) * (max(self.at, default=0) + 2)
        if known is not None and self.offsets.is_cuda:
            return known if type(known) is tuple else tuple(known)
        bounds = tuple(self.offsets[:: self.samples].tolist())
        if bounds[0] != 0 or bounds[-1] != self.values.numel():
            raise UsageError(
                f"offsets go from {bounds[0]} to {bounds[-1]}, expected 0 to {self.values.numel()}, the number of keys"
            )
        return bounds

    def lengths(self) -> torch.Tensor:
        """[features, samples]"""
        if self.offsets is None:
            return torch.ones(len(self.at), self.samples, dtype=torch.int64, device=self.values.device)
        steps = torch.diff(self.offsets.to(torch.int64)).view(-1, self.samples)
        return steps[torch.as_tensor(list(self.at), device=steps.device)]

    def same_place(self, other: "Given") -> bool:
        """Whether the keys of both batches are in the same memory. All ranks get the same result."""
        return self.values.data_ptr() == other.values.data_ptr() and self.values.shape == other.values.shape

    def same_keys(self, other: "Given") -> bool:
        """Whether the keys of both batches are in the same memory, or are equal."""
        here, there = (None if one.offsets is None else one.offsets.data_ptr() for one in (self, other))
        if self.same_place(other) and here == there:
            return True
        if self.samples != other.samples or self.values.shape != other.values.shape:
            return False
        if (self.offsets is None) != (other.offsets is None) or not np.array_equal(self.counts, other.counts):
            return False
        if self.offsets is not None and not torch.equal(self.offsets, other.offsets):
            return False
        return torch.equal(self.values, other.values)


def joined(parts: Sequence[Given]) -> Given:
    """Concatenates the samples of all parts to one batch."""
    if len(parts) == 1:
        return parts[0]
    features = range(len(parts[0].at))

    def cat(of: Sequence[torch.Tensor]) -> torch.Tensor:
        pairs = [(one.layout, keys) for one, keys in zip(parts, of)]
        return torch.cat([keys[at.starts[f] : at.starts[f] + at.counts[f]] for f in features for at, keys in pairs])

    lengths = torch.cat([one.lengths() for one in parts], 1).flatten()
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    weights = None if parts[0].weights is None else cat([one.weights for one in parts])
    samples = sum(one.samples for one in parts)
    return Given(cat([one.values for one in parts]), offsets, weights, list(features), samples)


def joined_numbers(parts: Sequence[Given], settled: int) -> Optional[RowNumbers]:
    """The row numbers of joined(parts). None: they are not known, or rows may have been removed since."""
    numbers = [one.numbers for one in parts]
    if any(one is None or one.settled != settled for one in numbers):
        return None
    places = [(one.layout, one.numbers.values) for one in parts]
    features = range(len(parts[0].at))
    of_features = [
        values[at.row_starts[f] : at.row_starts[f] + at.counts[f]] for f in features for at, values in places
    ]
    return RowNumbers(torch.cat(of_features), numbers[0].removals, settled)


def without(
    padding: int, values: torch.Tensor, offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor]
) -> tuple:
    """Removes `padding` keys from the batch. Also returns a mask of the remaining keys."""
    keep = values != padding
    if offsets is not None:
        before = torch.cat([offsets.new_zeros(1), keep.cumsum(0).to(offsets.dtype)])
        offsets = before[offsets.to(torch.int64)]
    return values[keep], offsets, None if weights is None else weights[keep], keep
