"""huge_ctr.store: lookups, updates, models with tables in a store, and the API of HugeCTR's parameter server."""

import os
import unittest
from pathlib import Path

import huge_ctr
import huge_ctr.store as hps
import numpy as np
import support


class Tables(unittest.TestCase):
    def setUp(self):
        self.store = hps.Store()
        self.rows = np.arange(12, dtype=np.float32).reshape(4, 3)
        self.store.load("m", tables={"t": ([1, 2, 3, -4], self.rows)})

    def test_rows_updates_and_versions(self):
        view = self.store.view("m")
        rows, found = view.get("t", np.array([3, 9, 1], np.int32), found=True)
        self.assertEqual((rows.tolist(), found.tolist()), ([[6, 7, 8], [0, 0, 0], [0, 1, 2]], [True, False, True]))
        pooled = view.pooled("t", [1, 2, -4], [0, 2, 3], "mean")
        self.assertEqual(pooled.tolist(), [[1.5, 2.5, 3.5], [9, 10, 11]])
        self.assertTrue(self.store.apply("m", 5, {"t": ([9], [[1, 1, 1]])}, {"t": [1]}))
        self.assertFalse(self.store.apply("m", 5, {"t": ([9], [[2, 2, 2]])}))
        self.assertEqual(view.get("t", [9, 1]).tolist(), [[1, 1, 1], [0, 0, 0]])
        self.store.load("m", tables={"t": {"keys": [1], "vectors": [[5]], "default_value": 2}}, version="2")
        self.store.activate("m", "2")
        self.assertEqual(self.store.view("m").get(0, [1, 2]).tolist(), [[5], [2]])
        self.assertEqual([(one["version"], one["active"]) for one in self.store.models], [("1", 0), ("2", 1)])
        self.assertEqual(self.store.levels[0]["rows"], 4)
        self.store.close()
        self.assertEqual(view.get("t", [9]).tolist(), [[1, 1, 1]])

    def test_what_does_not_fit_is_said(self):
        view = self.store.view("m")
        for call, message in (
            (lambda: view.get("u", [1]), "no table is named 'u'; tables are 't'"),
            (lambda: view.get("t", [1.5]), "integers"),
            (lambda: view.pooled("t", [1], [0, 1], "max"), "sum, mean, sqrtn"),
            (lambda: self.store.load("n", tables={"t": {"rows": 1}}), "unknown field 'rows'"),
            (lambda: self.store.view("n"), "no model 'n'"),
        ):
            with self.assertRaisesRegex(huge_ctr.UsageError, message):
                call()
        with self.assertRaisesRegex(huge_ctr.ConfigError, "most_rows"):
            hps.Store({"most_row": 5})


class Shared(unittest.TestCase):
    """Two stores with one name share rows, even in one process, because a lock in shared memory belongs to a store."""

    def setUp(self):
        config = {"shared_memory": f"test_store_{os.getpid()}"}
        self.first, self.second = hps.Store(config), hps.Store(config)
        self.addCleanup(self.first.close)
        self.addCleanup(self.second.close)

    def test_refresh_adopts_the_commits_of_the_updating_process(self):
        self.first.load("m", tables={"t": ([1, 2], [[1, 1], [2, 2]])})
        self.assertTrue(self.second.refresh())
        view = self.second.view("m")
        self.first.apply("m", 5, {"t": ([2], [[7, 7]])})
        self.assertEqual(view.get("t", [1, 2]).tolist(), [[1, 1], [2, 2]])
        self.assertTrue(self.second.refresh())
        self.assertEqual(view.get("t", [1, 2]).tolist(), [[1, 1], [7, 7]])
        self.assertFalse(self.second.refresh(), "there is no newer commit")

    def test_refresh_takes_over_when_the_updating_process_has_ended(self):
        self.first.load("m", tables={"t": ([1], [[1, 1]])})
        self.second.refresh()
        self.assertEqual((self.first.writable, self.second.writable), (True, False))
        with self.assertRaisesRegex(huge_ctr.UsageError, str(os.getpid())):
            self.second.apply("m", 5, {"t": ([1], [[3, 3]])})
        self.first.close()
        self.second.refresh()
        self.assertTrue(self.second.writable)
        self.assertTrue(self.second.apply("m", 5, {"t": ([1], [[3, 3]])}))
        self.assertEqual(self.second.view("m").get("t", [1]).tolist(), [[3, 3]])

    def test_a_store_of_one_process_has_nothing_to_refresh(self):
        store = hps.Store()
        self.assertEqual((store.refresh(), store.writable), (False, True))
        store.close()
        with self.assertRaisesRegex(huge_ctr.UsageError, "closed"):
            store.refresh()


class Cached(unittest.TestCase):
    """Without a GPU the levels of the store answer. With a GPU and torch, tensors may be on the GPU."""

    def setUp(self):
        self.store = hps.Store({"gpu_cache": {"most_rows": 2, "admit_after": 1}})
        self.rows = np.arange(12, dtype=np.float32).reshape(4, 3)
        self.store.load("m", tables={"t": ([1, 2, 3, -4], self.rows), "u": ([7], [[5]])})

    def test_rows_are_those_of_a_view(self):
        view, cache = self.store.view("m"), self.store.cache("m", "none")
        keys = [3, 9, 1, 3]
        self.assertEqual(cache.get("t", keys).tolist(), view.get("t", keys).tolist())
        out = np.full((4, 5), -1, np.float32)
        self.assertIs(cache.get("t", keys, out=out[:, :3]).base, out)
        self.assertEqual(out[0].tolist(), [6, 7, 8, -1, -1])
        for combiner in ("sum", "mean", "sqrtn"):
            pooled = cache.pooled("t", keys, [0, 3, 4], combiner)
            self.assertEqual(pooled.tolist(), view.pooled("t", keys, [0, 3, 4], combiner).tolist())
        both = cache.get_tables({"t": [1], "u": [7, 8]})
        self.assertEqual({name: rows.tolist() for name, rows in both.items()}, {"t": [[0, 1, 2]], "u": [[5], [0]]})
        self.assertEqual((cache.get("t", []).shape, view.get("t", []).shape), ((0, 3), (0, 3)))
        self.assertEqual((cache.gpu, cache.version), (None, "1"))
        self.store.load("m", tables={"t": ([1], [[1, 1, 1]]), "u": ([7], [[6]])}, version="2")
        cache.activate("2")
        self.assertEqual((cache.version, self.store.view("m").version), ("2", "2"))
        self.assertEqual(cache.get("u", [7]).tolist(), [[6]])
        self.store.close()
        with self.assertRaisesRegex(huge_ctr.UsageError, "closed"):
            cache.get("u", [7])

    def test_what_does_not_fit_is_said(self):
        cache = self.store.cache("m", "none")
        for call, message in (
            (lambda: cache.get("v", [1]), "no table is named 'v'; tables are 't', 'u'"),
            (lambda: cache.get("t", [1.5]), "integers"),
            (lambda: cache.get("t", [1], out=np.zeros((1, 3))), "float32"),
            (lambda: cache.get("t", [1], out=np.zeros((1, 2), np.float32)), r"\[1, 2\], expected \[1, 3\]"),
            (lambda: cache.pooled("t", [1], [0, 1], "max"), "sum, mean, sqrtn"),
            (lambda: self.store.cache("m", "all"), "gpu is 'all'"),
            (lambda: self.store.cache("n", "none"), "no model 'n'"),
        ):
            with self.assertRaisesRegex(huge_ctr.UsageError, message):
                call()
        with self.assertRaisesRegex(huge_ctr.DeviceError, "no GPU 99"):
            self.store.cache("m", 99)
        with self.assertRaisesRegex(huge_ctr.ConfigError, "share"):
            hps.Store({"gpu_cache": {"bytes": 1, "share": 0.5}})

    def test_tensors_on_a_gpu_are_read_and_written_there(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")
        try:
            cache = self.store.cache("m", 0)
        except huge_ctr.DeviceError as error:
            self.skipTest(str(error))
        keys = torch.tensor([3, 9, 1, 3], device="cuda")
        for _ in range(3):
            out = torch.empty(4, 3, device="cuda")
            self.assertIs(cache.get("t", keys, out=out), out)
            self.assertEqual(out.tolist(), [[6, 7, 8], [0, 0, 0], [0, 1, 2], [6, 7, 8]])
            self.assertEqual(cache.get("t", keys).tolist(), out.tolist())
            self.assertEqual(cache.get("t", [3, 9, 1, 3], out=out).tolist(), out.tolist())
        other = torch.cuda.Stream()
        with torch.cuda.stream(other):
            bags = torch.empty(2, 3, device="cuda")
            offsets = torch.tensor([0, 3, 4], device="cuda")
            cache.pooled("t", keys, offsets, out=bags, stream=other.cuda_stream)
        other.synchronize()
        self.assertEqual(bags.tolist(), [[6, 8, 10], [6, 7, 8]])


class Trained(support.InFolder):
    def test_a_model_with_tables_in_a_store_scores_as_with_its_own(self):
        own = huge_ctr.train("config.json", run_dir="run", device="cpu")
        store = hps.Store({"folder": "store", "most_rows": 10, "models": [{"name": "m", "model": "run"}]})
        model = huge_ctr.load("run", device="cpu", tables=store.view("m"))
        self.assertTrue(np.array_equal(model.predict("eval.csv"), own.predict("eval.csv")))
        self.assertGreater(store.verify(), 10)
        with self.says(huge_ctr.UsageError, "without tables="):
            model.evaluate()

    def test_the_calls_of_the_original(self):
        Path("table").mkdir(exist_ok=True)
        keys, rows = np.array([5, 7, 2**40], np.int64), np.arange(6, dtype=np.float32).reshape(3, 2)
        keys.tofile("table/key")
        rows.tofile("table/emb_vector")
        params = hps.InferenceParams(
            model_name="wdl",
            max_batchsize=64,
            hit_rate_threshold=0.9,
            dense_model_file="",
            sparse_model_files=["table"],
            device_id=0,
            use_gpu_embedding_cache=True,
            cache_size_percentage=0.5,
            i64_input_key=True,
            deployed_devices=[0],
            default_value_for_each_table=[1.0],
            volatile_db=hps.VolatileDatabaseParams(hps.DatabaseType_t.HashMap, num_partitions=4),
        )
        config = hps.ParameterServerConfig(
            emb_table_name={"wdl": ["t0"]},
            embedding_vec_size={"wdl": [2]},
            max_feature_num_per_sample_per_emb_table={"wdl": [3]},
            inference_params_array=[params],
        )
        server = hps.HPS(config)
        self.assertEqual(server.lookup(np.array([7, 6], np.uint64), "wdl", 0, 0).tolist(), [[2, 3], [1, 1]])
        out = np.zeros((2, 2), np.float32)
        server.lookup_fromdlpack(np.array([2**40, 5]), out, "wdl", 0, 0)
        self.assertEqual(out.tolist(), [[4, 5], [0, 1]])
        with self.says(huge_ctr.UsageError, "cache_size"):
            hps.InferenceParams(model_name="a", sparse_model_files=[], cache_size=1)
        other = hps.VolatileDatabaseParams(hps.DatabaseType_t.Disabled)
        with self.says(huge_ctr.ConfigError, "differs between models"):
            hps.ParameterServerConfig({"wdl": ["t0"]}, {"wdl": [2]}, {"wdl": [3]}, [params], volatile_db=other)


if __name__ == "__main__":
    unittest.main()
