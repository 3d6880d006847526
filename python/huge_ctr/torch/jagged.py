"""Key lists of several features: JaggedTensor and KeyedJaggedTensor, with TorchRec's interface."""

from __future__ import annotations

import itertools
from typing import Any, Iterable, Optional, Sequence

import torch

from .keyed import KeyedTensor


def _offsets_of(lengths: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_compiling():
        return torch.cat([lengths.new_zeros(1), torch.cumsum(lengths, 0, dtype=lengths.dtype)])
    offsets = lengths.new_zeros(lengths.numel() + 1)
    torch.cumsum(lengths, 0, dtype=lengths.dtype, out=offsets[1:])  # torch.cat() would make a copy
    return offsets


class JaggedTensor:
    """Concatenated lists: list i is values[offsets[i]:offsets[i + 1]]."""

    def __init__(
        self,
        values: torch.Tensor,
        weights: Optional[torch.Tensor] = None,
        lengths: Optional[torch.Tensor] = None,
        offsets: Optional[torch.Tensor] = None,
    ):
        if lengths is None and offsets is None:
            raise ValueError("a JaggedTensor needs lengths or offsets")
        self._values, self._weights, self._lengths, self._offsets = values, weights, lengths, offsets

    @staticmethod
    def empty(is_weighted: bool = False, device: Any = None, values_dtype: Any = None, **_: Any) -> "JaggedTensor":
        weights = torch.empty(0, device=device) if is_weighted else None
        return JaggedTensor(
            torch.empty(0, dtype=values_dtype, device=device),
            weights,
            torch.empty(0, dtype=torch.int32, device=device),
            torch.zeros(1, dtype=torch.int32, device=device),
        )

    @staticmethod
    def from_dense(values: Sequence[torch.Tensor], weights: Optional[Sequence[torch.Tensor]] = None) -> "JaggedTensor":
        lengths = torch.tensor([len(one) for one in values], dtype=torch.int32, device=values[0].device)
        return JaggedTensor(torch.cat(list(values)), None if weights is None else torch.cat(list(weights)), lengths)

    def values(self) -> torch.Tensor:
        return self._values

    def weights(self) -> torch.Tensor:
        if self._weights is None:
            raise ValueError("this JaggedTensor has no weights")
        return self._weights

    def weights_or_none(self) -> Optional[torch.Tensor]:
        return self._weights

    def lengths(self) -> torch.Tensor:
        if self._lengths is None:
            self._lengths = torch.diff(self._offsets)
        return self._lengths

    def lengths_or_none(self) -> Optional[torch.Tensor]:
        return self._lengths

    def offsets(self) -> torch.Tensor:
        if self._offsets is None:
            self._offsets = _offsets_of(self._lengths)
        return self._offsets

    def offsets_or_none(self) -> Optional[torch.Tensor]:
        return self._offsets

    def to_dense(self) -> list[torch.Tensor]:
        return list(torch.split(self._values, self.lengths().tolist()))

    def to_dense_weights(self) -> list[torch.Tensor]:
        return list(torch.split(self.weights(), self.lengths().tolist()))

    def to_padded_dense(self, desired_length: Optional[int] = None, padding_value: float = 0.0) -> torch.Tensor:
        lists = self.to_dense()
        most = max((len(one) for one in lists), default=0) if desired_length is None else desired_length
        out = self._values.new_full((len(lists), most, *self._values.shape[1:]), padding_value)
        for i, one in enumerate(lists):
            out[i, : min(len(one), most)] = one[:most]
        return out

    def _map(self, fn: Any) -> "JaggedTensor":
        parts = (self._values, self._weights, self._lengths, self._offsets)
        return JaggedTensor(*(None if one is None else fn(one) for one in parts))

    def to(self, device: Any, non_blocking: bool = False) -> "JaggedTensor":
        return self._map(lambda one: one.to(device, non_blocking=non_blocking))

    def device(self) -> torch.device:
        return self._values.device

    def __str__(self) -> str:
        return f"JaggedTensor({self.to_dense()})"


class KeyedJaggedTensor:
    """A list of keys for each feature and sample, ordered by feature: lengths [features * samples]. With
    stride_per_key_per_rank, features have different numbers of samples. inverse_indices is then a pair: the names of
    the features, and a tensor [features, samples of the batch] with the index of the feature's sample that belongs to
    each sample of the batch.
    """

    def __init__(
        self,
        keys: Sequence[str],
        values: torch.Tensor,
        weights: Optional[torch.Tensor] = None,
        lengths: Optional[torch.Tensor] = None,
        offsets: Optional[torch.Tensor] = None,
        stride: Optional[int] = None,
        stride_per_key_per_rank: Optional[Sequence[Sequence[int]]] = None,
        inverse_indices: Optional[tuple[list[str], torch.Tensor]] = None,
    ):
        if lengths is None and offsets is None:
            raise ValueError("a KeyedJaggedTensor needs lengths or offsets")
        self._keys, self._values, self._weights = list(keys), values, weights
        self._lengths, self._offsets = lengths, offsets
        lists = lengths.numel() if lengths is not None else offsets.numel() - 1
        strides = None if stride_per_key_per_rank is None else [sum(of_ranks) for of_ranks in stride_per_key_per_rank]
        if stride is None:
            most = None if strides is None else max(strides, default=0)
            stride = most if most is not None else lists // len(self._keys) if self._keys else 0
        self._stride, self._inverse, self._varies = stride, inverse_indices, strides is not None
        self._strides: list[int] = [stride] * len(self._keys) if strides is None else strides
        if sum(self._strides) != lists or len(self._strides) != len(self._keys):
            raise ValueError(
                f"{lists} lists for {len(self._keys)} features: expected the same number of lists for each feature"
            )
        self._length_per_key: Optional[list[int]] = None

    @staticmethod
    def from_lengths_sync(
        keys: Sequence[str],
        values: torch.Tensor,
        lengths: torch.Tensor,
        weights: Optional[torch.Tensor] = None,
        **_: Any,
    ) -> "KeyedJaggedTensor":
        return KeyedJaggedTensor(keys, values, weights, lengths=lengths)

    @staticmethod
    def from_offsets_sync(
        keys: Sequence[str],
        values: torch.Tensor,
        offsets: torch.Tensor,
        weights: Optional[torch.Tensor] = None,
        **_: Any,
    ) -> "KeyedJaggedTensor":
        return KeyedJaggedTensor(keys, values, weights, offsets=offsets)

    @staticmethod
    def from_jt_dict(jt_dict: dict) -> "KeyedJaggedTensor":
        parts = list(jt_dict.values())
        weights = [one.weights_or_none() for one in parts]
        return KeyedJaggedTensor(
            list(jt_dict),
            torch.cat([one.values() for one in parts]),
            None if any(one is None for one in weights) else torch.cat(weights),
            torch.cat([one.lengths() for one in parts]),
        )

    @staticmethod
    def concat(kjt_list: Sequence["KeyedJaggedTensor"]) -> "KeyedJaggedTensor":
        """Concatenates the features of KeyedJaggedTensors that have the same samples."""
        varies = any(one.variable_stride_per_key() for one in kjt_list)
        if not varies and len({one.stride() for one in kjt_list}) > 1:
            raise ValueError(f"strides differ: {[one.stride() for one in kjt_list]}")
        weights = [one.weights_or_none() for one in kjt_list]
        return KeyedJaggedTensor(
            [key for one in kjt_list for key in one.keys()],
            torch.cat([one.values() for one in kjt_list]),
            None if any(one is None for one in weights) else torch.cat(weights),
            torch.cat([one.lengths() for one in kjt_list]),
            stride_per_key_per_rank=[[count] for one in kjt_list for count in one.stride_per_key()] if varies else None,
        )

    @staticmethod
    def empty(is_weighted: bool = False, device: Any = None, values_dtype: Any = None, **_: Any) -> "KeyedJaggedTensor":
        weights = torch.empty(0, device=device) if is_weighted else None
        values = torch.empty(0, dtype=values_dtype, device=device)
        return KeyedJaggedTensor([], values, weights, torch.empty(0, dtype=torch.int32, device=device))

    def keys(self) -> list[str]:
        return self._keys

    def values(self) -> torch.Tensor:
        return self._values

    weights = JaggedTensor.weights
    weights_or_none = JaggedTensor.weights_or_none
    lengths = JaggedTensor.lengths
    lengths_or_none = JaggedTensor.lengths_or_none
    offsets = JaggedTensor.offsets
    offsets_or_none = JaggedTensor.offsets_or_none
    device = JaggedTensor.device

    def stride(self) -> int:
        return self._stride

    def stride_per_key(self) -> list[int]:
        """The number of samples of each feature."""
        return self._strides

    def stride_per_key_per_rank(self) -> list[list[int]]:
        return [[stride] for stride in self._strides]

    def variable_stride_per_key(self) -> bool:
        """Whether the numbers of samples were given by feature."""
        return self._varies

    def inverse_indices_or_none(self) -> Optional[tuple[list[str], torch.Tensor]]:
        return self._inverse

    def inverse_indices(self) -> tuple[list[str], torch.Tensor]:
        if self._inverse is None:
            raise ValueError("this KeyedJaggedTensor has no inverse_indices")
        return self._inverse

    def length_per_key(self) -> list[int]:
        """The number of keys of each feature; synchronizes with the GPU at the first call."""
        if self._length_per_key is None:
            if self._varies:
                sums = torch.stack([one.sum() for one in torch.split(self.lengths(), self._strides)])
            elif self._stride:
                sums = self.lengths().view(len(self._keys), -1).sum(1)
            else:
                sums = self.lengths().new_zeros(len(self._keys))
            self._length_per_key = sums.tolist()
        return self._length_per_key

    def offset_per_key(self) -> list[int]:
        return [0, *itertools.accumulate(self.length_per_key())]

    def offset_per_key_or_none(self) -> Optional[list[int]]:
        """offset_per_key() if the host already knows it, otherwise None."""
        return None if self._length_per_key is None else self.offset_per_key()

    def split(self, segments: Sequence[int]) -> list["KeyedJaggedTensor"]:
        """Splits into parts with these numbers of features."""
        parts, first, at = [], 0, self.offset_per_key()
        for count in segments:
            parts.append(self._some(first, first + count, at[first], at[first + count]))
            first += count
        return parts

    def _some(self, first: int, last: int, begin: int, end: int) -> "KeyedJaggedTensor":
        weights = None if self._weights is None else self._weights[begin:end]
        lists = sum(self._strides[:first]), sum(self._strides[:last])
        strides = self.stride_per_key_per_rank()[first:last] if self._varies else None
        return KeyedJaggedTensor(
            self._keys[first:last],
            self._values[begin:end],
            weights,
            self.lengths()[lists[0] : lists[1]],
            stride=None if strides else self._stride,
            stride_per_key_per_rank=strides,
        )

    def permute(self, indices: Sequence[int], indices_tensor: Optional[torch.Tensor] = None) -> "KeyedJaggedTensor":
        """Selects features by index, in this order."""
        at = self.offset_per_key()
        parts = [self._some(i, i + 1, at[i], at[i + 1]) for i in indices]
        if not parts:
            return KeyedJaggedTensor.empty(self._weights is not None, self._values.device, self._values.dtype)
        return KeyedJaggedTensor.concat(parts)

    def __getitem__(self, key: str) -> JaggedTensor:
        i, at = self._keys.index(key), self.offset_per_key()
        one = self._some(i, i + 1, at[i], at[i + 1])
        return JaggedTensor(one._values, one._weights, one._lengths)

    def to_dict(self) -> dict[str, JaggedTensor]:
        return {key: self[key] for key in self._keys}

    def _map(self, fn: Any) -> "KeyedJaggedTensor":
        parts = [
            None if one is None else fn(one) for one in (self._values, self._weights, self._lengths, self._offsets)
        ]
        inverse = None if self._inverse is None else (self._inverse[0], fn(self._inverse[1]))
        strides = self.stride_per_key_per_rank() if self._varies else None
        made = KeyedJaggedTensor(
            self._keys, *parts, stride=self._stride, stride_per_key_per_rank=strides, inverse_indices=inverse
        )
        made._length_per_key = self._length_per_key
        return made

    def to(self, device: Any, non_blocking: bool = False, dtype: Any = None) -> "KeyedJaggedTensor":
        """Copies the lists to a device. Before lists leave host memory, it computes length_per_key(), so that a look-up
        on the GPU does not wait.
        """
        if torch.device(device).type != "cpu" and self.lengths().device.type == "cpu":
            self.length_per_key()
        return self._map(lambda one: one.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "KeyedJaggedTensor":
        return self._map(lambda one: one.pin_memory())

    def record_stream(self, stream: Any) -> None:
        for one in (self._values, self._weights, self._lengths, self._offsets):
            if one is not None:
                one.record_stream(stream)

    def __str__(self) -> str:
        return f"KeyedJaggedTensor({ {key: one.to_dense() for key, one in self.to_dict().items()} })"


def _register() -> None:
    """Registers the classes as pytrees, for torch.export and torch.func."""
    from torch.utils import _pytree as pytree

    def tensors(*names: str) -> Any:
        def flatten(one: Any) -> tuple:
            fixed = {name: value for name, value in vars(one).items() if name not in names}
            return [getattr(one, name) for name in names], (type(one), fixed)

        return flatten

    def unflatten(values: Iterable, about: tuple) -> Any:
        kind, fixed = about
        made = kind.__new__(kind)
        names = _TENSORS[kind]
        made.__dict__.update(fixed, **dict(zip(names, values)))
        return made

    for kind, names in _TENSORS.items():
        pytree.register_pytree_node(
            kind, tensors(*names), unflatten, serialized_type_name=f"huge_ctr.torch.{kind.__name__}"
        )


_LISTS = ("_values", "_weights", "_lengths", "_offsets")
_TENSORS: dict[Any, tuple] = {JaggedTensor: _LISTS, KeyedJaggedTensor: _LISTS, KeyedTensor: ("_values",)}
_register()
