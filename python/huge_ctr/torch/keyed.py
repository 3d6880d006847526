"""Concatenated vectors of several features: KeyedTensor, with TorchRec's interface."""

from __future__ import annotations

from typing import Iterable, Sequence

import torch


class KeyedTensor:
    """Concatenated vectors of several features: values [samples, sum of lengths]."""

    def __init__(self, keys: Sequence[str], length_per_key: Sequence[int], values: torch.Tensor, key_dim: int = 1):
        self._keys, self._lengths, self._values, self._key_dim = list(keys), list(length_per_key), values, key_dim

    @staticmethod
    def from_tensor_list(
        keys: Sequence[str], tensors: Sequence[torch.Tensor], key_dim: int = 1, cat_dim: int = 1
    ) -> "KeyedTensor":
        lengths = [one.shape[key_dim] for one in tensors]
        return KeyedTensor(keys, lengths, torch.cat(list(tensors), cat_dim), key_dim)

    def keys(self) -> list[str]:
        return self._keys

    def values(self) -> torch.Tensor:
        return self._values

    def key_dim(self) -> int:
        return self._key_dim

    def device(self) -> torch.device:
        return self._values.device

    def length_per_key(self) -> list[int]:
        return self._lengths

    def offset_per_key(self) -> list[int]:
        offsets = [0]
        for length in self._lengths:
            offsets.append(offsets[-1] + length)
        return offsets

    def __getitem__(self, key: str) -> torch.Tensor:
        i = self._keys.index(key)
        return self._values.narrow(self._key_dim, self.offset_per_key()[i], self._lengths[i])

    def to_dict(self) -> dict[str, torch.Tensor]:
        return dict(zip(self._keys, torch.split(self._values, self._lengths, self._key_dim)))

    def to(self, device: torch.device, non_blocking: bool = False) -> "KeyedTensor":
        values = self._values.to(device, non_blocking=non_blocking)
        return KeyedTensor(self._keys, self._lengths, values, self._key_dim)

    @staticmethod
    def regroup_as_dict(
        keyed_tensors: Iterable["KeyedTensor"], groups: Sequence[Sequence[str]], keys: Sequence[str]
    ) -> dict[str, torch.Tensor]:
        return dict(zip(keys, KeyedTensor.regroup(keyed_tensors, groups)))

    @staticmethod
    def regroup(keyed_tensors: Iterable["KeyedTensor"], groups: Sequence[Sequence[str]]) -> list[torch.Tensor]:
        every: dict[str, torch.Tensor] = {}
        for one in keyed_tensors:
            every.update(one.to_dict())
        return [torch.cat([every[key] for key in group], 1) for group in groups]
