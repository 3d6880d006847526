#!/usr/bin/env python3
"""Runs tests of a built program in several processes until a time limit, and stores all output.

    test/limited.py build/cuda/bin/unit_tests OUT --filter '*cuda*' --jobs 8 --seconds 300
    test/limited.py build/cuda/bin/integration_tests OUT --filter '*TwoGpus*' --alone --rounds 3
    test/limited.py build/cuda/bin/unit_tests OUT --filter '*Softmax*' --under 'compute-sanitizer --tool racecheck --error-exitcode 9'

Made for machines that are available only for minutes. Results are complete up to the time limit. Prints each failed
test with its output, the last output of processes that crashed or were stopped, and the counts. Writes the whole output
of each process and not_run.txt to the folder OUT. --record FILE appends the results, with the device and the commit, to
a file in the format of test/gpu_runs.json, which test/gpu_runs.py merges. Exit code 1: a test failed or did not run.
"""
import argparse
import concurrent.futures
import datetime
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import gpu_runs

ENDED = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?=,? |,?$)", re.MULTILINE)  # test names may contain commas
# The output of one test, from its RUN line to its result line or to the end of the output.
OF_A_TEST = r"^\[ RUN      \] {}\n(.*?)(?=^\[ +(?:OK|FAILED|SKIPPED) +\] {}|\Z)"


# The environment without variables that would select or repeat tests.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}


def tests_of(program, pattern):
    """Names of all tests that match the filter."""
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True, text=True, check=True,
                            env=ENVIRONMENT).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  ") and suite:
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return names


def run(given, number, names, end):
    """Runs these tests in one process. Returns the result of each test, and the output."""
    log = given.out / f"{number}.log"
    command = shlex.split(given.under) + [given.program, "--gtest_filter=" + ":".join(names), f"--gtest_repeat={given.rounds}"]
    code = "not started, the time was over"
    if time.monotonic() < end:
        with open(log, "w") as out:
            try:
                code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=end - time.monotonic(), check=False,
                                      env=ENVIRONMENT).returncode
            except subprocess.TimeoutExpired:
                code = "stopped, the time was over"
    text = log.read_text(errors="replace") if log.exists() else ""
    seen = {name: [] for name in names}
    for result, name in ENDED.findall(text):
        if name in seen:
            seen[name].append(result)
    return number, code, seen, text


def output_of(text, name):
    found = re.findall(OF_A_TEST.format(re.escape(name), re.escape(name)), text, re.MULTILINE | re.DOTALL)
    return max(found, key=len, default="")  # a test with several rounds has several outputs; return the longest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--filter", default="*", help="of GoogleTest")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--alone", action="store_true", help="each test in a process of its own")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--under", default="", help="a program that runs the tests")
    parser.add_argument("--record", type=pathlib.Path, help="a file of runs, which gets this one")
    parser.add_argument("--commit", default="", help="of the program; default: that of this tree")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    given.out.mkdir(parents=True, exist_ok=True)
    names = tests_of(given.program, given.filter)
    if not names:
        sys.exit(f"no test of {given.program} fits '{given.filter}'")
    parts = [[name] for name in names] if given.alone else [names[i::given.jobs] for i in range(given.jobs) if names[i::given.jobs]]
    counts, failed = {"passed": 0, "skipped": 0, "failed": 0, "not run": 0}, False
    missing = []  # tests that did not run or complete
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, given, i, part, end) for i, part in enumerate(parts)]):
            number, code, seen, text = done.result()
            for name, results in seen.items():
                if "FAILED" in results:
                    counts["failed"] += 1
                    wrong.append(name)
                    print(f"FAILED {name}\n{output_of(text, name)[-4000:]}")
                elif len(results) < given.rounds:
                    counts["not run"] += 1
                    missing.append(name)
                else:
                    counts["skipped" if results[0] == "SKIPPED" else "passed"] += 1
            if code != 0:
                failed = True
                print(f"process {number}: {code if isinstance(code, str) else f'exit code {code}'}\n{text[-2000:]}")
    if given.record:
        entry = {"date": datetime.date.today().isoformat(), "commit": given.commit or gpu_runs.commit(), **gpu_runs.device(),
                 "program": pathlib.Path(given.program).name, "filter": given.filter, "under": given.under, "passed": counts["passed"],
                 "failed": sorted(wrong), "skipped": counts["skipped"], "not run": counts["not run"]}
        given.record.write_text(gpu_runs.text(gpu_runs.merged(gpu_runs.read(given.record), [entry])))
    (given.out / "not_run.txt").write_text("".join(name + "\n" for name in missing))
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f", {time.monotonic() + given.seconds - end:.0f} s")
    return 1 if failed or counts["failed"] or counts["not run"] else 0


if __name__ == "__main__":
    sys.exit(main())
