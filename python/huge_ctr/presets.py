"""Builds complete models from a table's columns: wide_and_deep, dcn, dcnv2, deepfm, dlrm, din.

    config = huge_ctr.presets.wide_and_deep(frame, label="click")
    model = huge_ctr.train(config, frame, newer)

Each preset accepts the arguments of Columns.of() and Sizes, and returns a layers.Model, whose `columns` describe the
guessed role of each column. Correct wrong guesses with `categorical`, `numeric`, `lists` and `leave_out`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

from . import layers as L
from .columns import Columns
from .errors import UsageError


@dataclass
class Sizes:
    """Layer widths and training length. None: derived from the number of rows, like huge_ctr --init."""

    embedding_dim: int = 16
    hidden: Sequence[int] = (128, 64)
    dropout: float = 0.3
    cross_layers: int = 3
    batch_size: Optional[int] = None
    epochs: Optional[int] = None
    learning_rate: Optional[float] = None
    # evaluations without improvement before training stops; None: never. Requires eval_data
    early_stopping: Optional[int] = 3
    metric: str = "AUC"
    seed: int = 1


class _Network:
    """Code shared by the presets."""

    def __init__(self, columns: Columns, sizes: Sizes, data: L.Data, rare_keys: bool):
        self.columns, self.sizes, self.data, self.rare_keys = columns, sizes, data, rare_keys

    def embedding(self, keys: L.Tensor, size: int, combiner: str = "mean", **fields: Any) -> Any:
        if self.rare_keys:
            fields["min_count"] = 5
        return L.Embedding(keys, size, combiner, **fields)

    def vectors(self) -> L.Tensor:
        size = self.sizes.embedding_dim
        made = self.embedding(self.data.keys, size, name="embedding")
        return L.Reshape(made, leading_dim=self.data.slots * size, name="vectors")

    def vectors_and_weights(self) -> tuple[L.Tensor, L.Tensor]:
        """One table for all slots. Its vectors have an additional element: the key's linear weight."""
        size, slots = self.sizes.embedding_dim, self.data.slots
        made = L.Reshape(self.embedding(self.data.keys, size + 1, name="embedding"), leading_dim=size + 1, name="rows")
        vectors, weights = L.Slice(made, [[0, size], [size, size + 1]])
        return (
            L.Reshape(vectors, leading_dim=slots * size, name="vectors"),
            L.Reshape(weights, leading_dim=slots, name="weights"),
        )

    def hidden(self, x: L.Tensor) -> L.Tensor:
        for number, width in enumerate(self.sizes.hidden, 1):
            x = L.ReLU(L.InnerProduct(x, num_output=width, name=f"fc{number}"), name=f"relu{number}")
            if self.sizes.dropout > 0:
                x = L.Dropout(x, rate=self.sizes.dropout, name=f"dropout{number}")
        return x

    def concat(self, parts: Sequence[L.Tensor], name: str) -> L.Tensor:
        return parts[0] if len(parts) == 1 else L.Concat(*parts, name=name)

    def sum(self, parts: Sequence[L.Tensor]) -> L.Tensor:
        return parts[0] if len(parts) == 1 else L.Add(*parts, name="logits")

    def loss(self, logits: L.Tensor) -> L.Tensor:
        bottoms = [logits, self.data.label] + ([self.data.weight] if self.data.weight else [])
        return L.BinaryCrossEntropyLoss(*bottoms, name="loss")


def _wide_and_deep(net: _Network) -> L.Tensor:
    parts, features = [], []
    if net.data.slots:
        vectors, weights = net.vectors_and_weights()
        features.append(vectors)
        parts.append(L.ReduceSum(weights, axis=1, name="wide"))
    if net.data.dense_dim:
        features.append(net.data.dense)
        parts.append(L.InnerProduct(net.data.dense, num_output=1, name="linear"))
    deep = L.InnerProduct(net.hidden(net.concat(features, "features")), num_output=1, name="deep")
    return net.sum([deep, *parts])


def _deepfm(net: _Network) -> L.Tensor:
    vectors, weights = [], []
    if net.data.slots:
        of_slots = net.vectors_and_weights()
        vectors.append(of_slots[0])
        weights.append(of_slots[1])
    if net.data.dense_dim:
        dim = net.data.dense_dim
        vectors.append(
            L.WeightMultiply(net.data.dense, weight_dims=[dim, net.sizes.embedding_dim], name="dense_vectors")
        )
        weights.append(L.WeightMultiply(net.data.dense, weight_dims=[dim, 1], name="dense_weights"))
    every = net.concat(vectors, "all_vectors")
    second = L.ReduceSum(L.FmOrder2(every, out_dim=net.sizes.embedding_dim, name="fm"), axis=1, name="second_order")
    first = L.ReduceSum(net.concat(weights, "all_weights"), axis=1, name="first_order")
    return net.sum([second, first, L.InnerProduct(net.hidden(every), num_output=1, name="deep")])


def _crossed(net: _Network, **cross: Any) -> L.Tensor:
    features = ([net.vectors()] if net.data.slots else []) + ([net.data.dense] if net.data.dense_dim else [])
    every = net.concat(features, "features")
    crossed = L.MultiCross(every, num_layers=net.sizes.cross_layers, name="cross", **cross)
    return L.InnerProduct(L.Concat(crossed, net.hidden(every), name="both"), num_output=1, name="logits")


def _dlrm(net: _Network) -> L.Tensor:
    if not (net.data.slots and net.data.dense_dim):
        raise UsageError("dlrm needs numbers and categories; try wide_and_deep")
    size = net.sizes.embedding_dim
    x = L.ReLU(L.InnerProduct(net.data.dense, num_output=4 * size, name="bottom_fc1"), name="bottom_relu1")
    bottom = L.ReLU(L.InnerProduct(x, num_output=size, name="bottom_fc2"), name="bottom")
    interaction = L.Interaction(bottom, net.embedding(net.data.keys, size, name="embedding"), name="interaction")
    return L.InnerProduct(net.hidden(interaction), num_output=1, name="logits")


def _din(net: _Network, length: int) -> L.Tensor:
    """Deep Interest Network (G. Zhou et al., KDD 2018): weights the vectors of the history by their relevance to the
    item.
    """
    size = 2 * net.sizes.embedding_dim
    vectors, lengths = net.embedding(net.data.input("items"), size, "none", tops=2, name="items_embedding")
    history, item = L.FusedReshapeConcat(vectors, tops=2, name="sequence")
    repeated = L.Scale(item, axis=1, factor=length, name="items_repeated")
    pairs = L.Concat(
        repeated, history, L.Sub(repeated, history), L.ElementwiseMultiply(repeated, history), name="pairs"
    )
    x = L.ReLU(L.InnerProduct(pairs, num_output=36, name="attention_fc1"), name="attention_relu1")
    scores = L.Reshape(L.InnerProduct(x, num_output=1, name="attention_fc2"), leading_dim=length, time_step=1)
    mask = L.SequenceMask(
        L.Slice(lengths, [[0, 1]])[0], max_sequence_len_from=1, max_sequence_len_to=length, name="mask"
    )
    attention = L.Softmax(scores, mask, name="attention")
    weighted = L.MatrixMultiply(attention, L.Reshape(history, leading_dim=size, time_step=length))
    interest = L.Reshape(weighted, leading_dim=size, name="interest")
    parts = [interest, item, L.ElementwiseMultiply(interest, item, name="cross")]
    parts += [net.vectors()] if net.data.slots else []
    parts += [net.data.dense] if net.data.dense_dim else []
    return L.InnerProduct(net.hidden(L.Concat(*parts, name="features")), num_output=1, name="logits")


def _batch_size(rows: int) -> int:
    return min(max(2 ** round(math.log2(max(rows / 160, 1))), 16), 4096)


def _epochs(rows: int, many_keys: bool) -> int:
    if many_keys:
        return 3 if rows < 1e7 else 1
    return 12 if rows < 2e5 else 6 if rows < 2e6 else 3 if rows < 2e7 else 1


def _schedule(columns: Columns, sizes: Sizes, many_keys: bool) -> tuple[dict, dict]:
    """Makes the solver and the optimizer. The number of passes depends on the number of rows. The learning rate first
    warms up, and then decays to a hundredth.
    """
    batch = sizes.batch_size or _batch_size(columns.rows)
    epochs = sizes.epochs or _epochs(columns.rows, many_keys)
    steps = max(1, math.ceil(columns.rows / batch))
    solver: dict[str, Any] = {
        "display": max(1, steps * epochs // 20),
        "num_epochs": epochs,
        "batchsize": batch,
        "batchsize_eval": max(1024, batch),
        "eval_interval": max(1, steps // (1 if epochs > 3 else 2)),
        "eval_metrics": ["AUC", "AverageLoss"] if sizes.metric == "AUC" else [sizes.metric],
        "input_key_type": "I64",
        "seed": sizes.seed,
    }
    if sizes.early_stopping:
        solver["early_stopping"] = {"metric": sizes.metric, "patience": sizes.early_stopping}
    rate = sizes.learning_rate or 0.001 * math.sqrt(max(1.0, batch / 512))
    adam = {"learning_rate": rate, "warmup_steps": "5%", "decay": "linear", "end_lr": rate / 100}
    return solver, {"type": "Adam", "update_type": "Local", "adam_hparam": adam}


def _data(columns: Columns, history: Optional[str], item: Optional[str], fields: dict) -> tuple[L.Data, int]:
    """Returns the Data layer, and the maximum length of the history."""
    if columns.rows > 1:
        fields.setdefault("shuffle", min(columns.rows, 1 << 18))
    dense = [{"columns": columns.numbers, "transform": "standardize"}] if columns.numbers else []
    dense += [{"columns": columns.skewed, "transform": ["log", "standardize"]}] if columns.skewed else []
    most = max(1000, 4 * columns.most_items)
    categories = [one for one in columns.categories if one not in (item, history)]
    lists = [one for one in columns.lists if one not in (item, history)]
    slots = [{"columns": categories, "default": "(missing)"}] if categories else []
    slots += [{"columns": lists, "separator": "|"}] if lists else []
    most_keys = [1] * len(categories) + [most] * len(lists)
    weight = columns.weight
    if history is None or item is None:
        return L.Data([columns.label], dense, slots, most_keys=most_keys, sample_weight=weight, **fields), 0
    kept = min(max(columns.most_items, 1), 50)
    shared = [
        {"columns": [history], "separator": "|", "key_space": "items"},
        {"columns": [item], "key_space": "items"},
    ]
    inputs = [{"top": "items", "slot_num": 2, "nnz_per_slot": [most, 1], "keep_last": kept}]
    if slots:
        inputs.append({"top": "keys", "slot_num": len(most_keys), "nnz_per_slot": most_keys})
    data = L.Data(
        [columns.label], dense, [*shared, *slots], most_keys=[], sample_weight=weight, sparse=inputs, **fields
    )
    data.slots = len(most_keys)
    return data, kept


_NETWORKS: dict[str, Callable[..., L.Tensor]] = {
    "wide_and_deep": _wide_and_deep,
    "deepfm": _deepfm,
    "dcn": _crossed,
    "dcnv2": lambda net: _crossed(net, full_matrix=True),
    "dlrm": _dlrm,
    "din": _din,
}


def build(
    preset: str,
    columns: Columns,
    sizes: Sizes,
    history: Optional[str] = None,
    item: Optional[str] = None,
    **fields: Any,
) -> L.Model:
    """Builds a preset by name. fields: fields of the Data layer, such as source and eval_source."""
    if preset not in _NETWORKS:
        raise UsageError(f"preset {preset!r} does not exist: expected one of {', '.join(_NETWORKS)}")
    if preset == "din" and not (history and item):
        raise UsageError("din needs history= (a column of lists) and item= (a column of the same ids)")
    many_keys = columns.distinct > 0.5 * columns.rows
    data, kept = _data(columns, history, item, fields)
    net = _Network(columns, sizes, data, many_keys)
    logits = _din(net, kept) if preset == "din" else _NETWORKS[preset](net)
    solver, optimizer = _schedule(columns, sizes, many_keys)
    model = L.Model(data, net.loss(logits), solver=solver, optimizer=optimizer)
    model.columns = columns  # type: ignore[attr-defined]
    return model


_COLUMNS = ("categorical", "numeric", "lists", "leave_out", "weight")


def _preset(name: str, text: str) -> Callable[..., L.Model]:
    def make(
        table: Any, label: str, *, history: Optional[str] = None, item: Optional[str] = None, **options: Any
    ) -> L.Model:
        stated = {key: options.pop(key) for key in _COLUMNS if key in options}
        sizes = {key: options.pop(key) for key in list(options) if key in Sizes.__dataclass_fields__}
        columns = Columns.of(table, label, **stated)
        return build(name, columns, Sizes(**sizes), history, item, **options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{text}\n\nArguments: those of Columns.of() and Sizes; others are fields of the Data layer."
    return make


wide_and_deep = _preset("wide_and_deep", "H.-T. Cheng et al., Wide & Deep Learning for Recommender Systems, 2016.")
dcn = _preset("dcn", "R. Wang et al., Deep & Cross Network for Ad Click Predictions, 2017.")
dcnv2 = _preset("dcnv2", "R. Wang et al., DCN V2, 2021: crosses with whole matrices.")
deepfm = _preset("deepfm", "H. Guo et al., DeepFM, 2017.")
dlrm = _preset("dlrm", "M. Naumov et al., Deep Learning Recommendation Model, 2019. Needs numbers and categories.")
din = _preset(
    "din", "G. Zhou et al., Deep Interest Network, 2018: history= a column of lists of ids, item= one of ids."
)
