#!/usr/bin/env python3
"""Converts Criteo's click logs to Parquet with PySpark on a cluster. Ids are numbered as by `preprocess --passes 2`.

    spark-submit tools/spark/criteo_to_parquet.py --train day_0.gz day_1.gz --eval day_23.gz --out hdfs:///criteo --min-count 6 --log

Writes OUT/train and OUT/val, each with part-*.parquet, _metadata.json (rows of each file, and which columns are labels,
dense values and categories) and _file_list.txt, and OUT/preprocess.json with slot_size_array. Columns: label and
I1..I13 as float32, C1..C26 as int64 ids numbered from 0 in each slot: 0 missing, 1 rare or unseen, then the values by
descending count in the training rows, equal counts by value.
"""
import argparse
import json
import math
import os

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

INTEGERS = [f"I{i}" for i in range(1, 14)]
CATEGORIES = [f"C{i}" for i in range(1, 27)]
# if a column has fewer ids than this, they are broadcast, which avoids sorting the rows by this column
BROADCAST = 2000000


def read_rows(spark, files):
    """Reads typed rows. A field that does not fit its column stops the job with an error that shows its value."""
    names = ["label"] + INTEGERS + CATEGORIES
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    text = spark.read.csv(files, sep="\t", schema=schema, quote="", mode="FAILFAST")

    def checked(name, right, value, expected):
        message = F.concat(F.lit(f"column {name}: expected {expected}, found '"), F.coalesce(F.col(name), F.lit("")), F.lit("'"))
        empty = F.col(name).isNull() | (F.col(name) == "")
        return F.when(empty, F.lit(None)).when(right, value).otherwise(F.raise_error(message))

    columns = [checked("label", F.col("label").isin("0", "1"), F.col("label").cast("float"), "0 or 1").alias("label")]
    columns += [checked(i, F.col(i).rlike("^-?[0-9]{1,18}$"), F.col(i).cast("double"), "an integer or nothing").alias(i) for i in INTEGERS]
    columns += [checked(c, F.col(c).rlike("^[0-9a-fA-F]{1,8}$"), F.conv(F.col(c), 16, 10).cast("long"), "up to 8 hexadecimal digits or nothing").alias(c) for c in CATEGORIES]
    return text.select(columns)


def with_modulo(rows, modulo):
    return rows.select("label", *INTEGERS, *[(F.col(c) % modulo).alias(c) for c in CATEGORIES]) if modulo else rows


def vocabularies_of(rows, min_count):
    """Returns column -> ((value, id) of the frequent values, number of ids). Reads the rows once for all columns."""
    pairs = rows.select(F.explode(F.array(*[F.struct(F.lit(i).alias("column"), F.col(c).alias("value")) for i, c in enumerate(CATEGORIES)])).alias("pair"))
    counts = pairs.select("pair.*").where("value is not null").groupBy("column", "value").count().where(F.col("count") >= min_count)
    order = Window.partitionBy("column").orderBy(F.desc("count"), "value")
    ids = counts.select("column", "value", (F.row_number().over(order) + 1).cast("long").alias("id")).cache()
    sizes = {row["column"]: row["ids"] for row in ids.groupBy("column").agg(F.count("*").alias("ids")).collect()}
    return {c: (ids.where(F.col("column") == i).select("value", "id"), sizes.get(i, 0) + 2) for i, c in enumerate(CATEGORIES)}


def scaling(rows, options):
    """Returns shift and scale of each dense column, computed from the training rows."""
    log = lambda column: F.log1p(F.greatest(column, F.lit(0.0))) if options.log else column
    value = lambda name: log(F.coalesce(F.col(name), F.lit(float(options.fill))))
    if options.normalize == "none":
        return {name: value(name) for name in INTEGERS}
    statistics = [f(value(name)).alias(f"{word}_{name}") for name in INTEGERS for word, f in
                  (("least", F.min), ("most", F.max), ("mean", F.avg), ("deviation", F.stddev_pop))]
    found = rows.select(statistics).first()
    scaled = {}
    for name in INTEGERS:
        range_ = options.normalize == "minmax"
        shift = found[f"least_{name}"] if range_ else found[f"mean_{name}"]
        width = found[f"most_{name}"] - shift if range_ else found[f"deviation_{name}"]
        scaled[name] = (value(name) - shift) * (1 / width if width > 0 else 0.0)
    return scaled


def with_ids(rows, vocabularies):
    for column, (ids, size) in vocabularies.items():
        renamed = ids.select(F.col("value").alias(f"{column}_value"), F.col("id").alias(f"{column}_id"))
        renamed = F.broadcast(renamed) if size < BROADCAST else renamed
        rows = rows.join(renamed, rows[column] == F.col(f"{column}_value"), "left")
        rows = rows.withColumn(column, F.when(F.col(column).isNull(), 0).otherwise(F.coalesce(F.col(f"{column}_id"), F.lit(1))).cast("long"))
        rows = rows.drop(f"{column}_value", f"{column}_id")
    return rows


class Folder:
    """A folder on any file system that Spark can write to."""

    def __init__(self, spark, path):
        self.jvm = spark.sparkContext._jvm
        self.path = self.jvm.org.apache.hadoop.fs.Path(path)
        self.files = self.path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def names(self):
        return sorted(status.getPath().getName() for status in self.files.listStatus(self.path))

    def write(self, name, text):
        """Writes under another name first, so that no reader sees an incomplete file."""
        Path = self.jvm.org.apache.hadoop.fs.Path
        part, final = Path(self.path, f".{name}.part"), Path(self.path, name)
        stream = self.files.create(part, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        self.files.delete(final, False)
        if not self.files.rename(part, final):
            raise SystemExit(f"cannot write {final}")


def write_set(spark, rows, folder, scaled, vocabularies, files):
    rows = with_ids(rows, vocabularies)
    columns = [F.col("label").cast("float").alias("label")] + [scaled[name].cast("float").alias(name) for name in INTEGERS] + [F.col(c) for c in CATEGORIES]
    rows.select(columns).repartition(files).write.mode("overwrite").parquet(folder)
    counts = dict(spark.read.parquet(folder).groupBy(F.element_at(F.split(F.input_file_name(), "/"), -1)).count().collect())
    target = Folder(spark, folder)
    parts = [name for name in target.names() if name.endswith(".parquet")]
    entry = lambda names, first: [{"col_name": name, "index": first + i} for i, name in enumerate(names)]
    target.write("_metadata.json", json.dumps({
        "file_stats": [{"file_name": name, "num_rows": counts.get(name, 0)} for name in parts],
        "labels": entry(["label"], 0), "conts": entry(INTEGERS, 1), "cats": entry(CATEGORIES, 1 + len(INTEGERS))}, indent=1) + "\n")
    target.write("_file_list.txt", "".join(f"{line}\n" for line in [len(parts)] + [f"{folder.rstrip('/')}/{name}" for name in parts]))
    return sum(counts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__)
    parser.add_argument("--train", nargs="+", required=True, help="click logs, plain or compressed in a format that Spark reads")
    parser.add_argument("--eval", nargs="*", default=[], help="click logs for evaluation")
    parser.add_argument("--out", required=True, help="folder on any file system that Spark writes to")
    parser.add_argument("--min-count", type=int, default=1, help="values that occur less often in the training rows share the id 1")
    parser.add_argument("--modulo", type=int, default=0, help="first take values modulo this number; 0: values as they are")
    parser.add_argument("--fill", default="0", help="value of missing dense values")
    parser.add_argument("--log", action="store_true", help="dense values become ln(1 + max(v, 0))")
    parser.add_argument("--normalize", choices=["none", "minmax", "standard"], default="none")
    parser.add_argument("--files", type=int, default=16, help="number of Parquet files of each set; at least one for each device that trains")
    options = parser.parse_args()
    if not math.isfinite(float(options.fill)) or options.files < 1 or options.min_count < 1 or options.modulo < 0:
        parser.error("--fill must be a number, --files and --min-count at least 1, --modulo not negative")

    written = [os.path.realpath(f"{options.out}/{name}") for name in ("train", "val")]
    for path in options.train + options.eval:
        if any(os.path.realpath(path) == out or os.path.realpath(path).startswith(out + os.sep) for out in written):
            parser.error(f"'{path}' lies in a folder that is written to: it would be replaced; name another --out")

    spark = SparkSession.builder.appName("criteo_to_parquet").getOrCreate()
    train = with_modulo(read_rows(spark, options.train), options.modulo)
    vocabularies = vocabularies_of(train, options.min_count)
    sizes = [vocabularies[column][1] for column in CATEGORIES]
    scaled = scaling(train, options)
    told = {"schema": 1, "format": "Parquet", "slot_size_array": sizes}
    told["train"] = {"rows": write_set(spark, train, f"{options.out}/train", scaled, vocabularies, options.files)}
    if options.eval:
        held = with_modulo(read_rows(spark, options.eval), options.modulo)
        told["eval"] = {"rows": write_set(spark, held, f"{options.out}/val", scaled, vocabularies, options.files)}
    Folder(spark, options.out).write("preprocess.json", json.dumps(told, indent=1) + "\n")
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main()
