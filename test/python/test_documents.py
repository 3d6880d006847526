"""The Python code of the documents runs, page by page, block after block."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

ROOT = Path(__file__).resolve().parents[2]
CLICKS = """import itertools
with open("clicks.csv", "w") as file:
    print("city,price,clicked", file=file)
    for i in range(1, 2001):
        print(f"city{i % 7},{i * 37 % 101},{int((i % 7 < 3) + (i * 37 % 101 < 60) > (i % 5 < 4))}", file=file)
"""


class Documents(unittest.TestCase):
    def run_page(self, page, before=""):
        if page != "docs/pytorch.md":
            support.need("pandas")
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 0)
        if "sklearn" in "".join(blocks):
            support.need("sklearn")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", before + "\n".join(blocks)],
                cwd=folder,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_no_other_page_has_python(self):
        pages = [
            *ROOT.glob("*.md"),
            *(path for folder in ("docs", "samples") for path in (ROOT / folder).rglob("*.md")),
        ]
        found = {str(page.relative_to(ROOT)) for page in pages if "```python\n" in page.read_text()}
        self.assertEqual(found, {"README.md", "docs/python.md", "docs/from_lightgbm.md", "docs/parameter_server.md", "docs/pytorch.md"})

    def test_parameter_server(self):
        self.assertIn("'updated_rows': 1", self.run_page("docs/parameter_server.md"))

    def test_readme(self):
        self.assertIn("AUC", self.run_page("README.md", CLICKS))

    def test_python(self):
        said = self.run_page("docs/python.md")
        self.assertIn("'AverageLoss'", said)
        self.assertIn("(2, 17)", said)

    def test_pytorch(self):
        support.need("torch")
        self.assertIn("torch.Size([2, 8]) 2", self.run_page("docs/pytorch.md"))

    def test_from_lightgbm(self):
        self.assertIn("'user'", self.run_page("docs/from_lightgbm.md"))


if __name__ == "__main__":
    unittest.main()
