#!/usr/bin/env python3
"""Reads models of huge_ctr into NumPy arrays. A single file that needs only NumPy.

    from hctr_model import load
    model = load("runs/first")           # or a snapshot_prefix, PREFIX@ITERATION, or the folder of a checkpoint
    model.dense["fc1/weights"]           # float32 [inputs, outputs]
    model.tables["emb"].vectors          # float32 [rows, embedding_vec_size], with .keys and .slots

`keys_of_slots(config)` returns functions from Csv texts to keys.

As a program it prints the contents of a model: hctr_model.py MODEL [--config FILE.json]
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


class ModelError(Exception):
    """The model does not exist, or its files do not belong together."""


@dataclass
class Table:
    """The rows of an embedding in file order: sorted by (slot, key), or in a checkpoint by row number."""

    name: str
    keys: np.ndarray  # int64 [rows]
    vectors: np.ndarray  # float32 [rows, dim]
    slots: np.ndarray = None  # int64 [rows] if rows belong to (slot, key) pairs, else None
    _index: dict = field(default=None, repr=False)

    @property
    def dim(self):
        return self.vectors.shape[1]

    def __len__(self):
        return len(self.keys)

    def vectors_of(self, keys, slot=None):
        """The vectors of keys, float32 [len(keys), dim]; zeros for unknown keys. `slot`: for rows that belong to (slot,
        key) pairs.
        """
        if (slot is None) != (self.slots is None):
            owner = "keys alone" if self.slots is None else "slot and key"
            raise ValueError(f"table '{self.name}': rows belong to {owner}")
        if self._index is None:
            owners = zip(self.slots.tolist(), self.keys.tolist()) if self.slots is not None else self.keys.tolist()
            self._index = {owner: row for row, owner in enumerate(owners)}
        rows = np.array([self._index.get(int(key) if slot is None else (slot, int(key)), -1) for key in keys], np.int64)
        found = np.zeros((len(rows), self.dim), np.float32)
        found[rows >= 0] = self.vectors[rows[rows >= 0]]
        return found


@dataclass
class Model:
    source: str  # the dense model file, or the folder of the checkpoint
    iteration: int  # finished updates
    dense: dict  # "<top>/<weight>" -> float32 array, in the order of the file
    tables: dict  # "<top>" -> Table, in the order of the config
    state: dict = field(default_factory=dict)  # "<top>/<name>" -> float32 array: running statistics of layers
    metrics: dict = field(default_factory=dict)  # metrics of this model's evaluation, if known
    summary: dict = field(default_factory=dict)  # summary.json of a run folder
    config: dict = None  # None if the model has no saved config


def load(model, config=None):
    """Reads a run folder, a checkpoint, the newest model of a snapshot_prefix, or PREFIX@ITERATION.

    `config`: the config's path or content, for a prefix without a manifest that contains the config.
    """
    path = Path(model)
    if isinstance(config, (str, Path)):
        config = _json(Path(config))
    if (path / "manifest.json").is_file():
        return _load_checkpoint(path)
    if (path / "summary.json").is_file():
        return _load_run(path, config)
    checkpoints = sorted(path.glob("iteration_*[0-9]/manifest.json"), key=lambda at: int(at.parent.name[10:]))
    if checkpoints:
        return _load_checkpoint(checkpoints[-1].parent)
    return _load_prefix(str(model), config)


def _json(path):
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ModelError(f"'{path}': {error}") from error


# ---- Run folders and prefixes ----------------------------------------------------------------------------------------


def _load_run(folder, config):
    summary = _json(folder / "summary.json")
    files = []
    for name in summary.get("model_files", []):
        here = folder / ("final_" + Path(name).name)
        files.append(here if here.exists() else Path(name))
        if not files[-1].exists():
            raise ModelError(f"run folder '{folder}': neither '{here}' nor '{name}' is there")
    if not files and "checkpoint" in summary:
        return _load_checkpoint(Path(summary["checkpoint"]))
    if not files:
        raise ModelError(f'the run in \'{folder}\' has saved no final model ("final_snapshot" is false)')
    if config is None and (folder / "config.json").is_file():
        config = _json(folder / "config.json")
    dense = [file for file in files if re.search(r"_dense_\d+\.model$", file.name) and "_opt_dense_" not in file.name]
    tables = [file for file in files if re.search(r"\d_sparse_\d+\.model$", file.name)]
    saved = [Path(name) for name in summary["model_files"]]
    layouts = [dense[0].parent / (dense[0].name + ".layout.json"), Path(str(saved[0]) + ".layout.json")]
    iteration = summary.get("best_iteration", summary.get("iterations", 0))
    model = _load_files(dense[0], layouts, tables, iteration, config)
    model.metrics, model.summary = summary.get("best_metrics", summary.get("metrics", {})), summary
    return model


def _load_prefix(name, config):
    match = re.fullmatch(r"(.*)(?:@(\d+)|_dense_(\d+)\.model)", name)
    prefix = match[1] if match else name
    wanted = int(match[2] or match[3]) if match else None
    found = _iterations(prefix)
    if not found and Path(prefix).is_dir():
        prefix = prefix + "/"
        found = _iterations(prefix)
    if not found:
        raise ModelError(
            f"there is no model '{name}': neither '{name}/summary.json' (a run folder) nor '{name}/manifest.json' "
            f"(a checkpoint) nor '{prefix}_dense_<n>.model' (a snapshot_prefix)"
        )
    if wanted is None:
        _expect_one_run(prefix, found)
    iteration = max(found) if wanted is None else wanted
    if iteration not in found:
        raise ModelError(f"there is no model of iteration {iteration} at '{prefix}'; there are {sorted(found)}")
    tables = []
    while Path(f"{prefix}{len(tables)}_sparse_{iteration}.model").exists():
        tables.append(Path(f"{prefix}{len(tables)}_sparse_{iteration}.model"))
    manifest = Path(f"{prefix}_model_{iteration}.json")
    if config is None and manifest.is_file():
        config = _json(manifest).get("config")
    dense = Path(f"{prefix}_dense_{iteration}.model")
    return _load_files(dense, [Path(f"{dense}.layout.json")], tables, iteration, config)


def _expect_one_run(prefix, iterations):
    runs = {}
    for iteration in sorted(iterations):
        manifest = Path(f"{prefix}_model_{iteration}.json")
        run = _json(manifest).get("run", "") if manifest.is_file() else ""
        runs.setdefault(run, []).append(iteration)
    if len(runs) > 1:
        raise ModelError(
            f"the models at '{prefix}' are of {len(runs)} runs, with iterations "
            f"{' and '.join(str(of_run) for of_run in runs.values())}: name the run folder, or '{prefix}@ITERATION'"
        )


def _iterations(prefix):
    # Not Path(prefix).parent: the prefix "out/" means files in folder "out" whose names begin with "_dense_".
    folder, _, start = prefix.rpartition("/")
    folder = Path(folder or ("/" if prefix.startswith("/") else "."))
    name = re.compile(re.escape(start) + r"_dense_(\d+)\.model")
    found = (name.fullmatch(path.name) for path in folder.iterdir()) if folder.is_dir() else ()
    return {int(match[1]) for match in found if match}


def _load_files(dense, layouts, tables, iteration, config):
    sections = _embeddings(config)
    if config is not None and len(sections) != len(tables):
        raise ModelError(f"'{dense}' has {len(tables)} tables, and the config {len(sections)}")
    if config is None and tables:
        raise ModelError(f"'{dense}' has tables, and only a config says how wide their vectors are: give config=")
    layout = next((path for path in layouts if path.is_file()), None)
    model = Model(str(dense), iteration, _read_dense(dense, layout), {}, config=config)
    for section, path in zip(sections, tables):
        model.tables[section["name"]] = _read_table(path, section)
    statistics = Path(f"{dense}.ntp.json")
    if statistics.is_file():
        for layer in _json(statistics).get("layers", []):
            for key, values in layer.items():
                if isinstance(values, list):
                    model.state[f"{layer.get('name', layer['type'])}/{key}"] = np.array(values, np.float32)
    return model


def _read_dense(path, layout):
    values = np.fromfile(path, "<f4")
    if layout is None:
        return {"all": values}
    weights, at = {}, 0
    for weight in _json(layout)["weights"]:
        size = int(np.prod(weight["shape"]))
        weights[weight["name"]] = values[at : at + size].reshape(weight["shape"])
        at += size
    if at != len(values):
        raise ModelError(f"'{path}' has {len(values)} weights, and '{layout}' describes {at}")
    return weights


def _embeddings(config):
    """Name, width and identity of each embedding of a config."""
    layers = (config or {}).get("layers", [])
    slots = {}
    for sparse in layers[0].get("sparse", []) if layers else []:
        # Without slot_num, the data decide the number of slots; 2**31 stands for any number.
        slots[sparse["top"]] = int(np.ravel(sparse.get("slot_num", 2**31))[0])
    found = []
    for layer in layers[1:]:
        if "sparse_embedding_hparam" not in layer:
            continue
        hparam, kind = layer["sparse_embedding_hparam"], str(np.ravel(layer["type"])[0])
        identity = hparam.get("identity", "key" if kind.startswith("Distributed") else "slot_and_key")
        top, bottom = str(np.ravel(layer["top"])[0]), str(np.ravel(layer["bottom"])[0])
        dim = int(np.ravel(hparam["embedding_vec_size"])[0])
        found.append({"name": top, "dim": dim, "by_slot": identity == "slot_and_key", "slots": slots.get(bottom, 1)})
    return found


def _read_table(path, section):
    name, dim, by_slot = section["name"], section["dim"], section["by_slot"]
    if path.is_dir():  # the folder format of version 3.1
        keys = np.fromfile(path / "key", "<i8")
        vectors = np.fromfile(path / "emb_vector", "<f4").reshape(len(keys), dim)
        return Table(name, keys, vectors, np.fromfile(path / "slot_id", "<i8") if by_slot else None)
    data = np.fromfile(path, np.uint8)
    layouts = [("<i8", "<i8"), ("<u4", "<i8"), ("<u4", "<u4")] if by_slot else [("<i8", None), ("<u4", None)]
    fitting = []
    for key, slot in layouts:
        row = np.dtype([("key", key)] + ([("slot", slot)] if slot else []) + [("vector", "<f4", (dim,))])
        if len(data) % row.itemsize == 0:
            rows = data.view(row)
            if not slot or (len(rows) == 0 or (rows["slot"].min() >= 0 and rows["slot"].max() < section["slots"])):
                fitting.append(rows)
    # Floats misread as part of a key often make it negative; real keys rarely are.
    plausible = [rows for rows in fitting if np.count_nonzero(rows["key"].astype(np.int64) < 0) * 4 < max(len(rows), 1)]
    if not fitting:
        raise ModelError(f"'{path}' of {len(data)} bytes is not of table '{name}' with embedding_vec_size {dim}")
    rows = (plausible or fitting)[0]
    slots = rows["slot"].astype(np.int64) if by_slot else None
    return Table(name, rows["key"].astype(np.int64), rows["vector"].astype(np.float32).reshape(len(rows), dim), slots)


# ---- Checkpoints -----------------------------------------------------------------------------------------------------


def _load_checkpoint(folder):
    manifest = _json(folder / "manifest.json")
    ranks = [_State(folder, index) for index in manifest["files"]]
    progress, config = manifest["progress"], manifest["about"].get("config")
    dense = {
        name: array
        for name, array in ranks[0].under("weights/").items()
        if not re.search(r"/state\d$", name)  # optimizer states
    }
    model = Model(str(folder), progress["iterations"], dense, {}, config=config, metrics=progress.get("metrics", {}))
    model.state = ranks[0].under("layers/")
    for number, section in enumerate(_embeddings(config)):
        parts = [rank.table(f"tables/{number}/own/", section) for rank in ranks]
        parts.append(ranks[0].table(f"tables/{number}/replicated/", section))
        parts = [part for part in parts if part is not None]
        model.tables[section["name"]] = Table(
            section["name"],
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.vectors for part in parts]),
            np.concatenate([part.slots for part in parts]) if section["by_slot"] else None,
        )
    return model


class _State:
    """The file of one rank."""

    def __init__(self, folder, index):
        self.values, self.arrays = index["values"], {array["name"]: array for array in index["arrays"]}
        self.path = folder / index["file"]
        if self.path.stat().st_size != index["bytes"]:
            size = self.path.stat().st_size
            raise ModelError(f"'{self.path}' has {size} bytes, and the manifest says {index['bytes']}")

    def read(self, name):
        array = self.arrays[name]
        kind = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "i32": "<i4", "i64": "<i8", "u32": "<u4", "u8": "u1"}
        size = int(np.prod(array["shape"]))
        values = np.fromfile(self.path, kind[array["type"]], size, offset=array["offset"])
        if array["type"] == "bf16":  # bf16 is the upper half of an f32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(array["shape"])

    def under(self, scope):
        return {name[len(scope) :]: self.read(name) for name in self.arrays if name.startswith(scope)}

    def table(self, scope, section):
        if scope + "rows" not in self.values:
            return None
        if scope + "keys" not in self.arrays or self.values.get(scope + "pieces", 1) != 1:
            raise ModelError(
                f"'{self.path}': table '{section['name']}' has rows without keys or cut rows; load model files instead"
            )
        # a row that several keys share may precede the rows of single keys
        first = self.values[scope + "first_row"] - 1
        keys = self.read(scope + "keys").reshape(-1)[first:]
        vectors = self.read(scope + "vectors").reshape(-1, section["dim"])[first:].astype(np.float32)
        slots = self.read(scope + "slots").reshape(-1)[first:].astype(np.int64) if section["by_slot"] else None
        return Table(section["name"], keys, vectors, slots)


# ---- Keys of texts ----------------------------------------------------------------------------------------------------

NO_KEY = -(2**63)  # the key of an empty slot in an ONNX model, unless its model.json has another "no_key"
_ALL_KEYS = 2**63 - 1
_MASK = 2**64 - 1


def keys_of_slots(config):
    """For each slot of Csv data, in order: a function that converts the text of a value to its key.

    A missing value, empty or listed in "missing", gets the slot's "default"; without a default, the model's no_key.
    `config`: the config of a run folder, of a checkpoint, or of an export's model.json; or its path.
    """
    if isinstance(config, (str, Path)):
        config = _json(Path(config))
    no_key = config.get("no_key", NO_KEY)
    data = (config.get("config") or config)["layers"][0]
    if data.get("format") != "Csv":
        raise ModelError(f"keys of texts are those of Csv data, and this is {data.get('format', 'Norm')}")
    section = data["csv"]
    functions, base, spaces = [], 0, {}  # spaces: for each key space, the seed and the base of its first slot
    for group in section["slots"]:
        space = group.get("key_space")
        if group.get("keys") == "vocabulary":
            raise ModelError(f"the columns {group['columns']} have the keys of a vocabulary file, which is not read here")
        for _ in np.ravel(group["columns"]):
            seed_and_base = _mix64((section.get("hash_seed", 0) + len(functions)) & _MASK), base
            if space in spaces:
                seed_and_base = spaces[space]
            else:
                base += group.get("buckets") or 0
                if space:
                    spaces[space] = seed_and_base
            functions.append(_key_function(section, group, *seed_and_base, no_key))
    return functions


def _key_function(section, group, seed, base, no_key):
    rule, buckets, default = group.get("keys") or "hash", group.get("buckets") or 0, group.get("default")

    def key(text):
        text = text.strip(" \t") if section.get("trim") else text
        text = ("" if text in (section.get("missing") or ()) else text) or default
        if not text:
            return no_key
        if rule == "number":
            return _signed(int(text.rstrip("0").rstrip(".") if "." in text else text))
        if rule == "hex":
            return _signed(int(text, 16))
        hashed = _text_hash(text.encode(), seed)
        return base + (hashed * buckets >> 64) if buckets else hashed * _ALL_KEYS >> 64

    return key


def _signed(number):
    """Converts a 64-bit number, signed or unsigned, to a signed key."""
    return number - 2**64 if number >= 2**63 else number


def _mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _text_hash(data, seed):
    result = _mix64((seed + len(data)) & _MASK)
    for at in range(0, len(data), 8):
        result = _mix64(result ^ int.from_bytes(data[at : at + 8], "little"))
    return result


def describe(model):
    """A description of the model's contents, as lines."""
    lines = [f"{model.source}: iteration {model.iteration}"]
    lines += [f"  {name}: {value:.6f}" for name, value in model.metrics.items() if value is not None]
    for name, array in list(model.dense.items()) + list(model.state.items()):
        lines.append(f"  {name} {list(array.shape)}: mean {array.mean():.6g}, deviation {array.std():.6g}")
    for table in model.tables.values():
        rows = "row" if len(table) == 1 else "rows"
        lines.append(f"  table {table.name}: {len(table)} {rows} of {table.dim}, deviation {table.vectors.std():.6g}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Prints what a model of huge_ctr holds.")
    parser.add_argument("model", help="a run folder, a checkpoint, a snapshot_prefix, or PREFIX@ITERATION")
    parser.add_argument("--config", help="the config of the model, for a prefix without manifest")
    options = parser.parse_args()
    try:
        print(describe(load(options.model, options.config)))
    except (ModelError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
