#!/usr/bin/env python3
"""Scores with the four models of the step table in huge_ctr and in PyTorch, from host memory to host memory, and prints
the times per batch.

    tools/bench/compare_score.py build/cpu/bin --models wdl dlrm --batches 1 64 4096

huge_ctr runs `bench score` on a model that was trained for a few steps, with 64-bit keys that are found by hash or by
arithmetic as in training. PyTorch gets row numbers; a call copies the batch to the device, scores it and waits for the
scores. Processor times are of all threads of a program; on a busy machine they say more than times per batch. The
result of PyTorch is the best of eager, compiled and, on a GPU, captured (the compiled call in one CUDA
graph).
"""
import argparse
import contextlib
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


def module(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def score_ours(given, model, training, folder):
    """Returns microseconds and processor microseconds per batch, for each batch size."""
    config = training.write_ours(given, model, [max(given.batches)], folder)
    config["solver"].update(batchsize=min(4096, max(given.batches)), max_iter=3, display=0, final_snapshot=True)
    path = folder / f"{model}_score.json"
    path.write_text(json.dumps(config))
    run = folder / f"run_{model}"
    training.run([given.programs / "huge_ctr", "--train", path, "--device", given.device, "--run-dir", run], folder)
    figures = folder / f"{model}_score_figures.json"
    command = [given.programs / "bench", "score", run, "--device", given.device, "--json", figures, "--batches", *given.batches]
    command += [word for way in given.without for word in ("--without", way)]
    training.run(command + (["--threads", given.threads] if given.threads else []), folder)
    lines = json.loads(figures.read_text())["figures"]
    return {unit: {int(line["case"].split()[-1]): line["value"] for line in lines if line["unit"] == unit} for unit in ("us", "processor us")}


def score_theirs(torch, given, model, batch, training):
    """Returns microseconds and processor microseconds per batch, for each variant."""
    peer = training.Peer(torch, given, model, batch)
    cuda = peer.device.type == "cuda"
    net = peer.network().eval()
    tables = [table.to(peer.type) for table in peer.tables()]
    on_host = [one.cpu().pin_memory() if cuda else one.cpu() for one in peer.batches.pool]
    scores = torch.empty(batch, pin_memory=cuda)
    indices, (dense, _) = peer.batches.indices(), peer.batches.numbers()

    def body():
        return torch.sigmoid(peer.logits(net, peer.rows_of(tables, indices), dense).float())

    def captured():
        call = torch.compile(body, dynamic=False, fullgraph=True)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(4):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = call()
        return lambda: (graph.replay(), out)[1]

    variants = {"eager": lambda: body, "compiled": lambda: torch.compile(body, dynamic=False, fullgraph=True)}
    if cuda:
        variants["captured"] = captured
    times = {}
    with torch.no_grad():
        for name in given.variants:
            if name not in variants:
                continue
            torch._dynamo.reset()
            call = variants[name]()

            def score(number):
                peer.batches.current.copy_(on_host[number % len(on_host)], non_blocking=True)
                scores.copy_(call(), non_blocking=True)
                if cuda:
                    torch.cuda.synchronize()

            for number in range(5):
                score(number)
            taken, of_processor, begin = [], [], time.perf_counter()
            while len(taken) < 7 or time.perf_counter() - begin < given.seconds:
                processor_start, start = time.process_time(), time.perf_counter()
                score(len(taken))
                taken.append(time.perf_counter() - start)
                of_processor.append(time.process_time() - processor_start)
            times[name] = {"us": statistics.median(taken) * 1e6, "processor us": statistics.median(of_processor) * 1e6}
            print(f"  {model} {batch} {name}: {times[name]['us']:.1f} us, processor {times[name]['processor us']:.1f} us", file=sys.stderr, flush=True)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda word: pathlib.Path(word).resolve(), help="the folder of huge_ctr, bench and data_generator")
    parser.add_argument("--models", nargs="+", choices=["wdl", "dcn", "deepfm", "dlrm"], default=["wdl", "dcn", "deepfm", "dlrm"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 64, 4096, 65536])
    parser.add_argument("--precision", choices=["fp32", "tf32", "half"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--without", nargs="*", default=[], help="methods on a GPU that huge_ctr does not use; names as in bench score --help")
    parser.add_argument("--variants", nargs="*", choices=["eager", "compiled", "captured"], default=["eager", "compiled", "captured"],
                        help="variants of PyTorch; none: only huge_ctr is measured")
    parser.add_argument("--threads", type=int, help="threads of both programs on a CPU; default: all cores")
    parser.add_argument("--rows", type=int, help="maximum rows of a table, for small machines")
    parser.add_argument("--alpha", type=float, default=1.05, help="exponent of the power law of keys")
    parser.add_argument("--samples", type=int, default=600000, help="maximum samples in the files of huge_ctr")
    parser.add_argument("--pool", type=int, default=8, help="distinct batches of PyTorch, which are used in turn")
    parser.add_argument("--seconds", type=float, default=1, help="seconds for which each cell of PyTorch is measured")
    parser.add_argument("--folder", type=pathlib.Path, help="folder for data and runs, which are kept; default: a temporary folder")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    given = parser.parse_args()
    given.steps = given.samples // max(given.batches) + 1  # so that write_ours() generates given.samples samples
    training = module("compare_pytorch")
    torch = None
    if given.variants:
        import torch  # imported after the arguments are parsed, because --help needs no torch

        if given.threads:
            torch.set_num_threads(given.threads)
    version, threads = (torch.__version__, torch.get_num_threads()) if torch else ("none", given.threads)
    print(f"torch {version}, {threads} threads, {given.device}, {given.precision}; load {os.getloadavg()[0]:.2f}", file=sys.stderr)
    rows = []
    with contextlib.nullcontext(given.folder.resolve()) if given.folder else tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        for model in given.models:
            ours = score_ours(given, model, training, pathlib.Path(folder))
            for batch in given.batches:
                own = {unit: ours[unit][batch] for unit in ours}
                print(f"  {model} {batch} huge_ctr: {own['us']:.1f} us, processor {own['processor us']:.1f} us", file=sys.stderr, flush=True)
                rows.append({"model": model, "batch": batch, "huge_ctr": own, "pytorch": score_theirs(torch, given, model, batch, training) if torch else {}})
    print("| model | batch | huge_ctr, us | PyTorch, us | variant | times as fast | by processor time |\n|---|---|---|---|---|---|---|")
    for row in rows:
        own = row["huge_ctr"]
        name, best = min(row["pytorch"].items(), key=lambda item: item[1]["us"], default=("", dict.fromkeys(own, math.nan)))
        by = {unit: best[unit] / own[unit] for unit in own}
        print(f"| {row['model']} | {row['batch']} | {own['us']:.1f} | {best['us']:.1f} | {name} | {by['us']:.2f} | {by['processor us']:.2f} |")
    if given.json:
        about = {"torch": version, "threads": threads, "device": given.device, "precision": given.precision}
        given.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
