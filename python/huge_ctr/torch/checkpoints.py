"""Checkpoints that can be loaded on any number of ranks: dense weights by torch.distributed.checkpoint, tables in
separate files.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator, Sequence

import torch

from ..errors import DataError
from .optimizer import Optimizer
from .tables import tables_of


@contextlib.contextmanager
def _without_tables(model: torch.nn.Module) -> Iterator[None]:
    """Excludes embedding rows from state_dict() inside the context."""
    modules = [one for _, one in tables_of(model)]
    for one in modules:
        one._state_elsewhere = True
    try:
        yield
    finally:
        for one in modules:
            one._state_elsewhere = False


def _folder_of(folder: Any, name: str) -> str:
    while name.startswith("module."):  # added by DistributedDataParallel
        name = name[len("module.") :]
    return os.path.join(os.fspath(folder), "tables", name.replace("module.", "") or "model")


def _parts(optimizers: Sequence[torch.optim.Optimizer]) -> tuple[list, list]:
    ours = [one for one in optimizers if isinstance(one, Optimizer)]
    return ours, [one for one in optimizers if not isinstance(one, Optimizer)]


def _groups(ours: Sequence[Optimizer]) -> dict:
    return {
        str(i): [{k: v for k, v in group.items() if k != "params"} for group in one.param_groups]
        for i, one in enumerate(ours)
    }


def _dense_state(model: torch.nn.Module, dense: list) -> dict:
    from torch.distributed.checkpoint import state_dict as states

    found: dict = {"model": states.get_model_state_dict(model)}
    if dense:
        found["optimizers"] = states.get_optimizer_state_dict(model, dense)
    return found


def save_checkpoint(folder: Any, model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer] = ()) -> None:
    """Saves weights, rows, and the states of dense and embedding optimizers. Collective: every rank must be able to
    access the folder.
    """
    import torch.distributed.checkpoint as dcp

    ours, dense = _parts(optimizers)
    with _without_tables(model):
        dcp.save({**_dense_state(model, dense), "tables": _groups(ours)}, checkpoint_id=os.fspath(folder))
    os.makedirs(os.path.join(os.fspath(folder), "tables"), exist_ok=True)
    for name, one in tables_of(model):
        one.save(_folder_of(folder, name))


def load_checkpoint(folder: Any, model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer] = ()) -> None:
    """Loads a checkpoint into a model of the same structure, on any number of ranks. Training continues as the saved
    model's would.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import state_dict as states

    ours, dense = _parts(optimizers)
    with _without_tables(model):
        found = {**_dense_state(model, dense), "tables": _groups(ours)}
        dcp.load(found, checkpoint_id=os.fspath(folder))
        states.set_model_state_dict(model, found["model"])
        if dense:
            states.set_optimizer_state_dict(model, dense, found["optimizers"])
    for i, one in enumerate(ours):
        for group, saved in zip(one.param_groups, found["tables"][str(i)]):
            group.update(saved)
    for name, one in tables_of(model):
        place = _folder_of(folder, name)
        if not os.path.isdir(place):
            raise DataError(f"'{folder}' has no tables of '{name}'")
        one.load(place)
