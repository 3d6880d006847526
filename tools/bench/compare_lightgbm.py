#!/usr/bin/env python3
"""Trains on raw tables with LightGBM and with huge_ctr, and prints the AUC of both on the same rows.

    tools/bench/compare_lightgbm.py build/cpu/bin DATA --sets adult ml-100k criteo

Every data set becomes one table. A fifth of its rows, drawn with a fixed seed, is hidden from both programs until
scoring. huge_ctr runs three commands without hand edits: --init, --train, --predict; --init holds out a tenth of its
rows to choose the best evaluation. LightGBM runs LGBMClassifier with its defaults, and with texts as pandas categories.
The time of huge_ctr covers its three commands, and the time of LightGBM covers reading, fitting and scoring. Neither
includes writing the tables.

Python needs lightgbm, numpy, pandas and scikit-learn. The data folder has adult/adult.data.gz and adult.test.gz,
ml-100k/u.data.gz, u.user.gz, u.item.gz and u.genre, and criteo_kaggle_sample.tsv.gz, as published.
"""
import argparse
import gzip
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import pandas
from lightgbm import LGBMClassifier
from sklearn.metrics import roc_auc_score

SEED = 7
ADULT = ("age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain capital-loss "
         "hours-per-week native-country income").split()


class Table:
    """The lines of a table, and the arguments that name the label for both programs."""

    def __init__(self, lines, header, separator, label, positive, is_positive):
        self.lines, self.header, self.separator = lines, header, separator
        self.label, self.positive, self.is_positive = label, positive, is_positive


def adult(data):
    """Reads adult as published: cells surrounded by blanks, "?" for missing values, a text label. Removes the full
    stops of the test part.
    """
    lines = []
    for part in ("data", "test"):
        lines += read_lines(data / f"adult/adult.{part}.gz")
    lines = [line.rstrip(".") for line in lines if line]
    return Table(lines, ", ".join(ADULT), ",", "income", ">50K", lambda label: label == ">50K")


def ml_100k(data):
    """Reads ratings with the attributes of user and movie; the genres are a list."""
    genres = [line.split("|")[0] for line in (data / "ml-100k/u.genre").read_text().splitlines() if "|" in line]
    users = {cells[0]: cells[1:] for cells in (line.split("|") for line in read_lines(data / "ml-100k/u.user.gz"))}
    movies = {}
    for cells in (line.split("|") for line in read_lines(data / "ml-100k/u.item.gz")):
        flags = "|".join(genre for genre, flag in zip(genres, cells[5:]) if flag == "1")
        movies[cells[0]] = ['"' + cells[1].replace('"', '""') + '"', cells[2], flags]
    lines = []
    for user, movie, rating, seconds in (line.split("\t") for line in read_lines(data / "ml-100k/u.data.gz")):
        lines.append(",".join([user, movie, seconds, *users[user], *movies[movie], rating]))
    return Table(lines, "user,item,time,age,gender,occupation,zip,title,release,genres,rating", ",", "rating", "4", lambda label: label >= 4)


def criteo(data):
    """Reads a tab-separated file without a header."""
    return Table(read_lines(data / "criteo_kaggle_sample.tsv.gz"), None, "\t", "1", None, lambda label: label == 1)


SETS = {"adult": adult, "ml-100k": ml_100k, "criteo": criteo}


def read_lines(path):
    return gzip.decompress(path.read_bytes()).decode("latin-1").splitlines()


def write(path, table, lines):
    path.write_text("\n".join(([table.header] if table.header else []) + lines) + "\n")


def read(path, table):
    """Returns features and labels in the usual form for LightGBM."""
    rows = pandas.read_csv(path, sep=table.separator, header=0 if table.header else None, skipinitialspace=True, na_values=["?"])
    label = rows.columns[0] if table.header is None else table.label
    return rows.drop(columns=label), table.is_positive(rows[label]).astype(int)


def with_categories(train, test):
    for column in train.columns:
        if not pandas.api.types.is_numeric_dtype(train[column]):
            train[column] = train[column].astype("category")
            known = test[column].where(test[column].isin(train[column].cat.categories))
            test[column] = known.astype(train[column].dtype)
    return train, test


def lightgbm(folder, table, threads):
    """Returns the scores of the test rows, their labels, and seconds."""
    start = time.time()
    train, labels = read(folder / "train.csv", table)
    test, truth = read(folder / "test.csv", table)
    train, test = with_categories(train, test)
    train.columns = test.columns = [f"c{i}" for i in range(train.shape[1])]
    scores = LGBMClassifier(n_jobs=threads, verbose=-1).fit(train, labels).predict_proba(test)[:, 1]
    return scores, truth, time.time() - start


def run(command, folder):
    done = subprocess.run([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with code {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def ours(folder, table, program, template, show):
    """Returns the scores of the test rows, seconds, and commands."""
    start = time.time()
    init = [program, "--init", "train.csv", "--label", table.label, "--template", template, "--out", "config.json"]
    commands = [init + (["--positive", table.positive] if table.positive else []),
                [program, "--train", "config.json", "--run-dir", "run"],
                [program, "--predict", "config.json", "--model", "run", "--data", "test.csv", "--out", "scores.csv"]]
    said = [run(command, folder) for command in commands]
    seconds = time.time() - start
    if show:
        print("\n".join(said))
    return pandas.read_csv(folder / "scores.csv")["score"].to_numpy(), seconds, len(commands)


def compare(name, given):
    table = SETS[name](given.data)
    held_out = numpy.random.RandomState(SEED).rand(len(table.lines)) < 0.2
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write(folder / "train.csv", table, [line for line, out in zip(table.lines, held_out) if not out])
        write(folder / "test.csv", table, [line for line, out in zip(table.lines, held_out) if out])
        theirs, truth, their_seconds = lightgbm(folder, table, given.threads)
        print(f"{name}: {len(table.lines)} rows, {int(held_out.sum())} held out")
        print(f"  LightGBM          AUC {roc_auc_score(truth, theirs):.4f}  {their_seconds:5.1f} s", flush=True)
        for template in given.templates:
            for file in folder.glob("config*"):
                file.unlink()
            scores, seconds, commands = ours(folder, table, given.programs.resolve() / "huge_ctr", template, given.show)
            print(f"  huge_ctr {template:7}  AUC {roc_auc_score(truth, scores):.4f}  {seconds:5.1f} s  {commands} commands", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path, help="the folder of huge_ctr")
    parser.add_argument("data", type=pathlib.Path, help="the folder of the data sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--templates", nargs="+", default=["wdl"], choices=["wdl", "deepfm", "dcn", "dlrm", "din"])
    parser.add_argument("--threads", type=int, default=2, help="threads of LightGBM")
    parser.add_argument("--show", action="store_true", help="print the output of huge_ctr")
    given = parser.parse_args()
    for name in given.sets:
        compare(name, given)


if __name__ == "__main__":
    main()
