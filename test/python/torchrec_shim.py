#!/usr/bin/env python3
"""Runs TorchRec's module tests on the modules of huge_ctr.torch: torchrec_shim.py TEST_FILE...

In test_fused_embedding_modules.py the fused modules are ours, and are compared with TorchRec's plain modules. In other
files the plain modules and the jagged lists are ours. Prints a line for each test, and the counts.
"""

import importlib.util
import sys
import unittest
import warnings
from pathlib import Path

import huge_ctr.torch as hct
import torch
import torchrec.modules.embedding_configs as configs
import torchrec.modules.embedding_modules as modules
import torchrec.modules.fused_embedding_modules as fused
import torchrec.sparse.jagged_tensor as lists

# Tests that we exclude, with the reason.
EXCEPTIONS = {
    "EmbeddingBagCollectionTest.test_fx": "scripts the traced module; torch.export is the way",
    "EmbeddingBagCollectionTest.test_scripting": "TorchScript, which knows no operators of Python",
    "EmbeddingCollectionTest.test_fx": "scripts the traced module; torch.export is the way",
    "EmbeddingCollectionTest.test_scripting": "TorchScript, which knows no operators of Python",
    "FusedEmbeddingBagCollectionTest.test_composability": "a module has one parameter, not one for each table",
    "FusedEmbeddingBagCollectionTest.test_unweighted_batchsize_1_shared": "two tables of one name, which "
    "EmbeddingBagCollection refuses in both",
}


def _fused(base):
    class Fused(base):
        def __init__(self, tables, optimizer_type, optimizer_kwargs, is_weighted=None, device=None, location=None):
            weighted = {} if is_weighted is None else {"is_weighted": is_weighted}
            super().__init__(tables=tables, device=device, optimizer=optimizer_type, **weighted, **optimizer_kwargs)

        def fused_optimizer(self):
            return hct.optimizer(self)

    return Fused


def _fuse(model, optimizer_type, optimizer_kwargs, device=None, location=None):
    replaced = hct.replace(model, optimizer_type, **optimizer_kwargs)
    for one in replaced.modules():
        kinds = {hct.EmbeddingBagCollection: bags, hct.EmbeddingCollection: sequences}
        one.__class__ = kinds.get(type(one), type(one))
    return replaced


bags, sequences = _fused(hct.EmbeddingBagCollection), _fused(hct.EmbeddingCollection)


def load(path):
    """Loads the test module, and replaces its TorchRec classes with ours."""
    places = [
        (fused, "FusedEmbeddingBagCollection", bags),
        (fused, "FusedEmbeddingCollection", sequences),
        (fused, "fuse_embedding_optimizer", _fuse),
    ]
    if "fused" not in path.name:
        names = [(modules, name) for name in ("EmbeddingBagCollection", "EmbeddingCollection")]
        names += [(configs, name) for name in ("EmbeddingBagConfig", "EmbeddingConfig")]
        names += [(lists, "KeyedJaggedTensor")]
        places = [(module, name, getattr(hct, name)) for module, name in names]
    before = [(module, name, getattr(module, name)) for module, name, _ in places]
    for module, name, ours in places:
        setattr(module, name, ours)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    for module, name, theirs in before:
        setattr(module, name, theirs)
    return made


class Result(unittest.TextTestResult):
    def outcome_of(self, test):
        for what, found in (("failed", self.failures), ("failed", self.errors), ("skipped", self.skipped)):
            for one, why in found:
                if one is test:
                    return what, why.strip().splitlines()[-1]
        return "passed", ""


def run(paths):
    """Returns counts by result, and failures that are not in EXCEPTIONS."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts, unexpected = {"passed": 0, "excepted": 0, "skipped": 0, "failed": 0}, []
    for path in paths:
        for suite in unittest.defaultTestLoader.loadTestsFromModule(load(Path(path))):
            for test in suite:
                result = Result(sys.stderr, False, 0)
                test.run(result)
                what, why = result.outcome_of(test)
                name = ".".join(test.id().split(".")[-2:])
                if what == "failed" and name in EXCEPTIONS:
                    what, why = "excepted", EXCEPTIONS[name]
                if what == "failed":
                    unexpected.append(name)
                counts[what] += 1
                print(f"{what:9} {name}{': ' + why if why else ''}")
    print(counts)
    return counts, unexpected


if __name__ == "__main__":
    sys.exit(1 if run(sys.argv[1:])[1] else 0)
