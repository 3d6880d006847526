"""The keys of a batch as tensors, with their addresses for the library."""

from __future__ import annotations

import functools
from typing import Optional, Sequence

import numpy as np
import torch

from .. import _structs as s
from .._embedding import Keys
from ..errors import UsageError

_KEY_TYPES = {torch.int32: s.I32, torch.int64: s.I64}
for _name, _type in (("uint32", s.U32), ("uint64", s.U64)):
    if hasattr(torch, _name):
        _KEY_TYPES[getattr(torch, _name)] = _type


@functools.lru_cache(maxsize=256)
def _places(at: tuple, bounds: Optional[tuple], samples: int, key_bytes: int, offset_bytes: int) -> tuple:
    """For each feature: the index of its first key, its number of keys, and the byte offsets of its keys and its
    offsets. `bounds`: the index of each list's first key; None: each sample has one key.
    """
    lists = np.asarray(at, np.int64)
    if bounds is None:
        starts, counts = lists * samples, np.full(len(lists), samples, np.int64)
    else:
        ends = np.asarray(bounds, np.int64)
        starts = ends[lists]
        counts = ends[lists + 1] - starts
    found = (starts, counts, (starts * key_bytes).astype(np.uint64), (lists * samples * offset_bytes).astype(np.uint64))
    for array in found:
        array.flags.writeable = False  # many batches share it
    return found


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
        if values.dtype not in _KEY_TYPES:
            raise UsageError(f"keys have dtype {values.dtype}, expected int32, int64, uint32 or uint64")
        if offsets is not None and offsets.dtype not in (torch.int32, torch.int64):
            raise UsageError(f"offsets have dtype {offsets.dtype}, expected int32 or int64")
        for what, others in (("offsets", offsets), ("weights", weights)):
            if others is not None and others.device != values.device:
                raise UsageError(f"keys are on {values.device} and {what} on {others.device}: move them to one device")
        self.values = values.contiguous()
        self.offsets = None if offsets is None else offsets.contiguous()
        self.weights = None if weights is None else weights.detach().to(torch.float32).contiguous()
        self.at, self.samples = at, samples
        self.keep: Optional[torch.Tensor] = None  # mask of the caller's keys without padding; None: no padding
        bounds = None if self.offsets is None else self._bounds(known)
        of_offsets = 0 if self.offsets is None else self.offsets.element_size()
        places = _places(tuple(at), bounds, samples, self.values.element_size(), of_offsets)
        self.starts, self.counts, key_bytes, offset_bytes = places
        first = np.uint64(self.values.data_ptr())
        self.keys = Keys(samples, key_bytes + first, self.counts, _KEY_TYPES[values.dtype])
        if self.offsets is not None:
            self.keys.offsets_at = offset_bytes + np.uint64(self.offsets.data_ptr())
            self.keys.offsets_type = s.I64 if self.offsets.dtype == torch.int64 else s.I32
        if self.weights is not None:
            self.keys.weights_at = (self.weights.data_ptr() + self.starts * 4).astype(np.uint64)

    def _bounds(self, known: Optional[Sequence[int]]) -> tuple:
        assert self.offsets is not None
        if self.samples == 0:
            return (0,) * (max(self.at, default=0) + 2)
        if known is not None and self.offsets.is_cuda:
            return tuple(known)
        bounds = tuple(self.offsets[:: self.samples].tolist())
        if bounds[0] != 0 or bounds[-1] != self.values.numel():
            raise UsageError(
                f"offsets go from {bounds[0]} to {bounds[-1]}, expected 0 to {self.values.numel()}, the number of keys"
            )
        return bounds

    @property
    def row_starts(self) -> np.ndarray:
        """Where each feature's vectors begin among the vectors of all keys."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]])

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
        return torch.cat([t[g.starts[f] : g.starts[f] + g.counts[f]] for f in features for g, t in zip(parts, of)])

    lengths = torch.cat([one.lengths() for one in parts], 1).flatten()
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    weights = None if parts[0].weights is None else cat([one.weights for one in parts])
    samples = sum(one.samples for one in parts)
    return Given(cat([one.values for one in parts]), offsets, weights, list(features), samples)


def without(
    padding: int, values: torch.Tensor, offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor]
) -> tuple:
    """Removes `padding` keys from the batch. Also returns a mask of the remaining keys."""
    keep = values != padding
    if offsets is not None:
        before = torch.cat([offsets.new_zeros(1), keep.cumsum(0).to(offsets.dtype)])
        offsets = before[offsets.to(torch.int64)]
    return values[keep], offsets, None if weights is None else weights[keep], keep
