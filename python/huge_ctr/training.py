"""Trains a model from a config and data, in one call."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, Union

from .model import Model
from .state import Callback, State
from .trainer import Trainer


def train(
    config: Any,
    data: Any = None,
    eval_data: Any = None,
    *,
    run_dir: Union[str, os.PathLike, None] = None,
    callbacks: Sequence[Union[Callback, Callable[[State], Any]]] = (),
    progress: Optional[bool] = None,
    **options: Any,
) -> Model:
    """Trains a config, and returns the final model (`Model`); with early stopping the best model.

    config, data, eval_data, **options: as for Trainer. callbacks, progress: as for Trainer.fit().
    run_dir: the folder for metrics, summary and model; None: a temporary folder that is deleted with the model
    (Model.save() keeps a copy). Raises the errors of Trainer.
    """
    own = tempfile.mkdtemp(prefix="huge_ctr-") if run_dir is None else None
    folder = Path(own) / "run" if own is not None else Path(run_dir or "")
    try:
        with Trainer(config, data, eval_data, run_dir=folder, **options) as trainer:
            trainer.fit(callbacks=callbacks, progress=progress)
            trainer.finish()
            history = trainer.history
        picked = {name: options[name] for name in ("device", "threads") if name in options}
        model = Model(folder, **picked)
    except BaseException:
        if own:
            shutil.rmtree(own, ignore_errors=True)
        raise
    model.history = history
    if own:
        model.own(own)
    return model


def model_of(trainer: Trainer, options: dict) -> Model:
    """Does the same as Trainer.model()."""
    folder = tempfile.mkdtemp(prefix="huge_ctr-")
    try:
        trainer.save(Path(folder) / "model")
        made = Model(Path(folder) / "model", device=options.pop("device", trainer.device), **options)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    made.own(folder)
    return made
