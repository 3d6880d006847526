#!/usr/bin/env python3
"""Trains the four models of the table of steps in huge_ctr and in PyTorch, one after the other on one machine, and prints their times a step.

    tools/bench/compare_pytorch.py build/cpu/bin --models wdl dlrm --batches 2048

huge_ctr runs `--train` on generated files: reading, hashing of keys and updates of touched rows are part of its time, the median of displays in the
later half of the run. PyTorch gets row numbers that are already on the device, of the same widths, tables and power law, with nothing to read. Each
cell of PyTorch is the best of these, the others are printed too:

eager      autograd, fused or for-each optimizer for the dense weights
compiled   the same network by torch.compile, forward and backward
captured   on a GPU: the compiled step in one CUDA graph
...+sparse     gradients of rows as sparse tensors, SparseAdam or SGD
...+rows       gradients of the gathered rows, summed by row and applied to the rows that occur
...+index      the same without a sort, as a graph needs it, by index_add_
...+triton     the same by the two kernels of table_kernels.py, where Python has triton

Python needs torch; on a CPU the ordinary wheel of pip.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-7
SGD_RATE = 0.3


def module(name):
    """The script of this name beside this one."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def configs():
    return module("model_configs")


# ------------------------------------------------------------------------------------------------------------------ huge_ctr


def run(command, folder):
    done = subprocess.run([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with code {done.returncode}:\n{done.stdout[-3000:]}")


def train_ours(given, model, batch, folder):
    """Milliseconds a step."""
    name = {"fp32": "f32"}.get(given.precision, given.precision)
    config = configs().step_model(model, name)
    shrink(config, given.rows)
    config["solver"].update(batchsize=batch, max_iter=given.steps, display=max(1, given.steps // 10), final_snapshot=False, eval_interval=0)
    config["layers"][0].pop("eval_source", None)
    path = folder / f"{model}_{batch}.json"
    path.write_text(json.dumps(config))
    samples = min(given.samples, batch * given.steps)
    run([given.programs / "data_generator", "--config", path, "--samples", samples, "--alpha", given.alpha, "--force"], folder)
    command = [given.programs / "huge_ctr", "--train", path, "--device", given.device, "--run-dir", folder / f"run_{model}_{batch}"]
    run(command + (["--threads", given.threads] if given.threads else []), folder)
    shown = [json.loads(line) for line in (folder / f"run_{model}_{batch}" / "metrics.jsonl").read_text().splitlines()]
    shown = [(line["iteration"], line["seconds"]) for line in shown if line["kind"] == "train"]
    times = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in zip(shown, shown[1:])]
    return statistics.median(times[len(times) // 2:]) * 1e3


def shrink(config, rows):
    data = config["layers"][0]
    if rows:
        data["slot_size_array"] = [min(rows, size) for size in data["slot_size_array"]]
    for layer in config["layers"]:
        table = layer.get("sparse_embedding_hparam", {})
        if rows and "slot_size_array" in table:
            table["slot_size_array"] = [min(rows, size) for size in table["slot_size_array"]]


# ------------------------------------------------------------------------------------------------------------------- PyTorch


def network(torch, model, slots):
    """The dense part: forward(rows [batch, slots, dim], wide [batch] or None, dense [batch, 13]) -> logits [batch]."""
    nn = torch.nn

    def stack(widths, dropout):
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()] + ([nn.Dropout(0.5)] if dropout else [])
        return nn.Sequential(*layers)

    class WideAndDeep(nn.Module):
        def __init__(self):
            super().__init__()
            self.deep, self.last = stack((16 * slots + 13, 1024, 1024), True), nn.Linear(1024, 1)

        def forward(self, rows, wide, dense):
            return self.last(self.deep(torch.cat([rows.flatten(1), dense], 1))).squeeze(1) + wide

    class DeepAndCross(nn.Module):
        def __init__(self):
            super().__init__()
            width = 16 * slots + 13
            self.deep, self.last = stack((width, 1024, 1024), True), nn.Linear(1024 + width, 1)
            self.w = nn.ParameterList([nn.Parameter(torch.randn(width) * 0.03) for _ in range(6)])
            self.b = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in range(6)])

        def forward(self, rows, wide, dense):
            x0 = torch.cat([rows.flatten(1), dense], 1)
            x = x0
            for w, b in zip(self.w, self.b):
                x = x0 * (x @ w).unsqueeze(1) + b + x
            return self.last(torch.cat([self.deep(x0), x], 1)).squeeze(1)

    class DeepFm(nn.Module):
        def __init__(self):
            super().__init__()
            self.deep, self.last = stack((10 * (slots + 13), 400, 400, 400), True), nn.Linear(400, 1)
            self.vectors, self.weights = nn.Parameter(torch.randn(13, 10) * 0.1), nn.Parameter(torch.randn(13) * 0.1)

        def forward(self, rows, wide, dense):
            vectors = torch.cat([rows[:, :, :10], dense.unsqueeze(2) * self.vectors.to(dense.dtype)], 1)
            squares = 0.5 * (vectors.sum(1).square() - vectors.square().sum(1)).sum(1)
            first = rows[:, :, 10].sum(1) + (dense * self.weights.to(dense.dtype)).sum(1)
            return self.last(self.deep(vectors.flatten(1))).squeeze(1) + squares + first

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            pairs = (slots + 1) * slots // 2
            self.bottom = stack((13, 512, 256, 128), False)
            self.top, self.last = stack((128 + pairs + 1, 1024, 1024, 512, 256), False), nn.Linear(256, 1)
            i, j = torch.tril_indices(slots + 1, slots + 1, -1)
            self.register_buffer("places", i * (slots + 1) + j)

        def forward(self, rows, wide, dense):
            bottom = self.bottom(dense)
            vectors = torch.cat([bottom.unsqueeze(1), rows], 1)
            products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1).index_select(1, self.places)
            return self.last(self.top(torch.cat([bottom, products, products.new_zeros(len(products), 1)], 1))).squeeze(1)

    return {"wdl": WideAndDeep, "dcn": DeepAndCross, "deepfm": DeepFm, "dlrm": Dlrm}[model]()


class Peer:
    """One model in PyTorch, with its tables as one and its batches on the device."""

    def __init__(self, torch, given, model, batch):
        self.torch, self.given, self.model, self.device = torch, given, model, torch.device(given.device)
        sizes = [400000] * 26 if model == "dlrm" else configs().KAGGLE
        sizes = [min(given.rows, size) if given.rows else size for size in sizes]
        self.dim = {"wdl": 16, "dcn": 16, "deepfm": 11, "dlrm": 128}[model]
        self.adam = model != "dlrm"
        self.batch, self.total, self.slots = batch, sum(sizes), len(sizes)
        torch.manual_seed(1)
        bases, at = [], 0
        for size in sizes:
            bases.append(at)
            at += size
        draw = torch.rand(given.pool, batch, self.slots, dtype=torch.float64)
        size = torch.tensor(sizes, dtype=torch.float64)
        key = ((1 - draw * (1 - (size + 1) ** (1 - given.alpha))) ** (1 / (1 - given.alpha)) - 1).long()  # density ~ (k + 1)^-alpha
        mixed = key.clamp(max=size.long() - 1)
        self.indices = (mixed + torch.tensor(bases)).to(self.device)
        self.wide_indices = torch.randint(0, self.total, (given.pool, batch, 2), device=self.device)
        self.dense = torch.rand(given.pool, batch, 13).to(self.device)
        self.labels = torch.randint(0, 2, (given.pool, batch)).float().to(self.device)
        self.type = {"half": torch.float16 if model == "dlrm" else torch.bfloat16}.get(given.precision, torch.float32)
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = given.precision == "tf32"

    def tables(self):
        torch = self.torch
        make = lambda dim: torch.empty(self.total, dim, device=self.device).uniform_(-0.05, 0.05)
        tables = [make(self.dim)] + ([make(1)] if self.model == "wdl" else [])
        return tables

    def loss_function(self, net, compiled):
        torch = self.torch
        half = self.type != torch.float32

        def loss(rows, wide, dense, label):
            with torch.autocast(self.device.type, dtype=self.type, enabled=half):
                logits = net(rows, wide, dense)
            return torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), label)

        return torch.compile(loss, dynamic=False) if compiled else loss

    def dense_optimizer(self, net):
        torch = self.torch
        if not self.adam:
            return torch.optim.SGD(net.parameters(), lr=SGD_RATE, fused=True)
        capturable = {"capturable": True} if self.device.type == "cuda" else {}
        return torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, eps=EPSILON, fused=True, **capturable)

    def sparse_step(self, compiled):
        """Sparse gradients of the tables."""
        torch = self.torch
        net = network(torch, self.model, self.slots).to(self.device)
        tables = [table.requires_grad_() for table in self.tables()]
        loss, dense = self.loss_function(net, compiled), self.dense_optimizer(net)
        sparse = torch.optim.SparseAdam(tables, lr=RATE, betas=BETAS, eps=EPSILON) if self.adam else torch.optim.SGD(tables, lr=SGD_RATE)
        look = lambda table, index: torch.nn.functional.embedding(index, table, sparse=True)

        def step(i):
            i %= self.given.pool
            dense.zero_grad(set_to_none=True)
            sparse.zero_grad(set_to_none=True)
            wide = look(tables[1], self.wide_indices[i]).sum((1, 2)) if len(tables) > 1 else None
            value = loss(look(tables[0], self.indices[i]), wide, self.dense[i], self.labels[i])
            value.backward()
            dense.step()
            sparse.step()
            return value

        return step

    def rows_step(self, compiled):
        """Gradients of gathered rows; those of equal rows are summed, and each row is updated once."""
        torch = self.torch
        net = network(torch, self.model, self.slots).to(self.device)
        tables = self.tables()
        states = [(torch.zeros_like(table), torch.zeros_like(table)) for table in tables] if self.adam else None
        loss, dense = self.loss_function(net, compiled), self.dense_optimizer(net)
        count = torch.zeros((), device=self.device)

        def update(t, index, gradient):
            index, gradient = index.reshape(-1), gradient.reshape(-1, tables[t].shape[1])
            if not self.adam:
                return tables[t].index_add_(0, index, gradient, alpha=-SGD_RATE)
            rows, place = torch.unique(index, return_inverse=True)
            g = torch.zeros(len(rows), gradient.shape[1], device=self.device).index_add_(0, place, gradient)
            first, second = states[t]
            m = first[rows].mul_(BETAS[0]).add_(g, alpha=1 - BETAS[0])
            v = second[rows].mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            first[rows], second[rows] = m, v
            factor = RATE * torch.sqrt(1 - BETAS[1]**count) / (1 - BETAS[0]**count)
            tables[t].index_add_(0, rows, -factor * m / (v.sqrt() + EPSILON))

        def step(i):
            i %= self.given.pool
            dense.zero_grad(set_to_none=True)
            rows = tables[0][self.indices[i]].requires_grad_()
            wide_rows = tables[1][self.wide_indices[i]].requires_grad_() if len(tables) > 1 else None
            value = loss(rows, None if wide_rows is None else wide_rows.sum((1, 2)), self.dense[i], self.labels[i])
            value.backward()
            dense.step()
            with torch.no_grad():
                count.add_(1)
                update(0, self.indices[i], rows.grad)
                if wide_rows is not None:
                    update(1, self.wide_indices[i], wide_rows.grad)
            return value

        return step

    def index_update(self, table, count):
        """update(index [n], gradient [n, dim]) of the rows that occur, by PyTorch's operators of fixed shape."""
        torch = self.torch
        if not self.adam:
            return lambda index, gradient: table.index_add_(0, index, gradient, alpha=-SGD_RATE)
        first, second, sums = (torch.zeros_like(table) for _ in range(3))

        def update(index, gradient):
            sums.index_add_(0, index, gradient)
            g = sums[index]  # equal for equal rows, so that each writes the same values
            m = first[index].mul_(BETAS[0]).add_(g, alpha=1 - BETAS[0])
            v = second[index].mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            factor = RATE * torch.sqrt(1 - BETAS[1]**count) / (1 - BETAS[0]**count)
            new = table[index] - factor * m / (v.sqrt() + EPSILON)
            first[index], second[index], table[index] = m, v, new
            sums.index_fill_(0, index, 0)

        return update

    def triton_update(self, table, count):
        """The same, by kernels of their own."""
        kernels = module("table_kernels")
        if not self.adam:
            return lambda index, gradient: kernels.sgd_update(table, index, gradient, SGD_RATE)
        rows = kernels.AdamTable(table, RATE, BETAS, EPSILON)
        return lambda index, gradient: rows.update(index, gradient, count)

    def captured_step(self, make_update):
        """The compiled network, the dense optimizer and the tables' updates in one CUDA graph."""
        torch = self.torch
        net = network(torch, self.model, self.slots).to(self.device)
        loss, dense = self.loss_function(net, True), self.dense_optimizer(net)
        count = torch.zeros((), device=self.device)
        tables = self.tables()
        updates = [make_update(table, count) for table in tables]
        inputs = [t[0].clone() for t in (self.indices, self.wide_indices, self.dense, self.labels)]

        def update(t, index, gradient):
            updates[t](index.reshape(-1), gradient.reshape(-1, tables[t].shape[1]))

        def body():
            rows = tables[0][inputs[0]].requires_grad_()
            wide_rows = tables[1][inputs[1]].requires_grad_() if len(tables) > 1 else None
            value = loss(rows, None if wide_rows is None else wide_rows.sum((1, 2)), inputs[2], inputs[3])
            value.backward()
            dense.step()
            with torch.no_grad():
                count.add_(1)
                update(0, inputs[0], rows.grad)
                if wide_rows is not None:
                    update(1, inputs[1], wide_rows.grad)
            dense.zero_grad(set_to_none=False)
            return value

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                body()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value = body()

        def step(i):
            for to, of in zip(inputs, (self.indices, self.wide_indices, self.dense, self.labels)):
                to.copy_(of[i % self.given.pool])
            graph.replay()
            return value

        return step

    def variants(self):
        out = {}
        for word in self.given.variants:
            compiled = word == "compiled"
            if word == "captured":
                if self.device.type == "cuda":
                    out["captured+index"] = lambda: self.captured_step(self.index_update)
                    if importlib.util.find_spec("triton"):
                        out["captured+triton"] = lambda: self.captured_step(self.triton_update)
                continue
            out[f"{word}+sparse"] = lambda compiled=compiled: self.sparse_step(compiled)
            out[f"{word}+rows"] = lambda compiled=compiled: self.rows_step(compiled)
        return out

    def measure(self, step):
        """Milliseconds a step, the median of groups of steps after a warm-up."""
        sync = self.torch.cuda.synchronize if self.device.type == "cuda" else lambda: None
        group, groups = max(1, self.given.steps // 10), 6
        for i in range(max(3, group)):
            value = step(i).detach()
        sync()
        times = []
        for g in range(groups):
            start = time.perf_counter()
            for i in range(group):
                value = step(g * group + i).detach()
            sync()
            times.append((time.perf_counter() - start) / group)
        if not math.isfinite(float(value)):
            sys.exit(f"PyTorch's loss of {self.model} is {float(value)}")
        return statistics.median(times) * 1e3


def train_theirs(torch, given, model, batch):
    """Milliseconds a step of each variant."""
    times = {}
    peer = Peer(torch, given, model, batch)
    for name, make in peer.variants().items():
        torch._dynamo.reset()
        step = make()
        times[name] = peer.measure(step)
        print(f"  {model} {batch} {name}: {times[name]:.3f} ms", file=sys.stderr, flush=True)
        del step
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda word: pathlib.Path(word).resolve(), help="the folder of huge_ctr and data_generator")
    parser.add_argument("--models", nargs="+", choices=["wdl", "dcn", "deepfm", "dlrm"], default=["wdl", "dcn", "deepfm", "dlrm"])
    parser.add_argument("--batches", nargs="+", type=int, default=[2048])
    parser.add_argument("--precision", choices=["fp32", "tf32", "half"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--variants", nargs="+", choices=["eager", "compiled", "captured"], default=["eager", "compiled", "captured"])
    parser.add_argument("--threads", type=int, help="of both programs on a CPU; default: all cores")
    parser.add_argument("--steps", type=int, default=60, help="that huge_ctr trains; PyTorch runs as many")
    parser.add_argument("--samples", type=int, default=200000, help="in the files of huge_ctr, at most")
    parser.add_argument("--rows", type=int, help="most rows of a table, for small machines")
    parser.add_argument("--alpha", type=float, default=1.05, help="exponent of the power law of keys")
    parser.add_argument("--pool", type=int, default=20, help="batches that PyTorch takes in turn")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    given = parser.parse_args()
    if given.steps < 20:
        parser.error("--steps: at least 20, for a median")
    if given.pool * min(given.batches) < 1:
        parser.error("--pool and --batches: at least 1")
    import torch  # after the arguments: --help needs no torch

    if given.device == "cuda" and "captured" in given.variants and not importlib.util.find_spec("triton"):
        print("no triton for this Python: PyTorch's captured step updates its tables by index_add_, which is slower", file=sys.stderr)
    if given.threads:
        torch.set_num_threads(given.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {given.device}, {given.precision}; load {os.getloadavg()[0]:.2f}",
          file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models:
            for batch in given.batches:
                ours = train_ours(given, model, batch, pathlib.Path(folder))
                print(f"  {model} {batch} huge_ctr: {ours:.3f} ms", file=sys.stderr, flush=True)
                rows.append({"model": model, "batch": batch, "huge_ctr": ours, "pytorch": train_theirs(torch, given, model, batch)})
    print("| model | batch | huge_ctr, ms | PyTorch, ms | variant | times as fast |\n|---|---|---|---|---|---|")
    for row in rows:
        name, best = min(row["pytorch"].items(), key=lambda item: item[1])
        print(f"| {row['model']} | {row['batch']} | {row['huge_ctr']:.3f} | {best:.3f} | {name} | {best / row['huge_ctr']:.2f} |")
    if given.json:
        about = {"torch": torch.__version__, "threads": torch.get_num_threads(), "device": given.device, "precision": given.precision}
        given.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
