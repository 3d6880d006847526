"""Replaces embedding modules of torch.nn and TorchRec in a model by this package's modules, with their rows."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from .collection import EmbeddingBagCollection, EmbeddingCollection
from .modules import Embedding, EmbeddingBag


def _bag(old: Any, words: dict) -> EmbeddingBag:
    return EmbeddingBag(
        old.num_embeddings,
        old.embedding_dim,
        old.max_norm,
        scale_grad_by_freq=old.scale_grad_by_freq,
        mode=old.mode,
        _weight=old.weight.detach(),
        include_last_offset=old.include_last_offset,
        padding_idx=old.padding_idx,
        device=old.weight.device,
        dtype=old.weight.dtype,
        **words,
    )


def _embedding(old: Any, words: dict) -> Embedding:
    return Embedding(
        old.num_embeddings,
        old.embedding_dim,
        old.padding_idx,
        old.max_norm,
        scale_grad_by_freq=old.scale_grad_by_freq,
        _weight=old.weight.detach(),
        device=old.weight.device,
        dtype=old.weight.dtype,
        **words,
    )


def _bags(old: Any, words: dict) -> EmbeddingBagCollection:
    made = EmbeddingBagCollection(old.embedding_bag_configs(), old.is_weighted(), old.device, **words)
    made.load_state_dict(old.state_dict())
    return made


def _sequences(old: Any, words: dict) -> EmbeddingCollection:
    made = EmbeddingCollection(old.embedding_configs(), old.device, old.need_indices(), **words)
    made.load_state_dict(old.state_dict())
    return made


_MAKERS: dict[str, Callable] = {
    "EmbeddingBag": _bag,
    "Embedding": _embedding,
    "EmbeddingBagCollection": _bags,
    "EmbeddingCollection": _sequences,
}


def replace(
    model: torch.nn.Module, optimizer: Any, lr: Any = None, only: Optional[Callable] = None, **words: Any
) -> torch.nn.Module:
    """Replaces every torch.nn.EmbeddingBag and Embedding, and TorchRec collections, by modules of this package with the
    same rows. `only`: a function of a module's name that selects the modules to replace. Create optimizers of the model
    after this call. Returns the model, or its replacement if the model itself is such a module.
    """
    words = {"optimizer": optimizer, "lr": lr, **words}

    def maker(name: str, one: torch.nn.Module) -> Optional[Callable]:
        theirs = type(one).__module__.split(".")[0] in ("torch", "torchrec")
        return _MAKERS.get(type(one).__name__) if theirs and (only is None or only(name)) else None

    if maker("", model):
        return maker("", model)(model, words).train(model.training)
    swapped: list[str] = []
    for name, one in list(model.named_modules()):
        if any(name.startswith(done + ".") for done in swapped) or not maker(name, one):
            continue
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, maker(name, one)(one, words).train(one.training))
        swapped.append(name)
    return model
