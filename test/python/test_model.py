"""Model: its contents, exports and pickling."""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import unittest
from pathlib import Path

import huge_ctr
import numpy as np
import support


def predicted_in_child(pickled, path):
    return pickle.loads(pickled).predict(path).tobytes()


class Loaded(support.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = huge_ctr.train("config.json", run_dir="run", device="cpu")
        cls.columns = support.columns_of(cls.eval_rows)
        cls.scores = cls.model.predict("eval.csv")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
        super().tearDownClass()

    def test_tables_by_name_column_and_value(self):
        table = self.model.tables["vectors"]
        self.assertEqual((table.vectors.shape[1], table.vectors.dtype, table.keys.dtype), (4, np.float32, np.int64))
        cities = self.model.tables["city"]
        self.assertEqual(cities.column, "city")
        found = cities.vectors_of(["Oslo", "Malmö", "nowhere"])
        keys = cities.keys_of(["Oslo", "Malmö"])
        self.assertTrue(np.array_equal(found[:2], [table.vectors[table.keys == key][0] for key in keys]))
        self.assertTrue((found[2] == 0).all())
        self.assertTrue(
            np.array_equal(self.model.tables["tags"].keys_of(["sale"]), self.model.tables["tags"].keys_of(["sale"]))
        )
        self.assertEqual(list(self.model.tables), ["vectors"])
        with self.assertRaisesRegex(KeyError, "'nothing'.*'city'"):
            self.model.tables["nothing"]
        with self.says(huge_ctr.UsageError, "model.tables['user']"):
            table.keys_of(["Oslo"])

    def test_rows_of_slots_are_those_of_their_column(self):
        config = support.shop_config(num_epochs=1)
        config["layers"][1]["type"] = "LocalizedSlotSparseEmbeddingHash"
        model = huge_ctr.train(config, device="cpu")
        users = model.tables["user"]
        self.assertEqual(set(users.slots), {0})
        self.assertEqual(len(users), 40)
        self.assertTrue(np.abs(users.vectors_of([1, 2])).sum() > 0)
        with self.says(huge_ctr.UsageError, "slot and key"):
            model.tables["vectors"].vectors_of([1])

    def test_missing_columns_of_labels_and_one_row(self):
        rows = {name: values for name, values in self.columns.items() if name != "bought"}
        self.assertTrue(np.array_equal(self.model.predict(rows), self.scores))
        self.assertTrue(np.array_equal(self.model.predict({k: v[:1] for k, v in rows.items()}), self.scores[:1]))

    def test_bad_rows_that_are_left_out_are_nan(self):
        config = support.shop_config(num_epochs=1)
        config["layers"][0]["bad_records"] = "skip"
        model = huge_ctr.train(config, device="cpu")
        good = model.predict(self.columns)
        price = [str(value) for value in self.columns["price"]]
        for row in (0, 7, 8, 199):
            price[row] = "dear"
        bad = model.predict({**self.columns, "price": price})
        self.assertEqual(np.flatnonzero(np.isnan(bad)).tolist(), [0, 7, 8, 199])
        self.assertTrue(np.array_equal(bad[~np.isnan(bad)], np.delete(good, [0, 7, 8, 199])))
        lines = Path("eval.csv").read_text().splitlines()
        lines[3] = lines[3].replace(str(self.columns["price"][2]), "dear")
        Path("bad.csv").write_text("\n".join([*lines, lines[3]]) + "\n")
        self.assertEqual(np.flatnonzero(np.isnan(model.predict("bad.csv"))).tolist(), [2, 200])

    def test_importance_is_of_the_features(self):
        found = self.model.feature_importance(self.columns)
        self.assertEqual(set(found), {"age", "price", "user", "city", "tags"})
        self.assertEqual(next(iter(found)), max(found, key=found.get))
        self.assertEqual(self.model.feature_importance(), found)
        self.assertTrue(all(moved >= 0 for moved in self.model.feature_importance(self.columns, by="scores").values()))

    def test_exports(self):
        for format, ending in (("npz", ".npz"), ("onnx", ".onnx"), ("safetensors", ".safetensors")):
            files = self.model.export(f"as-{format}", format)
            self.assertTrue(any(file.suffix == ending for file in files), files)
        with self.says(huge_ctr.UsageError, "'tf'", "onnx"):
            self.model.export("as-tf", "tf")
        with self.says(huge_ctr.UsageError, "as-npz"):
            self.model.export("as-npz", "npz")

    def test_predict_to_a_file_keeps_columns(self):
        self.assertEqual(self.model.predict_to("eval.csv", "out.csv", keep=["user"]), 200)
        lines = Path("out.csv").read_text().splitlines()
        self.assertEqual((lines[0], len(lines)), ("row,label,score,user", 201))

    def test_summary_and_picture(self):
        text = self.model.summary()
        for part in ("iteration 20", "input keys: 3 slots", "table vectors", "fc1/weights: 14 x 8", "AUC"):
            self.assertIn(part, text)
        page = self.model._repr_html_()
        for part in ("<svg", "InnerProduct", "vectors", "training loss"):
            self.assertIn(part, page)

    def test_pickles_and_copies_score_the_same(self):
        for model in (pickle.loads(pickle.dumps(self.model)), huge_ctr.load(self.model.save("copy"), device="cpu")):
            self.assertTrue(np.array_equal(model.predict("eval.csv"), self.scores))
        with huge_ctr.Trainer("config.json", device="cpu") as trainer:
            trainer.fit()
            model = trainer.model()
        self.assertTrue(np.array_equal(pickle.loads(pickle.dumps(model)).predict("eval.csv"), self.scores))

    def test_another_process_scores_the_same(self):
        for method in ("fork", "spawn"):
            with self.subTest(method=method), multiprocessing.get_context(method).Pool(1) as pool:
                job = pool.apply_async(predicted_in_child, (pickle.dumps(self.model), os.path.abspath("eval.csv")))
                self.assertEqual(job.get(60), self.scores.tobytes())

    def test_an_interrupt_leaves_the_model_usable(self):
        class Interrupts(logging.Handler):
            def emit(self, record):
                os.kill(os.getpid(), signal.SIGINT)

        logger, handler = logging.getLogger("huge_ctr"), Interrupts()
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            with self.assertRaises(KeyboardInterrupt):
                self.model.evaluate(self.columns)
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)
        frame = huge_ctr.Frame({name: values * 2000 for name, values in self.columns.items()})
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.model.predict(frame)
        self.assertTrue(np.array_equal(self.model.predict(self.columns), self.scores))
        self.assertIn("AUC", self.model.evaluate(self.columns))

    def test_threads_score_at_the_same_time(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.model.predict(self.columns))) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertTrue(all(np.array_equal(one, self.scores) for one in found) and len(found) == 4)

    def test_torch_beside_us(self):
        torch = support.need("torch")
        arrays = self.model.encode("eval.csv")
        arrays["dense"] = torch.from_numpy(arrays["dense"])
        self.assertTrue(np.array_equal(self.model.predict(arrays), self.scores))

    def test_what_is_no_model_is_said(self):
        with self.says(huge_ctr.FileError, "nothing"):
            huge_ctr.load("nothing")
        with self.says(huge_ctr.UsageError, "'gpu'", "cuda"):
            huge_ctr.load("run", device="gpu")
        with self.says(huge_ctr.UsageError, "'extra'", "'dense'"):
            self.model._score(huge_ctr.model.Inputs({"extra": np.zeros(3)}, self.model._inputs))
        with self.says(huge_ctr.DataError, "no column 'bought'", "'price'"):
            self.model.evaluate({name: values for name, values in self.columns.items() if name != "bought"})

    def test_parquet_is_read_by_pyarrow(self):
        arrow = support.need("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(arrow.table(self.columns), "eval.parquet")
        self.assertTrue(np.array_equal(self.model.predict("eval.parquet"), self.scores))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    unittest.main()
