"""Runs the notebooks of samples/python, cell by cell, and compares their output."""

import ast
import contextlib
import io
import json
import os
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

import support

NOTEBOOKS = Path(__file__).resolve().parents[2] / "samples/python"


def shown_by(cell, names):
    """The output below a notebook cell: printed text, and the picture or text of its last expression."""
    tree = ast.parse(cell)
    is_value = tree.body and isinstance(tree.body[-1], ast.Expr)
    last = ast.Expression(tree.body.pop().value) if is_value else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(last, "cell", "eval"), names) if last is not None else None
    page = value._repr_html_() if hasattr(value, "_repr_html_") else ""
    return printed.getvalue() + ("" if value is None else repr(value)), page


class Notebooks(unittest.TestCase):
    def shown(self, name):
        support.need("pandas")
        cells = json.loads((NOTEBOOKS / name).read_text())["cells"]
        names, texts, pages, before = {"__name__": "__main__"}, [], [], os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for cell in cells:
                    if cell["cell_type"] == "code":
                        self.assertIsNotNone(cell["execution_count"])
                        text, page = shown_by("".join(cell["source"]), names)
                        texts.append(text)
                        pages.append(page)
            finally:
                os.chdir(before)
        return "\n".join(texts), "".join(pages)

    def expect_pictures(self, page, count):
        pictures = [part.partition("</svg>")[0] + "</svg>" for part in page.split("<svg")[1:]]
        self.assertEqual(len(pictures), count)
        for picture in pictures:
            xml.dom.minidom.parseString("<svg" + picture)

    def test_own_data(self):
        text, page = self.shown("own_data.ipynb")
        for part in ("price: number, by its logarithm", "'AUC': 0.7", "user_id    AUC loses 0.", "True"):
            self.assertIn(part, text)
        self.expect_pictures(page, 4)

    def test_embeddings(self):
        text, page = self.shown("embeddings.ipynb")
        self.assertIn("of groups [0, 0, 0, 0, 0, 0]", text)
        self.expect_pictures(page, 3)


if __name__ == "__main__":
    unittest.main()
