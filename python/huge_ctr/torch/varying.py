"""KeyedJaggedTensors whose features have different numbers of samples."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..errors import UsageError


def varies(features: Any) -> bool:
    """Whether the number of samples varies by feature. `features`: a KeyedJaggedTensor of TorchRec or of this package.
    """
    ask = getattr(features, "variable_stride_per_key", None)
    if ask is None or not ask():
        return False
    return features.inverse_indices_or_none() is not None or len(set(features.stride_per_key())) > 1


@functools.lru_cache(maxsize=64)
def _places(strides: tuple, device: torch.device) -> torch.Tensor:
    places, first = [], 0
    for stride in strides:
        places += [first + min(sample, stride) for sample in range(max(strides))]
        first += stride
    return torch.tensor([*places, first], device=device)


def padded_offsets(features: Any) -> tuple[torch.Tensor, int]:
    """Pads features with empty lists, so that all have as many samples as the feature with the most samples. Returns
    the offsets of the padded lists, and the number of samples.
    """
    strides = tuple(features.stride_per_key())
    offsets = features.offsets()
    return offsets[_places(strides, offsets.device)], max(strides, default=0)


def of_each_sample(features: Any, names: list[str], out: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Returns the vectors of every sample of the batch. inverse_indices() of `features` has, for each feature and each
    sample of the batch, the index among the feature's samples. `names` and `lengths`: of the features of `out`.
    """
    given = features.inverse_indices_or_none()
    if given is None:
        raise UsageError("samples that differ by feature (stride_per_key_per_rank) need inverse_indices")
    known, inverse = given
    parts = [
        # On a GPU the gradient of embedding() is summed in a fixed order, unlike the gradient of index_select().
        torch.nn.functional.embedding(inverse[known.index(name)], part)
        for name, part in zip(names, torch.split(out, lengths, 1))
    ]
    return torch.cat(parts, 1)
