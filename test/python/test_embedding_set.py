"""Embedding tables that take pointers: steps compared with NumPy, import and export of rows, loading of saved sets."""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from huge_ctr import HugeCtrError, UsageError
from huge_ctr import _embedding_rows as rows_of_tables
from huge_ctr import _structs as s
from huge_ctr._embedding import EmbeddingSet, FeatureOptions, Keys, TableOptions, optimizer_of


def at(array):
    return np.array([array.ctypes.data], np.uint64)


class Step:
    """One feature with two samples of two keys each."""

    def __init__(self, keys):
        self.values = np.array(keys, np.int64)
        self.offsets = np.array([0, 2, len(keys)], np.int64)
        self.vectors, self.gradients = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
        self.keys = Keys(2, at(self.values), np.array([len(keys)]), s.I64, at(self.offsets))
        self.rows = np.array([2])

    def run(self, tables, rate):
        batch = tables.forward(self.keys, at(self.vectors), 3)
        tables.update(batch, self.rows, at(self.gradients), 3, rate)
        return self.vectors


def one_table(rule="sgd", allocator=None, **words):
    table = TableOptions("items", 3, optimizer=optimizer_of(rule), words={"initial": "normal", **words})
    return EmbeddingSet([table], [FeatureOptions("item", "items")], allocator=allocator, seed=4)


class Pool:
    """An allocator of at most `most` bytes in total."""

    def __init__(self, most):
        self.most, self.blocks = most, {}

    def allocate(self, size, stream):
        if sum(len(one) for one in self.blocks.values()) + size > self.most:
            return None
        block = ctypes.create_string_buffer(size + 256)
        address = ctypes.addressof(block) + -ctypes.addressof(block) % 256
        self.blocks[address] = block
        return address

    def free(self, memory, stream):
        del self.blocks[memory]


class Sets(unittest.TestCase):
    def test_a_step_sums_and_updates(self):
        tables = one_table()
        rows_of_tables.import_rows(tables, "items", np.array([5, 6, 7]), np.arange(9).reshape(3, 3))
        np.testing.assert_array_equal(Step([5, 6, 6, 7]).run(tables, 0.5), [[3, 5, 7], [9, 11, 13]])
        found = rows_of_tables.export_rows(tables, "items")
        np.testing.assert_array_equal(found.keys, [5, 6, 7])
        np.testing.assert_array_equal(found.vectors, [[-0.5, 0.5, 1.5], [2, 3, 4], [5.5, 6.5, 7.5]])
        self.assertEqual((tables.updates, tables.rows("items")), (1, 3))
        self.assertEqual(rows_of_tables.figures(tables, "items")["rows"], 3)

    def test_memory_comes_from_an_allocator(self):
        pool = Pool(1 << 30)
        ours, theirs = one_table(allocator=pool), one_table()
        for keys in ([5, 6, 6, 7], list(range(20_000))):
            np.testing.assert_array_equal(Step(keys).run(ours, 0.5), Step(keys).run(theirs, 0.5))
        self.assertGreater(len(pool.blocks), 0)
        del ours  # destroying a set calls its allocator
        self.assertEqual(pool.blocks, {})
        with self.assertRaisesRegex(HugeCtrError, "the caller's allocator refused"):
            one_table(allocator=Pool(100))

    def test_gradients_of_rows_are_read_before_an_update(self):
        tables, step = one_table(), Step([5, 6, 6, 7])
        batch = tables.forward(step.keys, at(step.vectors), 3)
        keys, sums = np.zeros(4, np.int64), np.zeros((4, 3), np.float32)
        to = [(keys.ctypes.data, sums.ctypes.data)]
        counts = tables.row_gradients(batch, step.rows, at(step.gradients), 3, to, ends=False)
        self.assertEqual(dict(zip(keys[: counts[0]], sums[: counts[0], 0])), {5: 1.0, 6: 2.0, 7: 1.0})
        tables.update(batch, step.rows, at(step.gradients), 3, 0.5)

    def test_rows_are_removed_and_changes_listed(self):
        tables = one_table(marks_changes=1)
        Step([5, 6, 8, 7]).run(tables, 0.5)
        rows_of_tables.note_exported(tables)
        Step([6, 6, 6, 6]).run(tables, 0.5)
        np.testing.assert_array_equal(rows_of_tables.export_rows(tables, "items", changed=True).keys, [6])
        self.assertEqual(rows_of_tables.remove_rows(tables, "items", np.array([5, 7, 99])), 2)
        np.testing.assert_array_equal(rows_of_tables.export_rows(tables, "items").keys, [6, 8])

    def test_what_a_policy_has_evicted_is_listed(self):
        tables = one_table(most_rows=4, when_full="evict_lru", marks_changes=1)
        Step([1, 2, 3, 4]).run(tables, 0.5)
        rows_of_tables.note_exported(tables)
        Step([11, 12, 13, 14]).run(tables, 0.5)
        gone = rows_of_tables.removed_keys(tables, "items")
        self.assertEqual(set(gone), {1, 2, 3, 4} - set(rows_of_tables.export_rows(tables, "items").keys))
        self.assertEqual(rows_of_tables.figures(tables, "items")["rows_evicted"], len(gone))

    def test_a_loaded_set_goes_on_bit_for_bit(self):
        tables, again = one_table("adam"), one_table("adam")
        Step([5, 6, 6, 7]).run(tables, 0.5)
        with tempfile.TemporaryDirectory() as folder:
            rows_of_tables.save(tables, Path(folder) / "set")
            rows_of_tables.load(again, Path(folder) / "set")
        for one in (tables, again):
            Step([1, 6, 6, 2]).run(one, 0.5)
        ours, theirs = (rows_of_tables.export_rows(one, "items", states=True) for one in (tables, again))
        self.assertEqual(ours.vectors.tobytes(), theirs.vectors.tobytes())
        self.assertEqual([one.tobytes() for one in ours.states], [one.tobytes() for one in theirs.states])

    def test_what_does_not_fit_is_named(self):
        for words, part in (({"initial": "gauss"}, "gauss"), ({"colour": 1}, "'colour'")):
            with self.assertRaisesRegex(UsageError, part):
                one_table(**words)
        with self.assertRaisesRegex(UsageError, "no table 'cities'"):
            EmbeddingSet([TableOptions("items", 3)], [FeatureOptions("city", "cities")])
        with self.assertRaises(LookupError):  # raised by the callback that receives rows
            tables = one_table()
            Step([5, 6, 6, 7]).run(tables, 0.5)
            rows_of_tables.export_blocks(tables, "items", lambda block: {}["nothing"])


class WithoutPyTorch(unittest.TestCase):
    def test_the_package_goes_on_and_the_import_says_what_is_missing(self):
        code = (
            "import sys; sys.modules['torch'] = None\n"
            "import huge_ctr; huge_ctr.__version__\n"
            "try: import huge_ctr.torch\n"
            "except ImportError as error: print(error)\n"
        )
        said = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        )
        self.assertIn("pip install torch", said.stdout, said.stderr)


if __name__ == "__main__":
    unittest.main()
