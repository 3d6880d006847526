#!/usr/bin/env python3
"""Converts MovieLens to one table: a row per rating, with the attributes of its user and its movie. Click: a rating of
4 or 5.

    prepare.py FOLDER OUT.csv

FOLDER is GroupLens' unpacked ml-100k or ml-1m; its files may be gzipped. For ml-1m, files ratings_fold<n>.csv with
user,movie,rating also work. Needs only the standard library.
"""
import csv
import glob
import gzip
import os
import re
import sys


def lines(folder, name, encoding="latin-1"):
    """The lines of FOLDER/name or FOLDER/name.gz."""
    path = os.path.join(folder, name)
    opened = open(path, encoding=encoding) if os.path.exists(path) else gzip.open(path + ".gz", "rt", encoding=encoding)
    with opened as text:
        for line in text:
            if line.strip():
                yield line.rstrip("\r\n")


def has(folder, name):
    return any(os.path.exists(os.path.join(folder, name + ending)) for ending in ("", ".gz"))


def year_of(title):
    found = re.search(r"\((\d{4})\)", title)
    return found.group(1) if found else ""


def read_100k(folder):
    genres = [line.split("|")[0] for line in lines(folder, "u.genre")]
    users, movies = {}, {}
    for line in lines(folder, "u.user"):
        user, age, gender, occupation, _ = line.split("|")
        users[user] = (age, gender, occupation)
    for line in lines(folder, "u.item"):
        fields = line.split("|")
        movies[fields[0]] = (year_of(fields[1]), "|".join(name for name, flag in zip(genres, fields[5:]) if flag == "1"))
    ratings = (line.split("\t")[:3] for line in lines(folder, "u.data"))
    return users, movies, ratings


def read_1m(folder):
    users, movies = {}, {}
    for line in lines(folder, "users.dat"):
        user, gender, age, occupation, _ = line.split("::")
        users[user] = (age, gender, occupation)
    for line in lines(folder, "movies.dat", "utf-8" if not has(folder, "ratings.dat") else "latin-1"):
        movie, title, genres = line.split("::")
        movies[movie] = (year_of(title), genres)
    if has(folder, "ratings.dat"):
        return users, movies, (line.split("::")[:3] for line in lines(folder, "ratings.dat"))
    folds = sorted({path.removesuffix(".gz") for path in glob.glob(os.path.join(folder, "ratings_fold*.csv*"))})
    return users, movies, (line.split(",") for fold in folds for line in lines(folder, os.path.basename(fold)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = sys.argv[1:]
    if not has(folder, "u.data") and not has(folder, "users.dat"):
        sys.exit(f"{folder} holds neither u.data (ml-100k) nor users.dat (ml-1m)")
    users, movies, ratings = read_100k(folder) if has(folder, "u.data") else read_1m(folder)
    part, rows = f"{out}.part", 0
    with open(part, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["click", "age", "year", "user", "movie", "gender", "occupation", "genres"])
        for user, movie, rating in ratings:
            age, gender, occupation = users[user]
            year, genres = movies[movie]
            table.writerow([int(int(rating) >= 4), age, year, user, movie, gender, occupation, genres])
            rows += 1
    os.replace(part, out)
    print(f"{rows} ratings of {len(users)} users and {len(movies)} movies")


if __name__ == "__main__":
    main()
