"""Reads a config in any of the user's forms: a dict, a file, JSON text, or an object with to_json()."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Mapping, Optional

from .errors import ConfigError, FileError


def config_dict(config: Any) -> tuple[dict, str]:
    """Returns a copy of the config as a dict, and a name of the config for messages. Raises ConfigError, FileError."""
    if hasattr(config, "to_json") and not isinstance(config, (str, os.PathLike)):
        config = config.to_json()
    if isinstance(config, Mapping):
        return json.loads(_dumped(config)), "config"
    text = os.fspath(config) if isinstance(config, (str, os.PathLike)) else None
    if text is None:
        raise ConfigError(f"a config has type {type(config).__name__}, expected a dict, a path or JSON text")
    if text.lstrip().startswith("{"):
        return _parsed(text, "config"), "config"
    try:
        return _parsed(Path(text).read_text(), text), text
    except OSError as error:
        raise FileError(f"cannot read the config '{text}': {error.strerror}") from error


def _dumped(config: Mapping) -> str:
    try:
        return json.dumps(config, default=_plain)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the config is not JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Converts NumPy numbers and arrays, and paths, to JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} of type {type(value).__name__}")


def _parsed(text: str, name: str) -> dict:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}: line {error.lineno}, column {error.colno}: {error.msg}") from error


def data_layer(config: Mapping) -> dict:
    """Returns the Data layer; an empty dict if there is none."""
    layers = config.get("layers") or [{}]
    return layers[0] if isinstance(layers, list) and isinstance(layers[0], dict) else {}


def columns_of(config: Mapping) -> Optional[list[str]]:
    """Returns the names of the columns that the Data layer reads; None: unknown."""
    data = data_layer(config)
    section = data.get("csv") or data.get("parquet")
    if not isinstance(section, dict):
        return None
    names: list[str] = []
    for label in section.get("labels", []):
        names.append(label["column"] if isinstance(label, dict) else label)
    for group in [*section.get("dense", []), *section.get("slots", [])]:
        names += group["columns"] if isinstance(group["columns"], list) else [group["columns"]]
    weight = data.get("sample_weight")
    if isinstance(weight, dict) and weight.get("column"):
        names.append(weight["column"])
    return names if section.get("labels") and (section.get("dense") or section.get("slots")) else None


def set_changes(config: dict, changes: Mapping[str, Any]) -> list[str]:
    """Converts changes of the config to arguments of --set, such as "solver.max_iter=100"."""
    return [f"{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in changes.items()]
