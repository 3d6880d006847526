"""Runs a few steps of the scripts in samples/pytorch and of tools/bench/compare_torchrec.py."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import support

support.need("torch")
ROOT = Path(__file__).resolve().parents[2]


class Samples(unittest.TestCase):
    def run_script(self, script, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, "-W", "ignore", str(ROOT / script), *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout

    def test_dlrm_with_either_library(self):
        try:
            import torchrec  # noqa: F401

            libraries = ("huge_ctr", "torchrec")
        except ImportError:
            libraries = ("huge_ctr",)
        found = []
        for library in libraries:
            said = self.run_script("samples/pytorch/dlrm.py", "--library", library, "--steps", "60", "--batch", "256")
            found.append(float(re.search(r"AUC ([\d.]+)", said)[1]))
        self.assertGreater(found[0], 0.8)
        self.assertLess(abs(found[0] - found[-1]), 0.02)

    def test_din(self):
        said = self.run_script("samples/pytorch/din.py", "--steps", "200", "--batch", "256")
        self.assertGreater(float(re.search(r"AUC ([\d.]+)", said)[1]), 0.7)

    def test_the_comparison_with_torchrec(self):
        said = self.run_script(
            "tools/bench/compare_torchrec.py",
            *("--device", "cpu", "--only", "small", "model", "--optimizers", "sgd", "--groups", "1"),
        )
        self.assertRegex(said, r"\| 26 tables, 256 \| 6,656 \| sgd \| [\d.]+ \| [\d.]+ \|")
        self.assertRegex(said, r"\| its dense part alone \| [\d,]+ \| sgd \| [\d.]+ \|")


if __name__ == "__main__":
    unittest.main()
