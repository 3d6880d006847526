#!/usr/bin/env python3
"""Compares Trainer.step() on arrays in GPU memory with `huge_ctr --train` on files, for DCN and DLRM of the step table.

    tools/bench/trainer_arrays.py build/cuda/bin --models dcn dlrm --batches 2048 16384

The arrays are tensors of PyTorch on the GPU, with keys of the same distribution as the files. With --arrays cupy or jax
they become arrays of that library, which shares the memory by DLPack. One call of step() trains
on the samples of several batches. PyTorch's profiler then records calls with one batch each, and the script prints how
many bytes each call copies from host to GPU and from GPU to host. Labels go to the host, where the trainer checks them.
HUGE_CTR_LIBRARY and PYTHONPATH select the Python package, as for its tests.
"""
import argparse
import importlib
import json
import os
import pathlib
import statistics
import tempfile
import time

import compare_pytorch
import huge_ctr
import torch
from pytorch_parts import Batches


def converter(library):
    """Returns a function that converts a tensor of PyTorch to an array of the library, in the same memory."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX takes most of the GPU's memory otherwise
    module = importlib.import_module(library)
    if library == "jax":
        module.config.update("jax_enable_x64", True)
        return importlib.import_module("jax.dlpack").from_dlpack
    return module.from_dlpack


def draw(samples, config, alpha):
    """Draws samples. Returns their tensors by the names that the inputs have in the configs of the step table."""
    data = config["layers"][0]
    pool = Batches(1, samples, data["slot_size_array"], False, alpha, "cuda")
    keys, = pool.indices()
    dense, label = pool.numbers()
    sparse, = data["sparse"]
    return {data["label"]["top"]: label.view(-1, 1).contiguous(), data["dense"]["top"]: dense.contiguous(), sparse["top"]: keys.contiguous()}


def step_ms(trainer, arrays, batches, rounds):
    """Median milliseconds per step over the rounds. A round is one call with `batches` batches."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        trainer.step(arrays)
        times.append((time.perf_counter() - begin) / batches * 1e3)
    return statistics.median(times)


def copied_bytes(trainer, arrays, calls):
    """Returns the bytes that each call copies, by direction."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with tempfile.TemporaryDirectory() as folder:
        with torch.profiler.profile(activities=activities) as profile:
            for _ in range(calls):
                trainer.step(arrays)
        path = pathlib.Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    copies = [event for event in events if event.get("cat") == "gpu_memcpy"]
    kernels = sum(event.get("cat") == "kernel" for event in events)
    if not kernels:
        raise SystemExit("PyTorch's profiler recorded no kernel")
    sums = {way: sum(event["args"]["bytes"] for event in copies if way in event["name"]) / calls for way in ("HtoD", "DtoH", "DtoD")}
    return sums, kernels / calls


def measure(given, config, batch, library, files):
    """The cells of a row after the name of the library. `files`: milliseconds per step of `huge_ctr --train`."""
    config = json.loads(json.dumps(config))
    config["solver"].update(batchsize=batch)
    config["layers"][0].pop("source", None)
    convert = (lambda tensor: tensor) if library == "torch" else converter(library)
    with huge_ctr.Trainer(config, device="cuda") as trainer:
        tensors = draw(batch * given.batches_per_call, config, given.alpha)
        first = {key: value[:batch].contiguous() for key, value in tensors.items()}
        inputs = sum(value.numel() * value.element_size() for value in first.values())
        torch.cuda.synchronize()
        many, one = ({key: convert(value) for key, value in some.items()} for some in (tensors, first))
        step_ms(trainer, many, given.batches_per_call, 3)  # after these calls all rows exist, and steps are recorded
        arrays = step_ms(trainer, many, given.batches_per_call, given.rounds)
        single = step_ms(trainer, one, 1, 50)
        sums, kernels = copied_bytes(trainer, one, 10)
    copied = ", ".join(f"{way} {count:.0f} B" for way, count in sums.items())
    return f"{files:.3f} | {arrays:.3f} | {arrays / files - 1:+.1%} | {single:.3f} | {copied} of {inputs} B; {kernels:.0f} kernels"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda word: pathlib.Path(word).resolve(), help="the folder of huge_ctr and data_generator")
    parser.add_argument("--models", nargs="+", choices=("dcn", "deepfm", "dlrm"), default=["dcn", "dlrm"])
    parser.add_argument("--batches", nargs="+", type=int, default=[2048, 16384])
    parser.add_argument("--arrays", nargs="+", choices=("torch", "cupy", "jax"), default=["torch"])
    parser.add_argument("--precision", default="half")
    parser.add_argument("--steps", type=int, default=600, help="steps of `huge_ctr --train`")
    parser.add_argument("--batches-per-call", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    given.alpha, given.samples, given.device, given.rows, given.threads = 1.05, 1000000, "cuda", None, None
    print("| model | batch | arrays of | --train, ms | step(arrays), ms | change | one batch per call, ms | copied per call of one batch |")
    print("|---" * 8 + "|")
    for model in given.models:
        with tempfile.TemporaryDirectory() as name:
            config = compare_pytorch.write_ours(given, model, given.batches, pathlib.Path(name))
            for batch in given.batches:
                files = compare_pytorch.train_ours(given, model, config, batch, pathlib.Path(name))
                for library in given.arrays:
                    print(f"| {model} | {batch} | {library} | {measure(given, config, batch, library, files)} |", flush=True)


if __name__ == "__main__":
    main()
