#!/usr/bin/env python3
"""Test runs on GPUs in test/gpu_runs.json: one entry for each run of test/limited.py --record, newest first.

    test/gpu_runs.py merge FILE [FILE ...]    adds entries of another machine; an entry replaces older entries of the same tests on the same device
    test/gpu_runs.py page                     writes docs/gpu_runs.md
"""
import json
import pathlib
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parent
RUNS = TEST / "gpu_runs.json"
PAGE = TEST.parent / "docs/gpu_runs.md"


def device():
    """Name, count and driver of the GPUs of this machine. Without a driver, the name is "none"."""
    try:
        listed = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                                check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        return {"device": "none", "gpus": 0, "driver": ""}
    rows = [row.split(", ") for row in listed if row]
    return {"device": rows[0][0], "gpus": len(rows), "driver": rows[0][1]}


def commit():
    found = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=TEST, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def key(run):
    return run["program"], run["filter"], run["under"], run["device"], run["gpus"]


def merged(runs, others):
    """Merges two lists of entries. For equal tests on equal devices, keeps the newest entry."""
    newest = {}
    for run in sorted(runs + others, key=lambda run: run["date"]):
        newest[key(run)] = run
    return sorted(newest.values(), key=lambda run: (run["date"], key(run)), reverse=True)


def text(runs):
    return json.dumps({"schema": 1, "runs": runs}, indent=1) + "\n"


def read(path):
    return json.loads(pathlib.Path(path).read_text())["runs"] if pathlib.Path(path).exists() else []


def page(runs):
    lines = ["# What ran on GPUs", "", "This page lists the tests that ran on a GPU, with the last run of each selection. CI has no GPU, so commits that are not",
             "listed were tested on CPUs alone. `test/gpu_runs.py page` generates the page from",
             "[test/gpu_runs.json](../test/gpu_runs.json). `test/limited.py --record` writes the records in that file.",
             "", "| Date | Commit | Device | Tests | Passed | Failed | Skipped | Not run |", "|---|---|---|---|---|---|---|---|"]
    for run in runs:
        what = f"`{run['program']}`" + (f" `{run['filter']}`" if run["filter"] != "*" else "") + (f" under {run['under'].split()[0]}" if run["under"] else "")
        where = run["device"] + (f" x {run['gpus']}" if run["gpus"] > 1 else "") + f", driver {run['driver']}"
        failed = ", ".join(f"`{name}`" for name in run["failed"][:2]) or "0"
        if len(run["failed"]) > 2:
            failed += f" and {len(run['failed']) - 2} more"
        lines.append(f"| {run['date']} | {run['commit']} | {where} | {what} | {run['passed']} | {failed} | {run['skipped']} | {run['not run']} |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "merge":
        runs = read(RUNS)
        for path in sys.argv[2:]:
            runs = merged(runs, read(path))
        RUNS.write_text(text(runs))
        PAGE.write_text(page(runs))
    elif sys.argv[1:] == ["page"]:
        PAGE.write_text(page(read(RUNS)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
