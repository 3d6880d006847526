#!/usr/bin/env python3
"""Compares the times of embedding steps of huge_ctr.torch and of FBGEMM's TBE (the basis of TorchRec) on the same keys.

    tools/bench/compare_torchrec.py                              # every case on this machine's GPU
    tools/bench/compare_torchrec.py --only uniform graph         # some cases
    tools/bench/compare_torchrec.py --device cpu                 # smaller shapes

A step is forward, backward and update, with a given gradient. The time of a step is the median of groups of steps that
are queued without waiting, by CUDA events, in milliseconds; on a CPU, by the clock. Each case uses eight batches in
turn, and all of their keys have rows before the time is taken. Cases:

uniform   1.7 M uniform keys, 2^24 rows, one table, dim 128 and 16
dlrm      26 tables of DLRM, power-law keys (exponent 1.05), one key per bag, dim 128, 65,536 samples
small     the same with 2,048 samples
graph     the same, each step in a CUDA graph
bags      20 tables of 1 M rows, dim 64, 10 keys per bag, 16,384 samples
mixed     100 tables with dims 1 to 256, compared with one table with the same number of keys and elements
tier      one table with a sixteenth of its rows on the GPU, to which all keys belong, compared with all rows on the
          GPU; TBE caches a sixteenth of the rows in GPU memory
model     DLRM of samples/pytorch with the sizes of MLPerf, 16,384 samples; also with the keys of the next batch
          given early, and the dense part alone

Columns: `hashed` uses arbitrary 64-bit keys in growing tables, `numbers` row numbers. TBE needs fbgemm_gpu, which fits
one version of PyTorch. Without fbgemm_gpu the column shows in brackets the time that was measured on an H200 with
torch 2.11 and fbgemm-gpu 1.6.0, and a line above the table says why it is missing. TBE cannot run in a CUDA graph, so
in the case `graph` its column repeats the time without a graph. `aim` is our target for `hashed` on an H200. A case
that cannot be measured prints "-", with the reason below the table. The vectors of `numbers` are compared with
torch.nn.functional first. Below the table are ratios of its lines, for hash keys and row numbers, many tables and one,
rows outside the GPU, and whole models.

Successive cases with equal tables and an equal optimizer share the tables, whose rows are made once. A run of all
cases takes less than four minutes on an H200; --seconds limits it.
"""

import argparse
import functools
import gc
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

import torch
from torch_dlrm import Model
from torchrec_peers import Ours, Shape, Tbe

OPTIMIZERS = {"sgd": "sgd", "row-wise": "row_wise_adagrad", "adam": "sparse_adam"}
DLRM_ROWS = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155, 4, 976, 14,
    39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip
BATCHES = 8


class Clock:
    """Median time of a step in milliseconds, over groups of steps that are queued without waiting."""

    def __init__(self, device, groups=10, steps=8):
        self.cuda, self.groups, self.steps = device != "cpu", groups, steps

    def __call__(self, step):
        """step(i): queues step number i."""
        for i in range(BATCHES + 2):
            step(i)
        times = []
        for group in range(self.groups):
            if self.cuda:
                marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                marks[0].record()
            start = time.perf_counter()
            for i in range(self.steps):
                step(group * self.steps + i)
            if self.cuda:
                marks[1].record()
                marks[1].synchronize()
                times.append(marks[0].elapsed_time(marks[1]) / self.steps)
            else:
                times.append(1e3 * (time.perf_counter() - start) / self.steps)
        return statistics.median(times)


def gradient_of(shape, device):
    draw = torch.Generator(device=device).manual_seed(7)
    return torch.randn(shape.samples, sum(dim for _, dim in shape.tables), device=device, generator=draw) / 1024


def time_steps(peer, shape, device, clock):
    gradient = gradient_of(shape, device)
    batches = [peer.prepare(shape.batch(seed, device)) for seed in range(BATCHES)]
    return clock(lambda i: peer.step(batches[i % BATCHES], gradient))


def time_graph(ours, shape, device, clock):
    """Steps that replay a CUDA graph, with the keys copied into its input and memory reserved before each."""
    gradient = gradient_of(shape, device)
    batches = [ours.prepare(shape.batch(seed, device)).values() for seed in range(BATCHES)]
    keys = ours.prepare(shape.batch(0, device))
    most = [shape.samples * shape.hotness] * len(shape.tables)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for values in batches:
            keys.values().copy_(values)
            ours.step(keys, gradient)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    ours.bags.reserve(shape.samples, most)
    with torch.cuda.graph(graph):
        ours.step(keys, gradient)

    def step(i):
        keys.values().copy_(batches[i % BATCHES])
        ours.bags.reserve(shape.samples, most)
        graph.replay()

    return clock(step)


def time_model(peer, shape, device, clock, early=False):
    """Times steps of DLRM with the tables of `peer`. None: constant vectors replace the tables, so only the dense part
    is timed. `early`: the keys of the next batch are given before the backward pass.
    """
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = Model(len(shape.tables), shape.tables[0][1]).to(device)
    dense = torch.optim.SGD(model.parameters(), lr=0.01)
    numbers = torch.randn(shape.samples, 13, device=device)
    labels = (torch.rand(shape.samples, device=device) < 0.3).float()
    batches = [peer.prepare(shape.batch(seed, device)) for seed in range(BATCHES)] if peer else []
    constant = gradient_of(shape, device).requires_grad_()

    def step(i):
        dense.zero_grad()
        constant.grad = None
        vectors = constant
        if isinstance(peer, Ours):
            vectors = peer.bags(batches[i % BATCHES]).values()
            if early:
                peer.bags.prefetch(batches[(i + 1) % BATCHES])
        elif peer:
            vectors = peer.bags(batches[i % BATCHES], peer.offsets)
        torch.nn.functional.binary_cross_entropy_with_logits(model(numbers, vectors), labels).backward()
        dense.step()

    return clock(step)


@dataclass
class Case:
    """A line of the printed table."""

    group: str
    shape: Shape
    optimizer: str
    aim: Optional[float] = None  # target for `hashed`, in milliseconds
    tbe: Optional[float] = None  # TBE's milliseconds on an H200
    kind: Callable = time_steps  # callable that measures the case
    words: dict = field(default_factory=dict)  # keyword arguments of the EmbeddingBagCollection
    peers: Optional[tuple] = None  # None: all peers
    cached: Optional[float] = None  # the fraction of the rows that TBE caches in GPU memory


def cases(device):
    small = device == "cpu"
    size = lambda full, tiny: tiny if small else full  # noqa: E731
    rows, wide = size(1 << 24, 1 << 16), size(128, 16)
    made = []
    for dim, of in ((128, ((1.62, 2.08), (2.55, 3.50))), (16, ((0.54, 1.20), (0.78, 2.94)))):
        for optimizer, (aim, tbe) in zip(("sgd", "adam"), of):
            shape = Shape(f"uniform, dim {dim}", [(rows, dim)], size(1_703_936, 53_248))
            made.append(Case("uniform", shape, optimizer, aim, tbe))

    def dlrm(name, samples, most):
        tables = [(min(size(most, 1 << 16), one), wide) for one in DLRM_ROWS]
        return Shape(name, tables, samples, power=1.05)

    # by optimizer: the aim and TBE's time at 65,536 samples, and TBE's time at 2,048
    of_dlrm = {"sgd": (1.1, 1.59, 1.06), "row-wise": (1.15, 1.64, 1.02), "adam": (1.4, 2.03, 1.12)}
    many, few = size(65_536, 4096), size(2048, 256)
    for optimizer, (aim, tbe_of_many, tbe) in of_dlrm.items():
        most = 4_000_000 if optimizer == "adam" else 10_000_000
        made.append(Case("dlrm", dlrm(f"26 tables, {many:,}", many, most), optimizer, aim, tbe_of_many))
        made.append(Case("small", dlrm(f"26 tables, {few:,}", few, most), optimizer, 0.30, tbe))
        if optimizer == "sgd":
            made += model_cases(dlrm, size(16_384, 128), most)
        shape = dlrm(f"26 tables, {few:,}, graph", few, most)
        made.append(Case("graph", shape, optimizer, 0.10, tbe, time_graph, peers=("hashed",)))
    bags = Shape("20 tables, 10 keys a bag", [(size(1_000_000, 1 << 14), 64)] * 20, size(16_384, 512), 10)
    for optimizer, aim, tbe in (("sgd", 0.8, 1.01), ("row-wise", 0.85, 1.13), ("adam", 1.3, 2.38)):
        made.append(Case("bags", bags, optimizer, aim, tbe))
    dims, count = [1 + 255 * i // 99 for i in range(100)], size(8192, 256)
    mixed = Shape("100 tables, dims 1 to 256", [(size(1 << 18, 1 << 12), dim) for dim in dims], count, power=1.05)
    one = Shape("one table of as many keys", [(size(100 << 18, 100 << 12), 128)], 100 * count, power=1.05)
    made += [Case("mixed", mixed, "sgd"), Case("mixed", one, "sgd")]
    # The GPU has a sixteenth of the rows. Keys are drawn from half of the rows on the GPU.
    all_rows = size(1 << 22, 1 << 14)
    tier = lambda name: Shape(name, [(all_rows, 128)], size(65_536, 4096), most=all_rows // 32)  # noqa: E731
    made.append(Case("tier", tier("all rows on the GPU"), "sgd", peers=("numbers", "tbe")))
    words = {"device_bytes": all_rows // 16 * 512, "host_bytes": 2 * all_rows * 512}
    shape = tier("a sixteenth on the GPU")
    made.append(Case("tier", shape, "sgd", peers=("numbers", "tbe"), words=words, cached=1 / 16))
    return made


def model_cases(dlrm, samples, most):
    name = f"DLRM, {samples:,}"
    early = functools.partial(time_model, early=True)
    return [
        Case("model", dlrm(name, samples, most), "sgd", kind=time_model),
        Case("model", dlrm(f"{name}, keys given early", samples, most), "sgd", kind=early, peers=("hashed", "numbers")),
        Case("model", dlrm("its dense part alone", samples, most), "sgd", kind=time_model, peers=("none",)),
    ]


class Peers:
    """Makes the tables of a case, by name of the peer. Keeps them for following cases with the same tables and
    optimizer.
    """

    def __init__(self, device):
        self.device, self.made = device, {}

    def of(self, case, name):
        key = (case.optimizer, tuple(case.shape.tables), repr(case.words), case.cached)
        self.made = {one: kept for one, kept in self.made.items() if kept[0] == key}
        free(self.device)
        if name in self.made:
            peer = self.made[name][1]
            peer.use(case.shape)
            return peer
        optimizer = OPTIMIZERS[case.optimizer]
        if name == "tbe":
            peer = Tbe(case.shape, optimizer, self.device, case.cached)
        else:
            peer = Ours(case.shape, optimizer, self.device, name == "hashed", **case.words)
            if name == "numbers":
                peer.check(self.device)
        self.made[name] = (key, peer)
        return peer


def free(device):
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def run_case(case, names, peers, clock, why):
    """Returns the times of a line of the printed table, by peer."""
    found, device = {}, peers.device
    for name in ("none",) if case.peers == ("none",) else names:
        if case.peers and name not in case.peers:
            continue
        try:
            found[name] = case.kind(None if name == "none" else peers.of(case, name), case.shape, device, clock)
        except (ImportError, AssertionError, RuntimeError, TypeError) as error:
            lines = str(error).strip().splitlines()
            why.setdefault((name, lines[-1][:200] if lines else repr(error)), case.shape.name)
            peers.made.pop(name, None)
    return found


def ratios(times):
    """Lines about the ratios that the targets name. `times`: {(case, optimizer): {peer: milliseconds}}."""
    of = lambda case, name: times.get((case, "sgd"), {}).get(name)  # noqa: E731
    plain = [
        one["hashed"] / one["numbers"] - 1
        for (case, _), one in times.items()
        if "hashed" in one and "numbers" in one and "DLRM" not in case
    ]
    if plain:
        more = f"{100 * min(plain):+.0f} to {100 * max(plain):+.0f} %"
        yield f"hash keys in place of row numbers: {more} (aim: at most +15)"
    for name in ("hashed", "numbers", "tbe"):
        many, one = of("100 tables, dims 1 to 256", name), of("one table of as many keys", name)
        if many and one:
            yield f"{name}: 100 tables take {many / one:.2f} times the time of one (aim: 1.2)"
        inside, outside = of("all rows on the GPU", name), of("a sixteenth on the GPU", name)
        if inside and outside:
            yield f"{name}: a sixteenth of the rows on the GPU takes {outside / inside:.2f} times the time of all"
    models = {case: one for (case, _), one in times.items() if case.startswith("DLRM")}
    for case, one in models.items():
        dense = of("its dense part alone", "none")
        for name, value in one.items():
            share = f", dense part {100 * dense / value:.0f} %" if dense else ""
            beside = f", {one['tbe'] / value:.2f} times as fast as TBE (aim: 1.2)" if "tbe" in one else ""
            yield f"{case}, {name}: {value:.3f} ms{share}{beside if name != 'tbe' else ''}"


def missing_peer():
    """Why TBE cannot be imported; empty if it can."""
    try:
        import fbgemm_gpu.split_table_batched_embeddings_ops_training  # noqa: F401
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[-1][:200] if lines else ''}"
    return ""


def cell(case, name, found):
    if name == "tbe" and name not in found and case.tbe and torch.cuda.is_available():
        return f"({case.tbe:.2f})"
    if name in found:
        return f"{found[name]:.3f}"
    return "" if case.peers and name not in case.peers else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    groups = list(dict.fromkeys(case.group for case in cases("cpu")))
    parser.add_argument("--only", nargs="+", default=None, choices=groups, metavar="CASE", help=", ".join(groups))
    parser.add_argument("--optimizers", nargs="+", default=list(OPTIMIZERS), choices=OPTIMIZERS)
    parser.add_argument("--peers", nargs="+", default=["hashed", "numbers", "tbe"])
    parser.add_argument("--groups", type=int, default=10, help="number of groups of eight steps")
    parser.add_argument("--seconds", type=float, default=220, help="start no case after this many seconds; default 220")
    parser.add_argument("--device", default=device, choices=("cpu", "cuda"))
    parser.add_argument("--one-thread", action="store_true", help="backward passes run in the thread that calls them")
    options = parser.parse_args()
    torch.autograd.set_multithreading_enabled(not options.one_thread)
    sys.stdout.reconfigure(line_buffering=True)
    missing = missing_peer() if "tbe" in options.peers else ""
    if missing:
        earlier = ": times of TBE in brackets are of an earlier run" if options.device != "cpu" else ""
        print(f"TBE is missing ({missing}){earlier}")
    where = torch.cuda.get_device_name() if options.device != "cpu" else f"CPU, {torch.get_num_threads()} threads"
    threads = ", backward passes in the calling thread" if options.one_thread else ""
    print(f"{where}, PyTorch {torch.__version__}, {Path(__file__).name}, ms a step{threads}")
    heads = options.peers + ["aim"]
    print("| case | keys | optimizer | " + " | ".join(heads) + " |")
    print("|---|--:|---|" + "--:|" * len(heads))
    start, clock, peers = time.perf_counter(), Clock(options.device, options.groups), Peers(options.device)
    why, times = {}, {}
    for case in cases(options.device):
        left_out = case.optimizer not in options.optimizers or (options.only and case.group not in options.only)
        if left_out or (case.kind is time_graph and options.device == "cpu"):
            continue
        if time.perf_counter() - start > options.seconds:
            print(f"{case.shape.name}, {case.optimizer}: not begun after {options.seconds:g} s")
            continue
        found = run_case(case, [one for one in options.peers if one != "tbe" or not missing], peers, clock, why)
        eager = times.get((case.shape.name.removesuffix(", graph"), case.optimizer), {})
        if case.kind is time_graph and "tbe" in eager:
            found["tbe"] = eager["tbe"]
        times[case.shape.name, case.optimizer] = found
        cells = [cell(case, name, found) for name in options.peers]
        if "none" in found:
            cells[0] = f"{found['none']:.3f}"
        aim = f"{case.aim:.2f}" if case.aim and options.device != "cpu" else ""
        line = [case.shape.name, f"{case.shape.keys:,}", case.optimizer, *cells, aim]
        print(f"| {' | '.join(line)} |")
    for (name, text), first in why.items():
        print(f"{name}, {first}: {text}")
    print(*ratios(times), sep="\n")
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
