"""Spellings of a table: files with its values, and the config section that reads them."""

import copy
import datetime
import gzip
import math
import struct
from dataclasses import dataclass, field

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


@dataclass
class Spelling:
    name: str
    format: str
    file: str
    section: dict
    must: bool = True  # reading must succeed
    altered: list = field(default_factory=list)  # columns with values that a reader may interpret differently


def text_of(value, kind):
    if kind == "bool":
        return str(int(value))
    return repr(value) if kind == "float" else str(value)


def section_of(table, lists, vocabulary):
    """Config fields shared by csv and parquet. `lists`: the list separator. `vocabulary`: writes a vocabulary file."""
    section = {"labels": [{"column": table.label.name, **table.label.group}], "dense": [], "slots": []}
    for column in table.dense:
        section["dense"].append({"columns": [column.name], **column.group})
    for number, column in enumerate(table.slots):
        group = {"columns": [column.name], **column.group}
        if column.is_list and lists:
            group["separator"] = lists
        if group.get("keys") == "vocabulary":
            texts = sorted({text_of(value, column.kind) for value in column.present()})
            group["vocabulary"] = vocabulary(number, texts[: len(texts) * 3 // 4 + 1] or ["x"])
        section["slots"].append(group)
    section.update({"hash_seed": table.hash_seed, "trim": table.trim, "missing": table.missing})
    return section


# ---- Texts -----------------------------------------------------------------------------------------------------------


@dataclass
class Dialect:
    delimiter: str = ","
    quote: str = '"'
    all_quoted: bool = False
    line_end: str = "\n"
    bom: bool = False
    header: bool = True
    shuffled: bool = False  # columns in another order, plus an unused column
    blanks: bool = False  # blanks around cells, if the reader trims cells
    marks: bool = False  # missing values written as marker texts
    parts: int = 1  # number of files
    pack: str = ""  # gz or zst; empty: not compressed
    number: str = ""  # the notation of numbers

    def cell(self, text, trim):
        special = [*self.delimiter, "\n", "\r"] + ([self.quote] if self.quote else [])
        needs = any(part in text for part in special) or (trim and self.quote and text != text.strip(" \t"))
        if not needs and not (self.all_quoted and self.quote):
            return text
        if not self.quote:
            raise ValueError("cannot be written without quotes")
        return self.quote + text.replace(self.quote, 2 * self.quote) + self.quote


def written_number(value, kind, how):
    """The same number in another notation; None if there is no other notation."""
    if kind == "bool":
        value, kind = int(value), "int"
    if how == "long":
        return f"{value:.17g}" if kind == "float" else f"{value}.0"
    if how == "exponent":
        return f"{value:.17e}" if kind == "float" else f"{value}e0"
    if how == "blanks":
        return f" {text_of(value, kind)}\t"
    if how == "padded":
        sign, digits = ("-", text_of(value, kind)[1:]) if text_of(value, kind)[0] == "-" else ("", text_of(value, kind))
        return f"{sign}00{digits}"
    return f"+{text_of(value, kind)}" if math.copysign(1, value) > 0 else text_of(value, kind)


def dialects(rng):
    """A list of dialects as (name, dialect, whether reading must succeed)."""
    pick = lambda **more: Dialect(delimiter=rng.choice([",", "\t", ";"]), line_end=rng.choice(["\n", "\r\n"]), **more)
    return [
        ("plain", Dialect(), True),
        ("tabs", Dialect("\t", line_end="\r\n"), True),
        ("bom", pick(bom=True, shuffled=True), True),
        ("quoted", pick(all_quoted=True, quote=rng.choice(['"', "'"])), True),
        ("no_quotes", Dialect(rng.choice(["\t", ";", "^"]), quote=""), True),
        ("many", Dialect(rng.choice(["::", "||", ",,"]), quote=""), True),
        ("no_header", pick(header=False), True),
        ("packed", pick(pack="zst" if pyarrow and rng.random() < 0.5 else "gz", shuffled=True), True),
        ("parts", pick(parts=2, blanks=True, marks=True, shuffled=True), True),
        *((how, pick(number=how), False) for how in ("long", "exponent", "padded", "plus", "blanks")),
    ]


def packed(data, pack):
    """The data, compressed by `pack`; gzip data has two members."""
    if pack == "gz":
        return gzip.compress(data[:100]) + gzip.compress(data[100:])
    return pyarrow.compress(data, "zstd", asbytes=True) if pack == "zst" else data


def cells_of(table, column, dialect, rng, number):
    """The cell texts of a column, without quotes."""
    cells = []
    for value in column.values:
        if value is None or value == []:
            cells.append(rng.choice(["", *table.missing]) if dialect.marks else "")
        elif column.is_list:
            texts = [text_of(item, column.kind) for item in value]
            if any("|" in text or not text for text in texts):
                raise ValueError("cannot be written as a list")
            blank = " " if dialect.blanks and table.trim else ""
            cells.append(f"{blank}|{blank}".join(texts))
        else:
            cells.append(written_number(value, column.kind, number) if number else text_of(value, column.kind))
    return cells


def write_text(table, dialect, name, rng, folder):
    """Writes the files. Returns the path to read, the column names, and the altered columns."""
    columns, altered = [], []
    for column in table.columns():
        number = dialect.number if column.kind in ("int", "float", "bool") and not column.is_list else ""
        if number == "blanks" and table.trim:
            number = ""  # trimming removes the blanks, so they are no other notation
        if number and (column.role == "slot" or column.role == "label" and "positive" in column.group):
            altered.append(column.name)
        columns.append([column.name] + cells_of(table, column, dialect, rng, number))
    if dialect.shuffled:
        columns.insert(0, ["unused"] + ["x, y" if dialect.quote and not dialect.all_quoted else "z"] * table.rows())
        rng.shuffle(columns)

    def line(cells):
        written = [dialect.cell(cell, table.trim) for cell in cells]
        if dialect.blanks and table.trim:
            written = [
                rng.choice(["", " ", "\t" if dialect.delimiter != "\t" else " "]) + cell + " " for cell in written
            ]
        return dialect.delimiter.join(written) + dialect.line_end

    rows = [line(row) for row in zip(*(column[1:] for column in columns))]
    header = line([column[0] for column in columns]) if dialect.header else ""
    files = []
    for part in range(dialect.parts):
        text = header + "".join(rows[len(rows) * part // dialect.parts : len(rows) * (part + 1) // dialect.parts])
        data = (b"\xef\xbb\xbf" if dialect.bom else b"") + text.encode()
        files.append(f"{name}{part}.csv")
        (folder / files[-1]).write_bytes(packed(data, dialect.pack))
    if len(files) > 1:
        (folder / f"{name}.list").write_text("\n".join([str(len(files)), *files]) + "\n")
        files = [f"{name}.list"]
    return files[0], [column[0] for column in columns], altered


def text_spellings(table, rng, folder):
    found = []
    for name, dialect, must in dialects(rng):

        def vocabulary(number, texts, dialect=dialect, name=name):
            (folder / f"{name}_{number}.vocabulary").write_text(
                "".join(dialect.cell(text, table.trim) + "\n" for text in texts), newline=""
            )
            return f"{name}_{number}.vocabulary"

        try:
            file, columns, altered = write_text(table, dialect, name, rng, folder)
            section = section_of(table, "|", vocabulary)
        except ValueError:
            continue
        section["delimiter"] = dialect.delimiter
        if len(dialect.delimiter) == 1 and dialect.quote != '"':
            section["quote"] = dialect.quote
        if not dialect.header:
            section.update({"header": False, "columns": columns})
        found.append(Spelling(name, "Csv", file, section, must, altered))
    return found


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def as_double(value, kind):
    double = float(value)
    if kind in ("int", "bool") and int(double) != int(value):
        raise ValueError("is no double")
    return double


def as_single(value, kind):
    single = struct.unpack("f", struct.pack("f", as_double(value, kind)))[0]
    if single != value:
        raise ValueError("is no float")
    return single


def as_decimal(value, kind):
    import decimal

    return decimal.Decimal(text_of(value, kind))


def as_date_time(value, kind):
    return datetime.datetime(value.year, value.month, value.day)


def types_of(column):
    """Two lists of pairs (Arrow type, conversion of values): types that must be readable, and types that may fail."""
    kind, text = column.kind, (pyarrow.string(), text_of)
    types = {
        "int": [
            (pyarrow.int64(), lambda v, _: v),
            (pyarrow.int32(), lambda v, _: v),
            (pyarrow.int8(), lambda v, _: v),
            (pyarrow.uint64(), lambda v, _: v),
            (pyarrow.uint16(), lambda v, _: v),
        ],
        "bool": [(pyarrow.bool_(), lambda v, _: v), (pyarrow.uint8(), lambda v, _: int(v))],
        "float": [(pyarrow.float64(), lambda v, _: v), (pyarrow.float32(), as_single)],
        "text": [],
        "date": [],
    }[kind]
    may_fail = {
        "int": [
            (pyarrow.float64(), as_double),
            (pyarrow.float32(), as_single),
            (pyarrow.decimal128(20, 0), as_decimal),
        ],
        "bool": [(pyarrow.float64(), as_double)],
        "float": [(pyarrow.decimal128(38, 20), as_decimal)],
        "text": [
            (pyarrow.large_string(), text_of),
            (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), text_of),
            (pyarrow.binary(), lambda v, k: text_of(v, k).encode()),
        ],
        "date": [
            (pyarrow.date32(), lambda v, _: v),
            (pyarrow.timestamp("us"), as_date_time),
            (pyarrow.timestamp("ns"), as_date_time),
        ],
    }[kind]
    if not any(column.present()):
        may_fail = [*may_fail, (pyarrow.null(), lambda v, _: v)]
    return [(*made, True) for made in [*types, text]], [(*made, False) for made in may_fail]


def array_of(column, made):
    kind, make, _ = made
    one = lambda value: None if value is None else make(value, column.kind)
    values = [None if v is None else [one(i) for i in v] if column.is_list else one(v) for v in column.values]
    dictionary = pyarrow.types.is_dictionary(kind)
    array = pyarrow.array(
        values,
        (
            pyarrow.list_(kind.value_type if dictionary else kind)
            if column.is_list
            else kind.value_type if dictionary else kind
        ),
    )
    return array.dictionary_encode() if dictionary and not column.is_list else array


def write_parquet(table, name, rng, folder, certain, shuffled):
    """Writes a Parquet file, and returns whether reading it must succeed."""
    arrays, must = {}, True
    for column in table.columns():
        sure, unsure = types_of(column)
        choices = sure if certain else sure + unsure
        for made in rng.sample(choices, len(choices)):
            try:
                arrays[column.name] = array_of(column, made)
                must &= made[2]
                break
            except (ValueError, OverflowError, pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
                pass  # this type cannot represent the values
    names = list(arrays)
    if shuffled:
        rng.shuffle(names)
    rows = pyarrow.table({name: arrays[name] for name in names})
    pyarrow.parquet.write_table(
        rows,
        folder / f"{name}.parquet",
        row_group_size=rng.choice([3, 1000]),
        compression=rng.choice(["none", "snappy", "zstd"]),
        use_dictionary=rng.random() < 0.5,
    )
    return must


def parquet_spellings(table, rng, folder):
    if pyarrow is None:
        return []
    found = []
    for name, certain in (("parquet", True), ("types", True), ("other_types", False), ("more_types", False)):

        def vocabulary(number, texts, name=name):
            (folder / f"{name}_{number}.vocabulary").write_text(
                "".join(Dialect().cell(text, table.trim) + "\n" for text in texts), newline=""
            )
            return f"{name}_{number}.vocabulary"

        must = write_parquet(table, name, rng, folder, certain, name != "parquet")
        section = copy.deepcopy(section_of(table, "", vocabulary))
        for group in section["dense"]:
            if "default" not in group and not ("standardize" in group["transform"] and "mean" not in group):
                group["default"] = 0  # text files have this default
        found.append(Spelling(name, "Parquet", f"{name}.parquet", section, must))
    return found
