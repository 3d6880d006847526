"""Tables in memory: every column type gives the same values as its text in a file; other objects raise errors."""

import unittest

import huge_ctr
import numpy as np
import support


def same(one, other):
    if isinstance(one, tuple) != isinstance(other, tuple):
        return False
    pairs = zip(one, other) if isinstance(one, tuple) else [(one, other)]
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


class Frames(support.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = huge_ctr.train(support.shop_config(num_epochs=1), device="cpu")
        cls.columns = support.columns_of(cls.eval_rows)
        cls.expected = cls.model.encode("eval.csv")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
        super().tearDownClass()

    def expect_same(self, table, **named):
        found = self.model.encode(table)
        for name, values in self.expected.items():
            self.assertTrue(same(values, found[name]), f"{name} of {named}")

    def test_lists_and_arrays(self):
        self.expect_same(self.columns)
        user = np.array(self.columns["user"])
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
            self.expect_same({**self.columns, "user": user.astype(dtype)}, user=dtype)
        self.expect_same({**self.columns, "user": user[::-1][::-1]}, user="strides")
        self.expect_same({**self.columns, "user": user.astype(">i8")}, user="other byte order")
        self.expect_same({**self.columns, "user": user.astype(str)}, user="texts of NumPy")
        ages = [np.nan if age is None else age for age in self.columns["age"]]
        self.expect_same({**self.columns, "age": np.array(ages, np.float64)}, age="NaN")
        tags = ["|".join(one) for one in self.columns["tags"]]
        self.expect_same({**self.columns, "tags": tags}, tags="texts with a separator")
        self.expect_same({**self.columns, "unused": [object()] * len(tags)}, unused="columns that are not read")

    def test_pandas(self):
        pandas = support.need("pandas")
        frame = pandas.DataFrame(self.columns)
        self.expect_same(frame)
        self.expect_same(frame.astype({"city": "category", "user": "category"}), types="categories")
        self.expect_same(frame.astype({"user": "Int32", "age": "Int64"}), types="nullable")
        self.expect_same(frame.astype({"city": object}), types="objects")
        doubled = pandas.concat([frame, frame])[len(frame) :]
        self.expect_same(doubled, rows="a part of a frame")

    def test_pandas_without_pyarrow(self):
        pandas = support.need("pandas")
        from huge_ctr import frames

        before, frames._arrow_of_pandas = frames._arrow_of_pandas, lambda series: None
        try:
            self.expect_same(pandas.DataFrame(self.columns))
            self.expect_same(pandas.DataFrame(self.columns).astype({"city": "category"}))
        finally:
            frames._arrow_of_pandas = before

    def test_pyarrow(self):
        arrow = support.need("pyarrow")
        table = arrow.table(self.columns)
        self.expect_same(table)
        for kind in (arrow.large_string(), arrow.string_view(), arrow.dictionary(arrow.int32(), arrow.string())):
            city = table["city"].cast(arrow.string()).combine_chunks()
            city = city.dictionary_encode() if arrow.types.is_dictionary(kind) else city.cast(kind)
            place = table.column_names.index("city")
            self.expect_same(table.set_column(place, "city", city), city=kind)
        place = table.column_names.index("tags")
        tags = table["tags"].cast(arrow.large_list(arrow.large_string()))
        self.expect_same(table.set_column(place, "tags", tags), tags="large lists")
        chunks = arrow.concat_tables([table.slice(0, 70), table.slice(70, 3), table.slice(73)])
        self.expect_same(chunks, rows="chunks with offsets")
        self.expect_same(arrow.concat_tables([table, table]).slice(len(table)), rows="a slice")

    def test_polars(self):
        polars = support.need("polars")
        frame = polars.DataFrame(self.columns)
        self.expect_same(frame)
        self.expect_same(frame.with_columns(polars.col("city").cast(polars.Categorical)), city="categories")
        self.expect_same(polars.concat([frame[:50], frame[50:]], rechunk=False), rows="chunks")

    def test_more_rows_than_a_piece_has(self):
        many = {name: values * 90 for name, values in self.columns.items()}
        found, once = self.model.predict(many), self.model.predict(self.columns)
        self.assertTrue(np.array_equal(found, np.tile(once, 90)))

    def test_times_are_seconds(self):
        config = {"solver": {"batchsize": 4, "max_iter": 1}, "optimizer": support.shop_config()["optimizer"]}
        from huge_ctr import layers as L

        data = L.Data(["y"], dense=["when"])
        config = L.Model(data, L.BinaryCrossEntropyLoss(L.InnerProduct(data.dense, num_output=1), data.label)).to_json()
        days = np.array(["1970-01-02", "1970-01-03", "NaT"], "datetime64[D]")
        table = {"y": [0, 1, 1], "when": days}
        model = huge_ctr.train(config, table, device="cpu")
        for unit in ("D", "s", "ms", "us", "ns"):
            found = model.encode({"when": days.astype(f"datetime64[{unit}]")})["dense"][:, 0]
            self.assertEqual(found.tolist(), [86400, 172800, 0], unit)

    def test_errors_name_column_and_remedy(self):
        with self.says(huge_ctr.DataError, "no column 'age'", "'user'"):
            self.model.predict({"user": [1], "city": ["Oslo"], "price": [1.0], "tags": [[]]})
        with self.says(huge_ctr.DataError, "row 2", "'price'", "'dear'"):
            self.model.predict({**{k: v[:2] for k, v in self.columns.items()}, "price": ["1.5", "dear"]})
        with self.says(huge_ctr.UsageError, "column 'user' has 1 rows", "2"):
            self.model.predict({**{k: v[:2] for k, v in self.columns.items()}, "user": [1]})
        with self.says(huge_ctr.UsageError, "column 'price'", "complex"):
            self.model.predict({**self.columns, "price": np.zeros(len(self.eval_rows), complex)})
        with self.says(huge_ctr.UsageError, "list", "DataFrame"):
            self.model.predict([1, 2])
        with self.says(huge_ctr.FileError, "nothing.csv"):
            self.model.predict("nothing.csv")

    def test_a_table_of_no_rows_is_said(self):
        with self.says(huge_ctr.DataError, "empty"):
            self.model.predict({name: [] for name in self.columns})

    def test_a_frame_that_is_closed_is_said(self):
        frame = huge_ctr.Frame(self.columns)
        source = frame.source
        self.assertEqual(len(frame), len(self.eval_rows))
        self.assertEqual(len(self.model.predict(source)), len(frame))
        frame.close()
        with self.says(huge_ctr.FileError, source, "no longer exists"):
            self.model.predict(source)


if __name__ == "__main__":
    unittest.main()
