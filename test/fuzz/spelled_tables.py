"""Random tables: columns with values of one kind, and their config fields."""

import datetime
from dataclasses import dataclass, field

ODD_TEXTS = [
    "a,b",
    'say "x"',
    "two\nlines",
    "tab\there",
    " ahead",
    "behind ",
    "ä",
    "漢字",
    "x|y",
    "semi;colon",
    "it's",
    "\\n",
    "NA",
    "null",
    "?",
    "17.0",
    "007",
    "1e3",
    "-0",
    "#1",
    "a::b",
    "=1+1",
    "\u00a0",
    "\ufeffx",
    "\\",
    "end\\",
    "{}",
    "[1]",
]


@dataclass
class Column:
    name: str
    kind: str  # int, float, text, bool, date
    values: list  # None where a value is missing; lists in a list column
    role: str  # label, dense, slot
    group: dict = field(default_factory=dict)  # further config fields of the column
    is_list: bool = False

    @property
    def longest(self):
        return max([1] + [len(value) for value in self.values if self.is_list and value])

    def present(self):
        """All values that are not missing. A list contributes its items."""
        for value in self.values:
            yield from (value or []) if self.is_list else [] if value is None else [value]


@dataclass
class Table:
    label: Column
    dense: list
    slots: list
    missing: list  # texts that count as missing
    trim: bool
    hash_seed: int

    def columns(self):
        return [self.label, *self.dense, *self.slots]

    def rows(self):
        return len(self.label.values)


def random_int(rng, keys=False):
    size = rng.choice([2, 10, 1000, 1 << 31, 1 << 53, 1 << 62])
    return rng.randrange(size) if keys else rng.choice([rng.randrange(size), -rng.randrange(size), size, size + 1])


def random_float(rng):
    return rng.choice(
        [
            lambda: round(rng.uniform(-100, 100), rng.randrange(4)),
            lambda: float(rng.randrange(100)),
            lambda: rng.gauss(0, 1) * 10.0 ** rng.randrange(-9, 10),
            lambda: rng.choice([0.0, -0.0, 1e15, 0.1, 1 / 3, 123456789.125]),
        ]
    )()


def random_text(rng, trim):
    text = rng.choice(
        [
            rng.choice(ODD_TEXTS),
            f"v{rng.randrange(9)}",
            "".join(rng.choice("ab ,;|'\"é7") for _ in range(rng.randrange(1, 12))),
        ]
    )
    return text.strip(" \t") or "x" if trim else text


def random_value(rng, kind, trim):
    if kind == "int":
        return random_int(rng)
    if kind == "key":
        return random_int(rng, True)
    if kind == "float":
        return random_float(rng)
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "date":
        return datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randrange(40))
    return random_text(rng, trim)


def random_values(rng, kind, rows, trim):
    """Values of a column, some missing. There are few distinct values, so that evaluation keys occur in training."""
    some = [random_value(rng, kind, trim) for _ in range(rng.choice([1, 3, 8, rows]))]
    missing = rng.choice([0, 0, 0.2, 1 if rng.random() < 0.1 else 0.5])
    return [None if rng.random() < missing else rng.choice(some) for _ in range(rows)]


def random_label(rng, rows):
    values = [rng.randrange(2) for _ in range(rows)]
    values[:2] = [0, 1]
    kind = rng.choice(["numbers", "texts", "at_least"])
    if kind == "texts":
        return Column("y", "text", [["no, thanks", "yes"][v] for v in values], "label", {"positive": "yes"})
    if kind == "at_least":
        return Column(
            "y",
            "int",
            [rng.randrange(3, 6) if v else rng.randrange(3) for v in values],
            "label",
            {"positive": {"at_least": 3}},
        )
    return Column("y", "int", values, "label")


def random_dense(rng, name, rows, trim):
    kind = rng.choice(["int", "float", "float", "bool"])
    group = {"transform": rng.choice(["none", "log", "standardize", ["log", "standardize"]])}
    column = Column(name, kind, random_values(rng, kind, rows, trim), "dense", group)
    learned = "standardize" in group["transform"]
    if learned and rng.random() < 0.4:
        group.update({"mean": [1.5], "std": [20]})
    elif learned and len(set(column.present())) < 2:
        group["transform"] = "none"  # standardize needs two distinct values
    # A missing value in a Parquet file needs a default. In a text file the default is 0.
    if "mean" in group or "standardize" not in group["transform"] or rng.random() < 0.3:
        group["default"] = rng.choice([0, -1, 2.5])
    return column


def random_slot(rng, name, rows, trim, is_list):
    keys = rng.choice(["hash", "hash", "hash", "number", "vocabulary"])
    kind = "key" if keys == "number" else rng.choice(["int", "text", "text", "bool", "date"])
    column = Column(name, kind, random_values(rng, kind, rows, trim), "slot", {"keys": keys}, is_list)
    if keys == "hash" and rng.random() < 0.5:
        column.group["buckets"] = rng.choice([1, 7, 100000])
    column.group["default"] = "" if is_list or keys == "number" or rng.random() < 0.5 else rng.choice(["none", "7"])
    if is_list:
        some = [v for v in column.values if v is not None] or [random_value(rng, kind, trim)]
        column.values = [
            None if v is None else [rng.choice(some) for _ in range(rng.randrange(4))] for v in column.values
        ]
    if kind == "key":
        column.kind = "int"
    if kind == "text" and keys == "hash" and rng.random() < 0.3:
        del column.group["keys"]  # texts are hashed by default
    return column


def random_table(rng):
    rows, trim = rng.choice([8, 20, 60]), rng.random() < 0.3
    label = random_label(rng, rows)
    names = [f"{odd}{i}" for i, odd in enumerate(rng.sample(["c", "größe ", "a b", 'q"', "x,y", "D"], 6))] + [
        "c6",
        "c7",
    ]
    dense = [random_dense(rng, names.pop(), rows, trim) for _ in range(rng.randrange(4))]
    slots = [
        random_slot(rng, names.pop(), rows, trim, rng.random() < 0.3)
        for _ in range(rng.randrange(0 if dense else 1, 5))
    ]
    if trim:
        for column in dense + slots:
            column.name = column.name.strip()
    share_keys(rng, slots)
    missing = rng.sample(["NA", "?", "-"], rng.randrange(3))
    return Table(label, dense, slots, missing, trim, rng.choice([0, 0, 7]))


def share_keys(rng, slots):
    """Makes some slots with equal "keys" rules share one key space."""
    alike = [slot for slot in slots if slot.group.get("keys") == "hash" and "buckets" not in slot.group]
    if len(alike) > 1 and rng.random() < 0.5:
        for slot in alike:
            slot.group["key_space"] = "s"
