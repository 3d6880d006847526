#!/usr/bin/env python3
"""Trains the four models of the step table in huge_ctr and in PyTorch, one after the other on one machine, and prints
their times per step.

    tools/bench/compare_pytorch.py build/cpu/bin --models wdl dlrm --batches 2048

huge_ctr runs `--train` on generated files. Its time includes reading, hashing of keys and updates of touched rows. The
time is the median of the step times between displays in the second half of the run. PyTorch gets row numbers that are
already on the device, with the same widths, tables and power law, and reads nothing. The result of PyTorch is the best
of the variants below; all variants are printed:

eager      autograd, with a fused or for-each optimizer for the dense weights
compiled   one graph by torch.compile, from the look-up of rows to all gradients, through torch.func
captured   on a GPU: the compiled step in one CUDA graph
...+sparse     row gradients as sparse tensors, with SparseAdam or SGD
...+rows       gradients of the gathered rows, summed by row and applied to these rows
...+index      like +rows without a sort, by index_add_, which a CUDA graph can record
...+triton     like +index by the two kernels of table_kernels.py, if triton is installed
...+32         DLRM's products of 27 vectors, padded with zeros to 32 vectors for the tensor cores

Python needs torch. For a CPU, the wheel that pip installs by default suffices.
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
    """Imports a script of this folder as a module."""
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


def write_ours(given, model, batches, folder):
    """Writes the config and data of a model. The data suffice for each of these batch sizes. Returns the config."""
    config = configs().step_model(model, {"fp32": "f32"}.get(given.precision, given.precision))
    shrink(config, given.rows)
    config["solver"].update(batchsize=max(batches), max_iter=given.steps, display=max(1, given.steps // 10), final_snapshot=False, eval_interval=0)
    config["layers"][0].pop("eval_source", None)
    path = folder / f"{model}.json"
    path.write_text(json.dumps(config))
    samples = min(given.samples, max(batches) * given.steps)
    run([given.programs / "data_generator", "--config", path, "--samples", samples, "--alpha", given.alpha, "--force"], folder)
    return config


def train_ours(given, model, config, batch, folder):
    """Returns the milliseconds per step."""
    config["solver"]["batchsize"] = batch
    path = folder / f"{model}_{batch}.json"
    path.write_text(json.dumps(config))
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


class Peer:
    """One model in PyTorch: f32 tables with sparse updates, a dense part, and batches."""

    def __init__(self, torch, given, model, batch):
        self.torch, self.given, self.model, self.device = torch, given, model, torch.device(given.device)
        sizes = [400000] * 26 if model == "dlrm" else configs().KAGGLE
        sizes = [min(given.rows, size) if given.rows else size for size in sizes]
        self.adam, self.slots, self.total = model != "dlrm", len(sizes), sum(sizes)
        self.widths = [{"wdl": 16, "dcn": 16, "deepfm": 11, "dlrm": 128}[model]] + ([1] if model == "wdl" else [])
        self.type = {"half": torch.float16 if model == "dlrm" else torch.bfloat16}.get(given.precision, torch.float32)
        self.scale = 1024.0 if self.type == torch.float16 else 1.0
        torch.manual_seed(1)
        self.parts = module("pytorch_parts")
        self.batches = self.parts.Batches(given.pool, batch, sizes, model == "wdl", given.alpha, self.device)
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = given.precision == "tf32"

    def network(self, vectors=None):
        return self.parts.network(self.model, self.slots, vectors).to(self.device)

    def tables(self):
        return [self.torch.empty(self.total, width, device=self.device).uniform_(-0.05, 0.05) for width in self.widths]

    def dense_optimizer(self, net):
        torch = self.torch
        if not self.adam:
            return torch.optim.SGD(net.parameters(), lr=SGD_RATE / self.scale, fused=True)
        capturable = {"capturable": True} if self.device.type == "cuda" else {}
        return torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, eps=EPSILON, fused=True, **capturable)

    def loss(self, logits, label):
        return self.torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), label) * self.scale

    def rows_of(self, tables, indices):
        """Gathers rows [batch, slots, dim] and, of a second table, [batch, 2, 1], in the dtype of activations."""
        return [self.torch.nn.functional.embedding(index, table).to(self.type) for table, index in zip(tables, indices)]

    def logits(self, net, rows, dense):
        return net(rows[0], rows[1].sum((1, 2)) if len(rows) > 1 else None, dense.to(self.type))

    def eager_gradients(self, net, tables, indices, dense, label):
        """Returns the loss and the gradients of the gathered rows, computed by autograd; wgrads are in .grad."""
        rows = [r.requires_grad_() for r in self.rows_of(tables, indices)]
        net.zero_grad(set_to_none=True)
        value = self.loss(self.logits(net, rows, dense), label)
        value.backward()
        return value.detach(), [r.grad for r in rows]

    def compiled_gradients(self, net):
        """Returns a function like eager_gradients(), in which one compiled graph computes all gradients from the row
        numbers.
        """
        torch = self.torch
        call = torch.func.functional_call
        weights = {name: weight.detach() for name, weight in net.named_parameters()}

        def of_any(weights, rows, dense, label):
            value = lambda weights, rows: self.loss(self.logits(lambda *inputs: call(net, weights, inputs), rows, dense), label)
            (by_weight, by_row), loss = torch.func.grad_and_value(value, argnums=(0, 1))(weights, rows)
            return loss, by_row, by_weight

        def of_dlrm(weights, rows, dense, label):
            part = lambda name: {key[len(name):]: weight for key, weight in weights.items() if key.startswith(name)}
            (vectors, bottom), back = torch.func.vjp(lambda weights, rows: call(net.below, weights, (rows, dense)), part("below."), rows[0])
            value = lambda weights, products, bottom: self.loss(call(net.above, weights, (products, bottom)), label)
            (above, by_product, by_bottom), loss = torch.func.grad_and_value(value, argnums=(0, 1, 2))(part("above."), net.products(vectors), bottom)
            below, by_row = back((net.products_backward(vectors, by_product), by_bottom))
            return loss, [by_row], {**{"below." + key: g for key, g in below.items()}, **{"above." + key: g for key, g in above.items()}}

        def whole(weights, tables, indices, dense, label):
            with torch.no_grad():
                rows = self.rows_of(tables, indices)
            return (of_dlrm if self.model == "dlrm" else of_any)(weights, rows, dense.to(self.type), label)

        compiled = torch.compile(whole, dynamic=False, fullgraph=True)

        def gradients(net, tables, indices, dense, label):
            with torch.no_grad():
                value, by_row, by_weight = compiled(weights, tables, indices, dense, label)
            for name, weight in net.named_parameters():
                g = by_weight[name]  # a fused optimizer requires the strides of the weight
                weight.grad = g if g.stride() == weight.stride() else g.contiguous().view(weight.shape)
            return value, by_row

        return gradients

    # Each method returns a function update(index [n], gradient [n, dim] times the loss scale), which updates a table.
    # `count`: the step, from 1.

    def sparse_update(self, table, count):
        """Makes sparse gradient tensors for PyTorch's own optimizers."""
        torch = self.torch
        table.requires_grad_()
        optimizer = torch.optim.SparseAdam([table], lr=RATE, betas=BETAS, eps=EPSILON) if self.adam else torch.optim.SGD([table], lr=SGD_RATE / self.scale)

        def update(index, gradient):
            table.grad = torch.sparse_coo_tensor(index[None], gradient.float(), table.shape, check_invariants=False)
            optimizer.step()

        return update

    def rows_update(self, table, count):
        """Sums gradients of equal rows after a sort, and updates each row once."""
        torch = self.torch
        if not self.adam:
            return lambda index, gradient: table.index_add_(0, index, gradient.float(), alpha=-SGD_RATE / self.scale)
        first, second = torch.zeros_like(table), torch.zeros_like(table)

        def update(index, gradient):
            rows, place = torch.unique(index, return_inverse=True)
            g = torch.zeros(len(rows), gradient.shape[1], device=self.device).index_add_(0, place, gradient.float())
            m = first[rows].mul_(BETAS[0]).add_(g, alpha=1 - BETAS[0])
            v = second[rows].mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            first[rows], second[rows] = m, v
            factor = RATE * torch.sqrt(1 - BETAS[1]**count) / (1 - BETAS[0]**count)
            table.index_add_(0, rows, -factor * m / (v.sqrt() + EPSILON))

        return update

    def index_update(self, table, count):
        """Updates without a sort, with operators of fixed shape, as a CUDA graph requires."""
        torch = self.torch
        if not self.adam:
            return self.rows_update(table, count)
        first, second, sums = (torch.zeros_like(table) for _ in range(3))

        def update(index, gradient):
            sums.index_add_(0, index, gradient.float())
            g = sums[index]  # equal for equal rows, so duplicate writes have the same values
            m = first[index].mul_(BETAS[0]).add_(g, alpha=1 - BETAS[0])
            v = second[index].mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            factor = RATE * torch.sqrt(1 - BETAS[1]**count) / (1 - BETAS[0]**count)
            new = table[index] - factor * m / (v.sqrt() + EPSILON)
            first[index], second[index], table[index] = m, v, new
            sums.index_fill_(0, index, 0)

        return update

    def triton_update(self, table, count):
        """Updates without a sort, with custom kernels."""
        kernels = module("table_kernels")
        if not self.adam:
            return lambda index, gradient: kernels.sgd_update(table, index, gradient, SGD_RATE / self.scale)
        rows = kernels.AdamTable(table, RATE, BETAS, EPSILON)
        return lambda index, gradient: rows.update(index, gradient, count)

    def step(self, compiled, make_update, captured=False, vectors=None):
        """Returns step(i), which trains on batch i and returns its loss."""
        torch = self.torch
        net = self.network(vectors)
        gradients = self.compiled_gradients(net) if compiled else self.eager_gradients
        dense = self.dense_optimizer(net)
        count = torch.zeros((), device=self.device)
        tables = self.tables()
        updates = [make_update(table, count) for table in tables]
        indices, numbers = self.batches.indices(), self.batches.numbers()

        def body():
            value, by_row = gradients(net, [table.detach() for table in tables], indices, *numbers)
            dense.step()
            with torch.no_grad():
                count.add_(1)
                for update, index, gradient, table in zip(updates, indices, by_row, tables):
                    update(index.reshape(-1), gradient.reshape(-1, table.shape[1]))
            return value

        if captured:
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
            self.batches.load(i)
            if not captured:
                return body()
            graph.replay()
            return value

        return step

    def variants(self):
        """Returns the function that creates the step, by variant name."""
        out = {}
        for word in self.given.variants:
            if not word.startswith("captured"):
                for name, update in (("sparse", self.sparse_update), ("rows", self.rows_update)):
                    out[f"{word}+{name}"] = lambda compiled=word == "compiled", update=update: self.step(compiled, update)
                continue
            if self.device.type != "cuda":
                continue
            if word == "captured":
                out["captured+index"] = lambda: self.step(True, self.index_update, captured=True)
            if importlib.util.find_spec("triton"):
                out["captured+triton"] = lambda: self.step(True, self.triton_update, captured=True)
                if self.model == "dlrm":
                    out["captured+triton+32"] = lambda: self.step(True, self.triton_update, captured=True, vectors=32)
        return out

    def measure(self, step):
        """Milliseconds per step, the median of groups of steps after a warm-up."""
        sync = self.torch.cuda.synchronize if self.device.type == "cuda" else lambda: None
        group, groups = max(1, self.given.steps // 10), 6
        for i in range(max(3, group)):
            value = step(i)
        sync()
        times = []
        for g in range(groups):
            start = time.perf_counter()
            for i in range(group):
                value = step(g * group + i)
            sync()
            times.append((time.perf_counter() - start) / group)
        if not math.isfinite(float(value)):
            sys.exit(f"PyTorch's loss of {self.model} is {float(value)}")
        return statistics.median(times) * 1e3


def train_theirs(torch, given, model, batch):
    """Milliseconds per step of each variant."""
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
    parser.add_argument("--variants", nargs="+", choices=["eager", "compiled", "captured", "captured+triton"],
                        default=["eager", "compiled", "captured"], help="captured: with both ways to update tables")
    parser.add_argument("--threads", type=int, help="threads of both programs on a CPU; default: all cores")
    parser.add_argument("--steps", type=int, default=60, help="training steps of each program")
    parser.add_argument("--samples", type=int, default=200000, help="maximum samples in the files of huge_ctr")
    parser.add_argument("--rows", type=int, help="maximum rows of a table, for small machines")
    parser.add_argument("--alpha", type=float, default=1.05, help="exponent of the power law of keys")
    parser.add_argument("--pool", type=int, default=20, help="distinct batches of PyTorch, which are used in turn")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    given = parser.parse_args()
    if given.steps < 20:
        parser.error("--steps: at least 20, for a median")
    if given.pool * min(given.batches) < 1:
        parser.error("--pool and --batches: at least 1")
    import torch  # imported after the arguments are parsed, because --help needs no torch

    has_triton = importlib.util.find_spec("triton")
    if "captured+triton" in given.variants and not (has_triton and given.device == "cuda"):
        parser.error("--variants captured+triton needs --device cuda and a Python with triton")
    if given.device == "cuda" and "captured" in given.variants and not has_triton:
        print("no triton for this Python: PyTorch's captured step updates its tables by index_add_, which is slower", file=sys.stderr)
    if given.threads:
        torch.set_num_threads(given.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {given.device}, {given.precision}; load {os.getloadavg()[0]:.2f}",
          file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models:
            config = write_ours(given, model, given.batches, pathlib.Path(folder))
            for batch in given.batches:
                ours = train_ours(given, model, config, batch, pathlib.Path(folder))
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
