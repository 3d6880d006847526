#!/usr/bin/env python3
"""Counts what a step of huge_ctr.torch does on a GPU: kernels, copies and waits, and the host's time.

    tools/bench/torch_step_profile.py [--case mixed] [--python]

Uses the tables of a case of compare_torchrec.py. Prints the host's time for forward and backward, and the part of it
spent in libhuge_ctr.so: after a wait for the GPU, and with steps queued one after another. On a GPU also prints the
kernels of one step in order, with their times.
"""

import argparse
import cProfile
import pstats
import re
import time

import compare_torchrec as bench
import torch


class InLibrary:
    """Adds up the time of the library's calls of a step."""

    def __init__(self, tables):
        self.seconds = 0.0
        for name in ("_forward", "_update"):
            setattr(tables, name, self.measured(getattr(tables, name)))

    def measured(self, call):
        def timed(*arguments):
            start = time.perf_counter()
            status = call(*arguments)
            self.seconds += time.perf_counter() - start
            return status

        return timed


def queued(ours, keys, gradient, library, wait):
    """The host's microseconds for a step, and the library's part, if steps are queued one after another."""
    wait()
    library.seconds, start = 0.0, time.perf_counter()
    for _ in range(200):
        ours.step(keys, gradient)
    host = time.perf_counter() - start
    wait()
    return [1e6 * seconds / 200 for seconds in (host, library.seconds, time.perf_counter() - start)]


def short(kernel):
    """The name of the function that a kernel runs."""
    found = re.search(r"&[^&]*?hctr::(?:ops|cuda)::(?:\(anonymous namespace\)::)?(\w+)", kernel)
    return found.group(1) if found else kernel[:60]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="small")
    parser.add_argument("--python", action="store_true", help="also print Python's profile of 200 steps")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--one-thread", action="store_true", help="backward passes run in the thread that calls them")
    options = parser.parse_args()
    torch.autograd.set_multithreading_enabled(not options.one_thread)
    case = next(one for one in bench.cases(options.device) if one.group == options.case)
    ours = bench.Ours(case.shape, "sgd", options.device, True)
    gradient = bench.gradient_of(case.shape, options.device)
    keys = ours.prepare(case.shape.batch(0, options.device))
    for _ in range(10):
        ours.step(keys, gradient)
    parts, library = [[], []], InLibrary(ours.bags._engine.set())
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for _ in range(50):
        wait()
        marks = [time.perf_counter()]
        out = ours.bags(keys).values()
        marks.append(time.perf_counter())
        out.backward(gradient)
        marks.append(time.perf_counter())
        for part, before, after in zip(parts, marks, marks[1:]):
            part.append(after - before)
    forward, backward = (1e6 * sorted(part)[25] for part in parts)
    print(f"host: forward {forward:.0f} us, backward {backward:.0f} us (medians)")
    print(f"host: libhuge_ctr {1e6 * library.seconds / 50:.0f} us of these (mean)")
    host, of_library, whole = queued(ours, keys, gradient, library, wait)
    print(f"queued steps: host {host:.0f} us, libhuge_ctr {of_library:.0f} us of these; {whole:.0f} us a step")
    if options.python:
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(200):
            ours.step(keys, gradient)
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    if options.device == "cuda":
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=kinds) as profile:
            ours.step(keys, gradient)
            wait()
        events = profile.events()
        kernels = [one for one in events if one.device_type == torch.autograd.DeviceType.CUDA]
        waits = [one for one in events if "Synchronize" in one.name]
        print(f"a step: {len(kernels)} kernels and copies, {len(waits) - 1} waits of the host")
        for one in sorted(kernels, key=lambda event: event.time_range.start):
            print(f"  {one.time_range.elapsed_us():8.2f} us  {short(one.name)}")
        begin = min(one.time_range.start for one in kernels)
        print(f"  {max(one.time_range.end for one in kernels) - begin:8.2f} us  from the first to the last")


if __name__ == "__main__":
    main()
