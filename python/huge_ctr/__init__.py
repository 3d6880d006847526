"""Trains click-through-rate models and scores with them.

    import huge_ctr
    model = huge_ctr.train("config.json", data=frame, eval_data=newer)   # or a dict; or files named in the config
    scores = model.predict(rows)                                          # float32, a row each
    model.tables["item"].vectors_of(["a", "b"])                           # embeddings by the values of a column

`huge_ctr.sklearn` has CTRClassifier and CTRRegressor. `huge_ctr.presets` builds complete models from a table's columns.
`huge_ctr.layers` builds models from layer objects. `huge_ctr.store` serves embedding tables. `huge_ctr.torch` has
embedding tables for PyTorch models. The log goes to logging.getLogger("huge_ctr").
"""

from __future__ import annotations

from typing import Any

from .errors import (
    CommunicationError,
    ConfigError,
    DataError,
    DeviceError,
    FileError,
    ForkError,
    HugeCtrError,
    InterruptedWork,
    LibraryMissing,
    UsageError,
)
from .frames import Frame
from .model import Model, load
from .state import Callback, History, State
from .trainer import Trainer
from .training import train

__all__ = [
    "Callback",
    "CommunicationError",
    "ConfigError",
    "DataError",
    "DeviceError",
    "FileError",
    "ForkError",
    "Frame",
    "History",
    "HugeCtrError",
    "InterruptedWork",
    "LibraryMissing",
    "Model",
    "State",
    "Trainer",
    "UsageError",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from ._library import library

        return library().hctr_version().decode()
    if name in ("layers", "presets", "sklearn", "store", "stream", "torch"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'huge_ctr' has no attribute '{name}'")
