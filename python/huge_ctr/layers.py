"""Builds models from objects: this module has a function for each layer type of docs/layers.md.

from huge_ctr import layers as L
data = L.Data(labels=["click"], dense=["price"], slots=["user", "item"], source="train.csv", eval_source="new.csv")
vectors = L.Embedding(data.keys, size=16)
x = L.Concat(L.Reshape(vectors, leading_dim=32), data.dense)
x = L.Dropout(L.ReLU(L.InnerProduct(x, num_output=64)), rate=0.2)
loss = L.BinaryCrossEntropyLoss(L.InnerProduct(x, num_output=1), data.label)
model = L.Model(data, loss, learning_rate=0.001, solver={"batchsize": 512, "num_epochs": 2})
huge_ctr.train(model)            # or model.to_json() wherever a config is accepted
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from .errors import ConfigError

# The layer types whose fields are in a nested object of the config, with the object's name. _OUTSIDE: the fields that
# stay outside of that object.
_OBJECTS = {
    "BatchNorm": "bn_param",
    "ELU": "elu_param",
    "FusedInnerProduct": "fc_param",
    "GRU": "gru_param",
    "InnerProduct": "fc_param",
    "LayerNorm": "ln_param",
    "LeakyReLU": "leaky_relu_param",
    "MLP": "mlp_param",
    "MultiCross": "mc_param",
    "PReLU": "prelu_param",
    "PReLU_Dice": "prelu_dice_param",
    "Scale": "scale_param",
}
_OUTSIDE = {"name", "position", "regularizer", "lambda"}
_EMBEDDING = "DistributedSlotSparseEmbeddingHash"


class Tensor:
    """A top of a layer. Other layers use it as a bottom."""

    def __init__(self, name: str, layer: Optional["Layer"] = None):
        self.name, self.layer = name, layer

    def __add__(self, other: "Tensor") -> "Tensor":
        return make("Add", self, other)

    def __repr__(self) -> str:
        return f"<top '{self.name}'>"


class Layer:
    """One layer: type, bottoms, number of tops, and its config fields."""

    def __init__(self, type: str, bottoms: Sequence[Tensor], tops: int, name: Optional[str], fields: Mapping[str, Any]):
        self.type, self.bottoms, self.name, self.fields = type, list(bottoms), name, dict(fields)
        self.tops = [Tensor("", self) for _ in range(tops)]

    def to_json(self) -> dict:
        made: dict[str, Any] = {"type": self.type}
        names = [bottom.name for bottom in self.bottoms]
        made["bottom"] = names[0] if len(names) == 1 else names
        tops = [top.name for top in self.tops]
        made["top"] = tops[0] if len(tops) == 1 else tops
        made.update(self.fields)
        return made


def make(type: str, *bottoms: Tensor, name: Optional[str] = None, tops: int = 1, **fields: Any) -> Any:
    """Makes a layer of any type. Returns the layer's top or, if it has several, a list of its tops."""
    for bottom in bottoms:
        if not isinstance(bottom, Tensor):
            raise ConfigError(f"{type}: {bottom!r} is not the top of a layer")
    inner = _OBJECTS.get(type)
    if inner and inner not in fields:
        outside = {key: value for key, value in fields.items() if key in _OUTSIDE}
        own = {key: value for key, value in fields.items() if key not in _OUTSIDE}
        fields = {**outside, **({inner: own} if own else {})}
    layer = Layer(type, bottoms, tops, name, fields)
    return layer.tops[0] if tops == 1 else layer.tops


def Slice(x: Tensor, ranges: Sequence[Sequence[int]], name: Optional[str] = None) -> list[Tensor]:
    """Slices columns [begin, end) for each range; one top per range."""
    made = make("Slice", x, name=name, tops=len(ranges), ranges=[list(one) for one in ranges])
    return made if isinstance(made, list) else [made]


def Embedding(
    keys: Tensor,
    size: int,
    combiner: str = "mean",
    name: Optional[str] = None,
    tops: int = 1,
    type: str = _EMBEDDING,
    **fields: Any,
) -> Any:
    """Looks up the vectors of all slots of a sparse input, [slots, size].

    fields: fields of `sparse_embedding_hparam`.
    """
    outside = {key: fields.pop(key) for key in ("optimizer",) if key in fields}
    hparam = {"embedding_vec_size": size, "combiner": combiner, **fields}
    return make(type, keys, name=name, tops=tops, sparse_embedding_hparam=hparam, **outside)


def __getattr__(type: str) -> Callable[..., Any]:
    if not type[0].isupper() or type.startswith("__"):
        raise AttributeError(type)

    def layer(*bottoms: Tensor, **fields: Any) -> Any:
        return make(type, *bottoms, **fields)

    layer.__name__ = type
    return layer


def _groups(given: Iterable[Union[str, Mapping]]) -> list[dict]:
    """Makes groups of columns. Columns that follow each other and are given only by name form one group."""
    groups: list[dict] = []
    for one in given:
        if isinstance(one, Mapping):
            groups.append(dict(one))
        elif groups and set(groups[-1]) == {"columns"}:
            groups[-1]["columns"].append(one)
        else:
            groups.append({"columns": [one]})
    return groups


def _width(groups: Sequence[Mapping]) -> int:
    return sum(1 if isinstance(group["columns"], str) else len(group["columns"]) for group in groups)


class Data:
    """A Data layer for a table with named columns. Formats: "Csv", also for tables in memory, or "Parquet".

    labels: names, or objects such as {"column": "bought", "positive": "yes"}.
    dense: names, or groups such as {"columns": ["price"], "transform": ["log", "standardize"]}.
    slots: names, or groups such as {"columns": ["tags"], "separator": "|"}.
    most_keys: the maximum number of keys of each slot; default: 1, or 1000 with a separator.
    fields: further fields of the layer (shuffle, bad_records, ...).
    The tops are `label`, `dense` and `keys`.
    """

    def __init__(
        self,
        labels: Sequence[Union[str, Mapping]],
        dense: Sequence[Union[str, Mapping]] = (),
        slots: Sequence[Union[str, Mapping]] = (),
        *,
        source: Optional[str] = None,
        eval_source: Optional[str] = None,
        format: str = "Csv",
        section: Optional[Mapping[str, Any]] = None,
        sample_weight: Optional[str] = None,
        most_keys: Optional[Sequence[int]] = None,
        sparse: Optional[Sequence[Mapping]] = None,
        **fields: Any,
    ):
        dense_groups, slot_groups = _groups(dense), _groups(slots)
        count = _width(slot_groups)
        listed = [dict(section or {}), {"labels": list(labels)}]
        listed.append({"dense": dense_groups, "slots": slot_groups})
        if most_keys is None:
            most_keys = [
                1000 if group.get("separator") or group.get("brackets") else 1
                for group in slot_groups
                for _ in range(_width([group]))
            ]
        nnz: Any = 1 if all(one == 1 for one in most_keys) else list(most_keys)
        self.json: dict[str, Any] = {"type": "Data", "format": format}
        self.json.update({"source": source, "eval_source": eval_source, **fields})
        self.json[format.lower()] = {key: value for part in listed for key, value in part.items()}
        self.json["label"] = {"top": "label", "label_dim": len(labels)}
        if sample_weight:
            self.json["sample_weight"] = {"top": "weight", "column": sample_weight}
        self.json["dense"] = {"top": "dense", "dense_dim": _width(dense_groups)}
        given = [dict(one) for one in sparse] if sparse is not None else None
        self.json["sparse"] = given or ([{"top": "keys", "slot_num": count, "nnz_per_slot": nnz}] if count else [])
        self.json = {key: value for key, value in self.json.items() if value is not None}
        self.label, self.dense, self.keys = Tensor("label"), Tensor("dense"), Tensor("keys")
        self.weight = Tensor("weight") if sample_weight else None
        self.slots, self.dense_dim = count, _width(dense_groups)

    def input(self, top: str) -> Tensor:
        """Returns the tensor of a sparse input. `top`: the name of the input in `sparse`."""
        return Tensor(top)


class Model:
    """A complete config: the Data layer, the losses, and all layers from which the losses are computed.

    losses: tops of loss layers. optimizer: the config's optimizer section; default: Adam with `learning_rate`. solver:
    fields of the config's solver. Raises ConfigError for duplicate layer names.
    """

    def __init__(
        self,
        data: Data,
        *losses: Tensor,
        solver: Optional[Mapping[str, Any]] = None,
        optimizer: Optional[Mapping[str, Any]] = None,
        learning_rate: float = 0.001,
    ):
        self.data, self.solver = data, dict(solver or {})
        adam = {"type": "Adam", "update_type": "Local", "adam_hparam": {"learning_rate": learning_rate}}
        self.optimizer = dict(optimizer or adam)
        self.layers: list[Layer] = []
        for loss in losses:
            self._add(loss)
        self._name_tops()

    def _add(self, tensor: Tensor) -> None:
        """Appends to self.layers the layers that `tensor` depends on, in topological order."""
        stack = [(tensor.layer, False)]
        while stack:
            layer, ready = stack.pop()
            if layer is None or layer in self.layers:
                continue
            if ready:
                self.layers.append(layer)
                continue
            stack.append((layer, True))
            stack += [(bottom.layer, False) for bottom in reversed(layer.bottoms)]

    def _name_tops(self) -> None:
        used = {"label", "dense", "weight", *(one["top"] for one in self.data.json["sparse"])}
        for layer in self.layers:
            if layer.name in used:
                raise ConfigError(f"two layers are named '{layer.name}'")
            if layer.name:
                used.add(layer.name)
        counts: dict[str, int] = {}
        for layer in self.layers:
            stem = "embedding" if "sparse_embedding_hparam" in layer.fields else layer.type.lower()
            stem = "loss" if layer.type.endswith("Loss") else stem
            name = layer.name
            while name is None or (layer.name is None and name in used):
                counts[stem] = counts.get(stem, 0) + 1
                name = stem if counts[stem] == 1 else f"{stem}{counts[stem]}"
            used.add(name)
            for i, top in enumerate(layer.tops):
                top.name = name if len(layer.tops) == 1 else f"{name}_{i}"

    def without_evaluation(self) -> "Model":
        """If there is no evaluation data, returns a copy of this model without early stopping and evaluations;
        otherwise self.
        """
        if self.data.json.get("eval_source"):
            return self
        made = object.__new__(Model)
        made.__dict__.update(self.__dict__)
        made.solver = {
            key: value for key, value in self.solver.items() if key not in ("early_stopping", "eval_interval")
        }
        return made

    def to_json(self) -> dict:
        """The config as a dict."""
        solver = {"batchsize": 512, "seed": 1, **self.solver}
        if not {"max_iter", "num_epochs"} & set(solver):
            solver["num_epochs"] = 1
        layers = [self.data.json, *(layer.to_json() for layer in self.layers)]
        return json.loads(json.dumps({"solver": solver, "optimizer": self.optimizer, "layers": layers}))
