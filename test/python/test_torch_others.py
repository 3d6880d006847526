"""Tests of other projects: PyTorch's samples of its operators, and TorchRec's tests in $HCTR_TORCHREC_TESTS, if set."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

support.need("torch")
import huge_ctr.torch as hct  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
# Arguments of torch.nn.functional that modify rows during the lookup, or scale gradients by key counts.
LEFT_OUT = ("max_norm", "scale_grad_by_freq")


class Samples(unittest.TestCase):
    def samples(self, name):
        try:
            from torch.testing._internal.common_methods_invocations import op_db
        except ImportError as error:
            self.skipTest(f"PyTorch's samples need more packages: {error}")
        one = next(op for op in op_db if op.name == name)
        return list(one.sample_inputs("cpu", torch.float32, requires_grad=False))

    def run_samples(self, name, order, make, theirs):
        ran, left = 0, {}
        for sample in self.samples(name):
            words = dict(sample.kwargs)
            why = next((word for word in LEFT_OUT if words.get(word)), None)
            if why:
                left[why] = left.get(why, 0) + 1
                continue
            weight, keys = order((sample.input, *sample.args))
            want = theirs(keys, weight, words)
            found = make(keys, weight, words)
            self.assertEqual(found.shape, want.shape)
            self.assertEqual(found.dtype, want.dtype)
            if found.numel():
                self.assertLess(float((found - want).abs().max()), 1e-5 * float(want.abs().max()) + 1e-6, str(words))
            ran += 1
        print(f"{name}: {ran} samples as torch, left out: {left}")
        self.assertGreater(ran, 0)

    def test_embedding_bag(self):
        def make(keys, weight, words):
            weights, offsets = words.get("per_sample_weights"), words.get("offsets")
            names = ("mode", "include_last_offset", "padding_idx")
            bags = hct.EmbeddingBag.from_pretrained(weight, **{n: words[n] for n in names if n in words})
            return bags(keys, offsets, weights)

        self.run_samples(
            "nn.functional.embedding_bag",
            lambda pair: (pair[0], pair[1]),
            make,
            lambda keys, weight, words: torch.nn.functional.embedding_bag(keys, weight, **words),
        )

    def test_embedding(self):
        def make(keys, weight, words):
            return hct.Embedding.from_pretrained(weight, padding_idx=words.get("padding_idx"))(keys)

        self.run_samples(
            "nn.functional.embedding",
            lambda pair: (pair[1], pair[0]) if pair[0].dtype == torch.int64 else (pair[0], pair[1]),
            make,
            lambda keys, weight, words: torch.nn.functional.embedding(keys, weight, **words),
        )


class TorchRec(unittest.TestCase):
    def test_its_own_tests(self):
        folder = os.environ.get("HCTR_TORCHREC_TESTS")
        if not folder:
            self.skipTest("HCTR_TORCHREC_TESTS names no folder with torchrec/modules/tests")
        files = [Path(folder) / name for name in ("test_embedding_modules.py", "test_fused_embedding_modules.py")]
        shim = Path(__file__).with_name("torchrec_shim.py")
        done = subprocess.run([sys.executable, str(shim), *map(str, files)], capture_output=True, text=True)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
