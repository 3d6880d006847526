"""Models as objects and presets: their configs are valid, and derived fields follow the rules."""

import json
import unittest

import huge_ctr
import numpy as np
import support
from huge_ctr import layers as L
from huge_ctr import presets


class Layers(support.InFolder):
    def test_objects_make_the_config_that_is_written_by_hand(self):
        data = L.Data(
            [{"column": "bought", "positive": "yes"}],
            dense=[
                {"columns": ["age"], "transform": "standardize"},
                {"columns": ["price"], "transform": ["log", "standardize"]},
            ],
            slots=[
                {"columns": ["user"]},
                {"columns": ["city"], "default": "(missing)"},
                {"columns": ["tags"], "separator": "|"},
            ],
            most_keys=[1, 1, 10],
            source="train.csv",
            eval_source="eval.csv",
            shuffle=500,
        )
        flat = L.Reshape(L.Embedding(data.keys, 4, name="vectors"), leading_dim=12, name="flat")
        x = L.ReLU(L.InnerProduct(L.Concat(flat, data.dense, name="features"), num_output=8, name="fc1"), name="relu1")
        loss = L.BinaryCrossEntropyLoss(L.InnerProduct(x, num_output=1, name="logit"), data.label)
        by_hand = support.shop_config()
        model = L.Model(data, loss, solver=by_hand["solver"], learning_rate=0.01)
        self.assertEqual(model.to_json()["layers"], by_hand["layers"])
        self.assertEqual(model.to_json()["optimizer"], by_hand["optimizer"])
        huge_ctr.train(model, run_dir="objects", device="cpu")
        huge_ctr.train(json.dumps(by_hand), run_dir="by-hand", device="cpu")
        self.assertEqual(support.model_files("objects"), support.model_files("by-hand"))

    def test_names_are_chosen_where_none_is_given(self):
        data = L.Data(["y"], dense=["a", "b"])
        x = L.ReLU(L.InnerProduct(data.dense, num_output=3)) + L.InnerProduct(data.dense, num_output=3, name="relu")
        one, two = L.Slice(x, [[0, 1], [1, 3]])
        loss = L.BinaryCrossEntropyLoss(L.Concat(one, L.ReduceSum(two, axis=1)), data.label)
        tops = [layer["top"] for layer in L.Model(data, loss).to_json()["layers"][1:]]
        self.assertEqual(
            tops, ["innerproduct", "relu2", "relu", "add", ["slice_0", "slice_1"], "reducesum", "concat", "loss"]
        )
        with self.says(huge_ctr.ConfigError, "two layers are named 'same'"):
            L.Model(
                data,
                L.BinaryCrossEntropyLoss(
                    L.InnerProduct(L.ReLU(data.dense, name="same"), num_output=1, name="same"), data.label
                ),
            )
        with self.says(huge_ctr.ConfigError, "'dense'", "not the top"):
            L.ReLU("dense")

    def test_presets_train(self):
        table, held_out = support.columns_of(self.train_rows), support.columns_of(self.eval_rows)
        for one in (table, held_out):
            one["bought"] = [value == "yes" for value in one["bought"]]
        for name in ("wide_and_deep", "deepfm", "dcn", "dcnv2", "dlrm"):
            with self.subTest(preset=name):
                config = getattr(presets, name)(table, "bought", epochs=6, learning_rate=0.01, dropout=0)
                self.assertGreater(huge_ctr.train(config, table, held_out, device="cpu").evaluate(held_out)["AUC"], 0.6)
        numbers = {"bought": table["bought"], "price": table["price"]}
        for name in ("wide_and_deep", "deepfm", "dcn", "dcnv2"):
            with self.subTest(preset=name, columns="numbers alone"):
                huge_ctr.train(getattr(presets, name)(numbers, "bought", epochs=1), numbers, device="cpu")
        with self.says(huge_ctr.UsageError, "dlrm", "categories"):
            presets.dlrm(numbers, "bought", numeric=["price"])

    def test_din_finds_the_item_in_the_history(self):
        draw = np.random.default_rng(3)
        history = [draw.integers(0, 30, draw.integers(0, 6)).tolist() for _ in range(1500)]
        item = draw.integers(0, 30, 1500)
        table = {"history": history, "item": item, "x": draw.normal(size=1500)}
        table["y"] = [int(one in those) for one, those in zip(item, history)]
        config = presets.din(table, "y", history="history", item="item", epochs=12, learning_rate=0.01, dropout=0)
        model = huge_ctr.train(config, table, table, device="cpu")
        self.assertGreater(model.evaluate(table)["AUC"], 0.6)
        with self.says(huge_ctr.UsageError, "history="):
            presets.din(table, "y")

    def test_columns_are_guessed_and_stated(self):
        count = 300
        table = {
            "y": [0, 1] * (count // 2),
            "number": np.arange(count),
            "price": np.exp(np.random.default_rng(0).normal(2, 2, count)),
            "item_id": np.arange(count) % 70 * 13,
            "few": np.arange(count) % 5,
            "text": [f"t{i % 9}" for i in range(count)],
            "words": [f"unlike {i}" for i in range(count)],
            "tags": [["a"], ["b", "c"], []] * (count // 3),
            "flag": [True, False] * (count // 2),
            "same": [7] * count,
        }
        found = presets.Columns.of(table, "y")
        self.assertEqual(found.numbers, ["few"])
        self.assertEqual(found.skewed, ["price"])
        self.assertEqual(found.categories, ["item_id", "few", "text", "flag"])
        self.assertEqual(found.lists, ["tags"])
        self.assertEqual(set(found.left_out), {"number", "words", "same"})
        self.assertIn("price: number, by its logarithm", found.lines())
        stated = presets.Columns.of(table, "y", categorical=["number", "words"], numeric=["few"], leave_out=["text"])
        self.assertEqual(stated.categories, ["number", "item_id", "words", "flag"])
        self.assertEqual(stated.numbers, ["few"])
        with self.says(huge_ctr.UsageError, "'none'", "'price'"):
            presets.Columns.of(table, "y", categorical=["none"])


if __name__ == "__main__":
    unittest.main()
