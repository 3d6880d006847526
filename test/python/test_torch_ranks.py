"""Tables that processes of torchrun share: two and three processes give the results of one. On the CPU, or with
HCTR_TORCH_DEVICE=cuda on two GPUs. There the communicators of PyTorch and of huge_ctr, both NCCL, work in turn.
"""

import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

support.need("torch")
import torch  # noqa: E402

ON_GPUS = os.environ.get("HCTR_TORCH_DEVICE") == "cuda"
RANK = Path(__file__).with_name("torch_rank.py")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Ranks(unittest.TestCase):
    def run_ranks(self, folder, size, *words):
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(size), "--master-addr", "127.0.0.1"]
        torchrun += ["--master-port", str(free_port())]
        command = [sys.executable, "-W", "ignore", *(torchrun if size > 1 else []), str(RANK), folder, *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        load = "load" if "load" in words else ""
        return torch.load(f"{folder}/found{size}{load}.pt", map_location="cpu")

    def same(self, ours, theirs):
        for name, one in theirs.items():
            if isinstance(one, int):
                self.assertEqual(ours[name], one, name)
                continue
            for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (ours[name], one))):
                # of the vectors of a batch, `ours` has only those of rank 0
                self.assertLess(float((a.double() - b[: len(a)].double()).abs().max()), 1e-6, name)

    def test_several_are_one_and_checkpoints_fit_any(self):
        if ON_GPUS and torch.cuda.device_count() < 2:
            self.skipTest("needs two GPUs")
        sizes = (2,) if ON_GPUS else (3, 2)
        with tempfile.TemporaryDirectory() as folder:
            one = self.run_ranks(folder, 1)
            for size in sizes:
                self.same(self.run_ranks(folder, size, *(["save"] if size == sizes[0] else [])), one)
            for size in (1, 2):
                self.same(self.run_ranks(folder, size, "load"), one)


if __name__ == "__main__":
    unittest.main()
