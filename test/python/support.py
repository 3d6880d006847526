"""Small tables and configs shared by the tests."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # otherwise background jobs of a shell ignore SIGINT
BIN = Path(os.environ.get("HCTR_BIN_DIR", "build/cpu/bin"))


def need(module):
    """Skips a test class or module with a message if a package is missing."""
    try:
        return __import__(module)
    except ImportError:
        raise unittest.SkipTest(f"no {module} for this Python: pip install {module}") from None


def torch_device():
    """Returns the device of the PyTorch tests (HCTR_TORCH_DEVICE or the CPU), and makes it PyTorch's default device."""
    torch, name = need("torch"), os.environ.get("HCTR_TORCH_DEVICE", "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise unittest.SkipTest("HCTR_TORCH_DEVICE is cuda, and PyTorch finds no GPU")
    if name != "cpu":
        torch.set_default_device(name)
    return name


def shop_rows(count, seed):
    """Rows of a shop: texts, numbers with gaps, ids, lists with '|', and labels "yes" and "no"."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        user, age = draw.randrange(40), draw.choice([None, *range(18, 60)])
        city = draw.choice(["Oslo", "Malmö", "Rome", None])
        price = round(draw.lognormvariate(3, 1), 2)
        tags = draw.sample(["sale", "new", "gift"], draw.randint(0, 3))
        liked = (user % 5) - 2 + 2 * ("sale" in tags) + (city == "Rome") - 0.3 * (price > 30)
        bought = "yes" if draw.random() < 1 / (1 + 2.7**-liked) else "no"
        rows.append({"user": user, "age": age, "city": city, "price": price, "tags": tags, "bought": bought})
    return rows


def write_csv(path, rows):
    def cell(value):
        return "" if value is None else "|".join(value) if isinstance(value, list) else str(value)

    lines = [",".join(rows[0])] + [",".join(cell(value) for value in row.values()) for row in rows]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def shop_config(**solver):
    return {
        "solver": {
            "batchsize": 64,
            "num_epochs": 2,
            "display": 5,
            "eval_interval": 10,
            "eval_metrics": ["AUC", "AverageLoss"],
            "seed": 4,
            **solver,
        },
        "optimizer": {"type": "Adam", "update_type": "Local", "adam_hparam": {"learning_rate": 0.01}},
        "layers": [
            {
                "type": "Data",
                "format": "Csv",
                "source": "train.csv",
                "eval_source": "eval.csv",
                "shuffle": 500,
                "csv": {
                    "labels": [{"column": "bought", "positive": "yes"}],
                    "dense": [
                        {"columns": ["age"], "transform": "standardize"},
                        {"columns": ["price"], "transform": ["log", "standardize"]},
                    ],
                    "slots": [
                        {"columns": ["user"]},
                        {"columns": ["city"], "default": "(missing)"},
                        {"columns": ["tags"], "separator": "|"},
                    ],
                },
                "label": {"top": "label", "label_dim": 1},
                "dense": {"top": "dense", "dense_dim": 2},
                "sparse": [{"top": "keys", "slot_num": 3, "nnz_per_slot": [1, 1, 10]}],
            },
            {
                "type": "DistributedSlotSparseEmbeddingHash",
                "bottom": "keys",
                "top": "vectors",
                "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "mean"},
            },
            {"type": "Reshape", "bottom": "vectors", "top": "flat", "leading_dim": 12},
            {"type": "Concat", "bottom": ["flat", "dense"], "top": "features"},
            {"type": "InnerProduct", "bottom": "features", "top": "fc1", "fc_param": {"num_output": 8}},
            {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
            {"type": "InnerProduct", "bottom": "relu1", "top": "logit", "fc_param": {"num_output": 1}},
            {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"},
        ],
    }


def model_files(folder):
    """The contents of a run's final weight and table files, by name."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.model"))}


def program(name, *arguments):
    done = subprocess.run([str(BIN / name), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{name} {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


class InFolder(unittest.TestCase):
    """Tests whose working directory is a new folder per class, with train.csv, eval.csv and config.json."""

    rows = 600

    @classmethod
    def setUpClass(cls):
        cls.folder, cls.before = tempfile.mkdtemp(), os.getcwd()
        os.chdir(cls.folder)
        cls.train_rows, cls.eval_rows = shop_rows(cls.rows, 1), shop_rows(200, 2)
        write_csv("train.csv", cls.train_rows)
        write_csv("eval.csv", cls.eval_rows)
        Path("config.json").write_text(json.dumps(shop_config()))

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        shutil.rmtree(cls.folder, ignore_errors=True)

    @contextlib.contextmanager
    def says(self, error, *parts):
        """Expects an exception of class `error` whose message contains all `parts`."""
        with self.assertRaises(error) as caught:
            yield
        for part in parts:
            self.assertIn(part, str(caught.exception))
