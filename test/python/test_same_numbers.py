"""Training and scoring in Python give the same results as the programs, bit for bit."""

import json
import unittest
from pathlib import Path

import huge_ctr
import numpy as np
import support


def predicted(model, data):
    """The scores that --predict writes."""
    options = ["--model", model, "--data", data, "--out", "scores.tsv", "--device", "cpu"]
    support.program("huge_ctr", "--predict", "config.json", *options)
    lines = Path("scores.tsv").read_text().splitlines()[1:]
    return np.array([line.rsplit("\t", 1)[1] for line in lines], np.float32)


class SameNumbers(support.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.program("huge_ctr", "--train", "config.json", "--run-dir", "program", "--device", "cpu")
        cls.weights = support.model_files("program")
        cls.scores = predicted("program", "eval.csv")
        cls.tables = {"dict": (support.columns_of(cls.train_rows), support.columns_of(cls.eval_rows))}
        try:
            import pandas

            cls.tables["pandas"] = tuple(pandas.DataFrame(one) for one in cls.tables["dict"])
        except ImportError:
            print("skipped: no pandas")
        try:
            import pyarrow

            cls.tables["PyArrow"] = tuple(pyarrow.table(one) for one in cls.tables["dict"])
        except ImportError:
            print("skipped: no pyarrow")
        try:
            import polars

            cls.tables["Polars"] = tuple(polars.DataFrame(one) for one in cls.tables["dict"])
        except ImportError:
            print("skipped: no polars")

    def expect_same_model(self, folder):
        self.assertEqual(len(self.weights), 2)
        self.assertEqual(support.model_files(folder), self.weights)

    def test_training_on_files(self):
        config = json.loads(Path("config.json").read_text())
        for name, given in {"path": "config.json", "dict": config, "text": json.dumps(config)}.items():
            with self.subTest(config=name):
                huge_ctr.train(given, run_dir=f"run-{name}", device="cpu")
                self.expect_same_model(f"run-{name}")

    def test_training_on_tables(self):
        for name, (train, evaluated) in self.tables.items():
            with self.subTest(table=name):
                huge_ctr.train("config.json", train, evaluated, run_dir=f"run-of-{name}", device="cpu")
                self.expect_same_model(f"run-of-{name}")

    def test_training_in_pieces(self):
        with huge_ctr.Trainer("config.json", run_dir="pieces", device="cpu") as trainer:
            for end in (3, 11):
                trainer.fit(iterations=end)
            trainer.fit()
            trainer.finish()
        self.expect_same_model("pieces")

    def test_scores(self):
        model = huge_ctr.load("program", device="cpu")
        ways = {"a file": lambda: model.predict("eval.csv"), "arrays": lambda: model.predict(model.encode("eval.csv"))}
        store = huge_ctr.store.Store({"models": [{"name": "m", "model": "program"}]})
        served = huge_ctr.load("program", device="cpu", tables=store.view("m"))
        ways["tables in a store"] = lambda: served.predict("eval.csv")
        for name, (_, evaluated) in self.tables.items():
            ways[name] = lambda evaluated=evaluated: model.predict(evaluated)
        ways["row by row"] = lambda: np.concatenate(
            [model.predict({name: [value] for name, value in row.items()}) for row in self.eval_rows]
        )
        for name, way in ways.items():
            with self.subTest(way=name):
                self.assertTrue(np.array_equal(way(), self.scores))

    def test_metrics(self):
        options = ["--model", "program", "--log", "json", "--device", "cpu"]
        lines = support.program("huge_ctr", "--eval", "config.json", *options)
        expected = json.loads(lines.splitlines()[-1])["metrics"]
        model = huge_ctr.load("program", device="cpu")
        for name, data in {"file": "eval.csv", "none": None, "dict": support.columns_of(self.eval_rows)}.items():
            with self.subTest(data=name):
                found = model.evaluate(data)
                self.assertEqual(set(found), set(expected))
                for metric, value in expected.items():
                    self.assertAlmostEqual(found[metric], value, places=12)

    def test_steps_on_arrays(self):
        """Training on arrays, in batches of the config, equals training on the same samples in a file."""
        config = support.shop_config(max_iter=9, num_epochs=None, eval_interval=0)
        del config["solver"]["num_epochs"], config["layers"][0]["shuffle"]
        huge_ctr.train(config, run_dir="by-file", device="cpu")
        model = huge_ctr.load("by-file", device="cpu")
        arrays = model.encode("train.csv")
        arrays["label"] = np.array([[row["bought"] == "yes"] for row in self.train_rows], np.float32)
        with huge_ctr.Trainer(config, run_dir="by-arrays", device="cpu") as trainer:
            keys, offsets = arrays["keys"]
            for first in range(0, 9 * 64, 64):
                ends = offsets[first * 3 : (first + 64) * 3 + 1]
                batch = {name: arrays[name][first : first + 64] for name in ("dense", "label")}
                self.assertEqual(trainer.step({**batch, "keys": (keys[ends[0] : ends[-1]], ends - ends[0])}), "reached")
            trainer.finish()
        self.assertEqual(support.model_files("by-arrays"), support.model_files("by-file"))


if __name__ == "__main__":
    unittest.main()
