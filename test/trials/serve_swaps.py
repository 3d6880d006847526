#!/usr/bin/env python3
"""Replaces the model of a service many times under load. Compares latency and resources with those without swaps.

    test/trials/serve_swaps.py build/cpu/bin                        # 1,000 versions in 600 seconds
    test/trials/serve_swaps.py build/cpu/bin --versions 20 --seconds 12

First measures the capacity of the service. Then requests arrive at random times at half of this rate, over HTTP, in
rounds: a fourth of the time without swaps, then with swaps. The trial fails if a request or a load fails, if memory,
descriptors or threads grow, or if p99 with swaps is more than twice the p99 without swaps (medians of the rounds).
--no-latency skips the last check, for busy machines.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

from serve_rig import Load, load_average, raw, start_ours, train

# Memory, descriptors and threads count as constant if they grow by no more than this in the second half of the rounds.
MIB, DESCRIPTORS, THREADS = 8, 4, 2


def swap(folder, port, number):
    """Adds version `number`, loads it, and removes the previous version."""
    models = os.path.join(folder, "models/ctr")
    run = "run" if number % 2 == 1 else "run2"
    os.symlink(os.path.join(folder, run), os.path.join(models, str(number)))
    begin = time.monotonic()
    status, body = raw(port, "POST", "/v2/repository/models/ctr/load", b"{}")
    taken = time.monotonic() - begin
    if status != 200:
        sys.exit(f"version {number} was not loaded: {body.decode()}")
    os.remove(os.path.join(models, str(number - 1)))
    return taken


def swaps(folder, port, first, count, seconds, times):
    """Loads `count` versions from the number `first` on, at equal intervals."""
    begin = time.monotonic()
    for done in range(count):
        time.sleep(max(0, begin + done * seconds / count - time.monotonic()))
        times.append(swap(folder, port, first + done))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", help="folder of huge_ctr and bench")
    parser.add_argument("--versions", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600, help="duration of the swaps")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--no-latency", action="store_true", help="do not compare p99")
    options = parser.parse_args()
    program, bench = (os.path.join(os.path.abspath(options.bin), name) for name in ("huge_ctr", "bench"))
    with tempfile.TemporaryDirectory() as folder:
        train(program, folder, (1, 2))
        server, ports = start_ours(program, folder, ["--threads", "1"], options.device)
        address = f"127.0.0.1:{ports[0]}"
        full = Load(bench, "ctr", address, folder, "full", "--clients", 4, "--seconds", 2).result()["requests"]

        def load(seconds):  # bench uses the first sixth of the time as warm-up
            return Load(bench, "ctr", address, folder, "load", "--clients", options.clients, "--rate", full / 2,
                        "--seconds", seconds * 5 / 6)

        print(f"capacity {full:.0f} requests/s; requests at random times, {full / 2:.0f} per second")
        seen, times, quiet, busy = [server.resources()], [], [], []
        each, number = options.seconds / options.rounds, 2
        for done in range(1, options.rounds + 1):
            quiet.append(load(each / 3).result())
            count = options.versions * done // options.rounds - (number - 2)
            running = load(each)
            swaps(folder, ports[0], number, count, each, times)
            number += count
            busy.append(running.result())
            seen.append(server.resources())
            print(f"{number - 2:4} versions: p50 {quiet[-1]['p50']:.2f}, p99 {quiet[-1]['p99']:.2f} ms without swaps; "
                  f"p50 {busy[-1]['p50']:.2f}, p99 {busy[-1]['p99']:.2f} ms with swaps; {seen[-1]['MiB']:.1f} MiB, "
                  f"{seen[-1]['descriptors']} descriptors, {seen[-1]['threads']} threads; {load_average()}", flush=True)
        longest = max(range(len(times)), key=times.__getitem__)
        print(f"a load took {statistics.median(times) * 1000:.0f} ms (median), at most {times[longest] * 1000:.0f} ms "
              f"(version {longest + 2})")
        if server.stop() != 0:
            sys.exit("the server did not end with 0")
        half = (len(seen) + 1) // 2
        problems = [f"{what} grew from {seen[half][what]:.0f} to {seen[-1][what]:.0f} in the second half"
                    for what, most in (("MiB", MIB), ("descriptors", DESCRIPTORS), ("threads", THREADS))
                    if seen[-1][what] > seen[half][what] + most]
        without, with_swaps = (statistics.median(one["p99"] for one in all_rounds) for all_rounds in (quiet, busy))
        print(f"p99: {without:.2f} ms without swaps, {with_swaps:.2f} ms with swaps (medians)")
        if not options.no_latency and with_swaps > 2 * without:
            problems.append("p99 more than doubled")
        if problems:
            sys.exit("; ".join(problems))
        print("no request failed")


if __name__ == "__main__":
    main()
