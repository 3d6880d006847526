"""Optimizers by the names and arguments of torch.optim."""

from __future__ import annotations

from typing import Any, Optional

from .. import _embedding_structs as e
from .._embedding import optimizer_of
from ..errors import UsageError

# Maps a name to (rule, formula, default learning rate, torch's arguments with their names in this library).
_EPS, _BETAS = {"eps": "epsilon"}, {"betas": "", "eps": "epsilon"}
_RULES: dict[str, tuple] = {
    "none": ("none", "config", 0.0, {}),
    "sgd": ("sgd", "torch", 1e-3, {"momentum": "momentum", "nesterov": ""}),
    "adagrad": ("adagrad", "torch", 1e-2, {**_EPS, "initial_accumulator_value": "initial"}),
    "rowwiseadagrad": ("adagrad", "torch", 1e-2, {**_EPS, "initial_accumulator_value": "initial"}),
    "rmsprop": ("rmsprop", "torch", 1e-2, {**_EPS, "alpha": "smoothing"}),
    "ftrl": ("ftrl", "config", 1e-2, {name: name for name in ("initial", "beta", "lambda1", "lambda2")}),
    "adam": ("adam", "torch", 1e-3, _BETAS),
    "sparseadam": ("adam", "config", 1e-3, _BETAS),
    "adamw": ("adamw", "torch", 1e-3, {**_BETAS, "weight_decay": "weight_decay"}),
    "adamax": ("adamax", "torch", 2e-3, _BETAS),
    "adadelta": ("adadelta", "torch", 1.0, {**_EPS, "rho": "smoothing"}),
}
_OF_ALL = {"rows": "rows", "max_gradient": "most_gradient"}
_WITHOUT_EFFECT = {"foreach", "fused", "capturable", "differentiable", "lr", "name", "params", "initial_lr"}


def plain_name(kind: Any) -> str:
    """Converts 'RowWiseAdagrad', torch.optim.Adam or 'row_wise_adagrad' to the name of a rule."""
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", type(kind).__name__)
    name = text.lower().replace("_", "").replace("exact", "")
    if name not in _RULES:
        raise UsageError(f"there is no optimizer '{text}' for embedding rows; optimizers are {', '.join(_RULES)}")
    return name


def default_rate(kind: Any) -> float:
    return _RULES[plain_name(kind)][2]


def checked_words(kind: Any, words: dict) -> dict:
    """Returns the arguments that affect row updates. Raises UsageError for unsupported arguments."""
    name = plain_name(kind)
    known, kept = {**_RULES[name][3], **_OF_ALL}, {}
    for word, value in words.items():
        if word in known:
            kept[word] = tuple(value) if isinstance(value, list) else value
        elif word not in _WITHOUT_EFFECT and value:  # False, 0 and None change nothing, so they are accepted
            raise UsageError(
                f"optimizer '{name}' for embedding rows has no argument '{word}'; arguments are {', '.join(known)}"
            )
    return kept


def rule_of(kind: Any, words: dict) -> e.Optimizer:
    """The C optimizer struct of a table."""
    name, values = plain_name(kind), dict(checked_words(kind, words))
    rule, formula, _, known = _RULES[name]
    if name == "sgd" and values.pop("nesterov", False):
        rule = "nesterov"
    elif name == "sgd" and values.get("momentum", 0):
        rule = "momentum_sgd"
    if rule == "sgd":
        values.pop("momentum", None)
    betas: Optional[tuple] = values.pop("betas", None)
    ours = {{**known, **_OF_ALL}[word]: value for word, value in values.items()}
    if betas is not None:
        ours["beta1"], ours["beta2"] = betas
    if name == "sparseadam":
        ours.setdefault("epsilon", 1e-8)
    if name == "rowwiseadagrad":
        ours.update(row_wise=1, epsilon=ours.get("epsilon", 1e-8))
    return optimizer_of(rule, formula, **ours)
