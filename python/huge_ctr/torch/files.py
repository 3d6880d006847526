"""Reads and writes rows in other programs' formats: safetensors, which `huge_ctr store` serves, DynamicEmb's files, and
modules of torch.nn.
"""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch

from .. import _embedding_rows as rows_of_tables
from ..errors import DataError, UsageError
from .tables import Tables

_TYPES = {"I64": np.int64, "F32": np.float32}


def save_safetensors(module: Tables, table: str, path: Any) -> None:
    """Writes arrays "key" i64 [rows] and "vector" f32 [rows, dim], by ascending keys, with one block of rows in memory
    at a time.
    """
    option, of = module._table(table), module._engine.settle()
    rows = of.rows(table)
    at = {"key": ("I64", [rows], rows * 8), "vector": ("F32", [rows, option.dim], rows * option.dim * 4)}
    header, end = {}, 0
    for name, (kind, shape, size) in at.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = f"{os.fspath(path)}.part"
    with open(part, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        start, done = file.tell(), 0

        def block(one: rows_of_tables.Rows) -> None:
            nonlocal done
            file.seek(start + done * 8)
            file.write(one.keys.tobytes())
            file.seek(start + rows * 8 + done * option.dim * 4)
            file.write(one.vectors.tobytes())
            done += len(one.keys)

        rows_of_tables.export_blocks(of, table, block)
    os.replace(part, path)


def read_safetensors(path: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Reads (keys, vectors) from a safetensors file."""
    data = Path(path).read_bytes()
    if len(data) < 8 or struct.unpack_from("<Q", data)[0] > len(data) - 8:
        raise DataError(f"'{path}' is not a safetensors file: its header is truncated")
    size = struct.unpack_from("<Q", data)[0]
    header, found = json.loads(data[8 : 8 + size]), []
    for name in ("key", "vector"):
        about = header.get(name, {})
        if about.get("dtype") not in _TYPES:
            raise DataError(f"'{path}' has no array '{name}' of type I64 or F32")
        first, last = about["data_offsets"]
        array = np.frombuffer(data[8 + size + first : 8 + size + last], _TYPES[about["dtype"]])
        found.append(torch.from_numpy(array.reshape(about["shape"]).copy()))
    return found[0], found[1]


def save_for_store(module: Tables, folder: Any, name: str = "model", version: str = "1") -> Path:
    """Writes a file for each table, and store.json: `huge_ctr store load FOLDER/store.json` serves the rows."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for option in module._tables:
        file = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', option.name)}.safetensors"
        save_safetensors(module, option.name, file)
        tables.append({"name": option.name, "dim": option.dim, "file": str(file.resolve())})
    config = {
        "folder": str((folder / "rows").resolve()),
        "models": [{"name": name, "version": version, "tables": tables}],
    }
    path = folder / "store.json"
    path.write_text(json.dumps(config, indent=1) + "\n")
    return path


def load_dynamicemb(module: Tables, table: str, folder: Any) -> int:
    """Reads the rows in files of DynamicEmbDump, written by any number of ranks. Returns the number of rows."""
    option, count = module._table(table), 0
    files = sorted(Path(folder).glob(f"{table}_emb_keys.rank_*.world_size_*"))
    if not files:
        raise DataError(f"'{folder}' has no '{table}_emb_keys.rank_0.world_size_...'")
    for path in files:
        keys = np.fromfile(path, np.int64)
        values = np.fromfile(path.with_name(path.name.replace("_emb_keys.", "_emb_values.")), np.float32)
        if values.size != keys.size * option.dim:
            raise DataError(
                f"'{path}' has {keys.size} keys, but {values.size} values, expected {option.dim} for each key"
            )
        module._engine.set()
        module.set_rows(table, keys, values.reshape(-1, option.dim))
        count += keys.size
    return count


def save_dynamicemb(module: Tables, table: str, folder: Any) -> None:
    """Writes keys, values and scores (all 0) to files like those that DynamicEmbDump writes on a single rank."""
    keys, vectors = module.export(table)
    os.makedirs(folder, exist_ok=True)
    for what, array in (
        ("keys", keys.numpy()),
        ("values", vectors.numpy()),
        ("scores", np.zeros(len(keys), np.uint64)),
    ):
        array.tofile(os.path.join(folder, f"{table}_emb_{what}.rank_0.world_size_1"))


def to_torch(module: Tables, table: Optional[str] = None) -> tuple[torch.nn.Module, torch.Tensor]:
    """Returns (torch.nn.EmbeddingBag or Embedding on the module's device, keys): the module's row i has keys[i]. For a
    table with num_embeddings the keys are the row numbers.
    """
    table = module.table_names()[0] if table is None else table
    keys, vectors = module.export(table)
    if len(keys) == 0:
        raise UsageError(f"table '{table}' has no rows")
    poolings = {feature.pooling for feature in module._features if feature.table == table}
    if len(poolings) > 1 or poolings - {"none", "sum", "mean", "max"}:
        raise UsageError(f"table '{table}' is pooled by {', '.join(sorted(poolings))}, which torch.nn does not support")
    padding, vectors = getattr(module, "padding_idx", None), vectors.to(module.anchor.device)
    if poolings == {"none"}:
        return torch.nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=padding), keys
    mode = poolings.pop()
    return torch.nn.EmbeddingBag.from_pretrained(vectors, freeze=False, mode=mode, padding_idx=padding), keys
