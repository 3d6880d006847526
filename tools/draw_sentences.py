#!/usr/bin/env python3
"""Draws random comments, messages, paragraphs and pages of the tree for a readability check.

    tools/draw_sentences.py --seed 1                                      # 100 comments, 60 messages, 40 paragraphs
    tools/draw_sentences.py --seed 2 --comments 20 --messages 0 --paragraphs 0 --pages 5
    tools/draw_sentences.py --seed 2 --under src/ops --under tools --paragraphs 0

Equal seeds draw equal items from an unchanged tree. Mark each item that you had to read twice; the aim is 5 in 100.
"""
import argparse
import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".cu", ".cuh"}
HASH = {".py", ".sh", ".cmake", ".txt"}
NOT_OURS = ("test/fuzz/corpus/", "docs/config.md", "docs/layers.md")


def files(under=()):
    """The tracked and new files of the tree, sorted, without generated files."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                            check=True).stdout.split("\n")
    chosen = {f for f in listed if f and not f.startswith(NOT_OURS) and (ROOT / f).is_file()}
    return sorted(f for f in chosen if not under or f.startswith(tuple(under)))


def comment_of(line, marker):
    """The text of the comment in one line of code, or None. A marker inside a string does not count."""
    inside, i = None, 0
    while i < len(line):
        if inside:
            if line[i] == "\\":
                i += 1  # skips the escaped character
            elif line[i] == inside:
                inside = None
        elif line.startswith(marker, i):
            return line[i + len(marker):].lstrip("/!< ").strip()
        elif line[i] in "\"'" and not (line[i] == "'" and i and line[i - 1].isalnum()):
            inside = line[i]
        i += 1
    return None


def comments(name, lines):
    """Yields (line number, text) for each comment; comments on successive lines are one, as are docstrings."""
    suffix = pathlib.Path(name).suffix
    marker = "//" if suffix in CODE else "#" if suffix in HASH or name.startswith(".ci/") else None
    if marker is None or name.endswith("requirements.txt"):
        return
    start, parts, docstring, literal = 0, [], False, False
    for number, line in enumerate(lines + [""], 1):
        text = None
        opens = line.strip().startswith('"""')
        if suffix == ".py" and not docstring and (literal or not opens and '"""' in line):  # a string that is no docstring
            literal ^= line.count('"""') == 1
        elif suffix == ".py" and (docstring or opens):
            text = line.strip().removeprefix('"""').removesuffix('"""').strip()
            docstring = line.count('"""') == (0 if docstring else 1)
        elif not line.startswith("#!"):
            text = comment_of(line, marker)
        alone = text is not None and (docstring or line.strip().startswith((marker, '"""')))
        if parts and not (alone and text):
            yield start, " ".join(parts)
            parts = []
        if text:
            start = start if parts else number
            parts.append(text)
            if not alone:
                yield start, " ".join(parts)
                parts = []


def messages(name, lines):
    """Yields (line number, text) for string literals of at least four words; adjacent literals are one."""
    if pathlib.Path(name).suffix not in CODE or not name.startswith(("src/", "tools/", "include/")):
        return
    text = "\n".join(lines)
    literal = r'"(?:[^"\\\n]|\\.)*"'
    for found in re.finditer(rf"{literal}(?:\s*{literal})*", text):
        said = "".join(part[1:-1] for part in re.findall(literal, found.group()))
        if len(re.findall(r"[A-Za-z]{2,}", said)) >= 4:
            yield text.count("\n", 0, found.start()) + 1, said


def paragraphs(name, lines):
    """Yields (line number, text) for the paragraphs, list items and rows of tables of a Markdown page."""
    if not name.endswith(".md"):
        return
    fenced, start, parts = False, 0, []
    for number, line in enumerate(lines + [""], 1):
        fence = line.lstrip().startswith("```")
        breaks = fence or fenced or not line.strip() or line.startswith(("#", "|", "![")) or re.match(r"\s*([-*]|\d+\.) ", line)
        fenced ^= fence
        if parts and breaks:
            yield start, " ".join(parts)
            parts = []
        if line.startswith("|") and re.search("[a-z]", line) and not fenced:
            yield number, line
        elif not fence and not fenced and line.strip() and not line.startswith(("#", "|", "![")):
            start = start if parts else number
            parts.append(line.strip())


KINDS = {"comments": comments, "messages": messages, "paragraphs": paragraphs}


def items(kind, under=()):
    """All items of a kind: (file, line number, text)."""
    found = []
    for name in files(under):
        try:
            lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError:
            continue
        found += [(name, number, text) for number, text in KINDS[kind](name, lines) if len(text.split()) > 2]
    return found


def code_of(name, number):
    """The line of code that a comment belongs to: its own, or the next line that is not a comment; of a docstring the
    line above it."""
    marker = "//" if pathlib.Path(name).suffix in CODE else "#"
    lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
    if name.endswith(".py") and comment_of(lines[number - 1], marker) is None:
        return next((line.strip() for line in reversed(lines[:number]) if line.strip().startswith(("def ", "class "))), "")
    return next((line.strip() for line in lines[number - 1:] if line.strip() and not line.strip().startswith(marker)), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True, help="equal seeds draw equal items")
    parser.add_argument("--comments", type=int, default=100)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--paragraphs", type=int, default=40)
    parser.add_argument("--pages", type=int, default=0, help="whole pages, by name")
    parser.add_argument("--under", action="append", default=[], help="only files below this folder; may be repeated")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    for kind in KINDS:
        drawn = items(kind, given.under)
        for place, (name, number, text) in enumerate(draw.sample(drawn, min(getattr(given, kind), len(drawn))), 1):
            print(f"{kind[:-1]} {place}  {name}:{number}\n    {text}")
            if kind == "comments":
                print(f"        {code_of(name, number)}")
    pages = [name for name in files(given.under) if name.endswith(".md")]
    for name in draw.sample(pages, min(given.pages, len(pages))):
        print(f"page  {name}")


if __name__ == "__main__":
    main()
