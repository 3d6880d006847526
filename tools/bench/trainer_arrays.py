#!/usr/bin/env python3
"""Compares Trainer.step() on arrays in GPU memory with `huge_ctr --train` on files, for DCN and DLRM of the step table.

    tools/bench/trainer_arrays.py build/cuda/bin --models dcn dlrm --batches 2048 16384

The arrays are tensors of PyTorch on the GPU, with keys of the same distribution as the files. One call of step() trains
on the samples of several batches. PyTorch's profiler then records calls with one batch each, and the script prints how
many bytes each call copies from host to GPU and from GPU to host. Labels go to the host, where the trainer checks them.
HUGE_CTR_LIBRARY and PYTHONPATH select the Python package, as for its tests.
"""
import argparse
import json
import pathlib
import statistics
import tempfile
import time

import compare_pytorch
import huge_ctr
import torch


def draw(samples, config, alpha):
    """The arrays of one set of samples, by input name of the four step models."""
    data = config["layers"][0]
    pool = compare_pytorch.Batches(torch, 1, samples, data["slot_size_array"], False, alpha, "cuda")
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
    """Bytes per call that are copied in each direction."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda word: pathlib.Path(word).resolve(), help="the folder of huge_ctr and data_generator")
    parser.add_argument("--models", nargs="+", choices=("dcn", "deepfm", "dlrm"), default=["dcn", "dlrm"])
    parser.add_argument("--batches", nargs="+", type=int, default=[2048, 16384])
    parser.add_argument("--precision", default="half")
    parser.add_argument("--steps", type=int, default=600, help="of `huge_ctr --train`")
    parser.add_argument("--batches-per-call", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    given.alpha, given.samples, given.device, given.rows, given.threads = 1.05, 1000000, "cuda", None, None
    print("| model | batch | --train, ms | step(arrays), ms | change | one batch per call, ms | copied per call of one batch |")
    print("|---" * 7 + "|")
    for model in given.models:
        with tempfile.TemporaryDirectory() as name:
            config = compare_pytorch.write_ours(given, model, given.batches, pathlib.Path(name))
            for batch in given.batches:
                files = compare_pytorch.train_ours(given, model, config, batch, pathlib.Path(name))
                memory = json.loads(json.dumps(config))
                memory["solver"].update(batchsize=batch)
                memory["layers"][0].pop("source", None)
                with huge_ctr.Trainer(memory, device="cuda") as trainer:
                    many = draw(batch * given.batches_per_call, config, given.alpha)
                    one = {key: value[:batch].contiguous() for key, value in many.items()}
                    torch.cuda.synchronize()
                    step_ms(trainer, many, given.batches_per_call, 3)  # all rows exist, and steps are recorded
                    arrays = step_ms(trainer, many, given.batches_per_call, given.rounds)
                    single = step_ms(trainer, one, 1, 50)
                    sums, kernels = copied_bytes(trainer, one, 10)
                copied = ", ".join(f"{way} {count:.0f} B" for way, count in sums.items())
                inputs = sum(value.numel() * value.element_size() for value in one.values())
                print(f"| {model} | {batch} | {files:.3f} | {arrays:.3f} | {arrays / files - 1:+.1%} | {single:.3f} | {copied} of {inputs} B; "
                      f"{kernels:.0f} kernels |", flush=True)


if __name__ == "__main__":
    main()
