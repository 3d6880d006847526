#!/usr/bin/env python3
"""Measures the four models of the step table with one build of huge_ctr, or with two builds alternately, and checks
that results are unchanged.

    tools/bench/compare_builds.py build/cuda/bin --models wdl dlrm --precisions half tf32 --batches 2048 16384
    tools/bench/compare_builds.py build/cuda/bin --before ../before/build/cuda/bin --rounds 3
    tools/bench/compare_builds.py build/cuda/bin --ranks 2 --equal

Prints milliseconds per step for each model, precision and batch: medians of `bench step` or, with --ranks, of `bench
scale` with batches per rank. With --before, the two builds alternate --rounds times on the same data; figures are
medians over the rounds, and "spread" is the range over the rounds of one build.

--equal trains each model and precision three times with the build, the third time without CUDA graphs, and once with
the earlier build, if it has huge_ctr. It reports whether the final model files are identical byte by byte, and exits
with 1 if they are not.

Configs and data (power-law keys) are written to --folder, by default a temporary one; existing files are reused.
"""
import argparse
import filecmp
import json
import pathlib
import statistics
import sys
import tempfile

import model_configs
from compare_pytorch import run, shrink

MODELS, PRECISIONS = ("wdl", "dcn", "deepfm", "dlrm"), ("half", "bf16", "tf32", "tf32x3", "f32")


def arguments():
    folder = lambda word: pathlib.Path(word).resolve()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=folder, help="the folder of bench, huge_ctr and data_generator")
    parser.add_argument("--before", type=folder, help="the folder of another bench, to compare with")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["half"])
    parser.add_argument("--batches", nargs="+", type=int, default=[512, 2048, 16384, 65536], help="samples of a step per rank")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--times", type=int, default=200, help="steps per round")
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--samples", type=int, default=1000000, help="samples in the files of a model")
    parser.add_argument("--rows", type=int, help="maximum rows of a slot, for small machines")
    parser.add_argument("--alpha", type=float, default=1.05, help="exponent of the power law of keys")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--equal", action="store_true", help="also compare the models of repeated runs and of a run without CUDA graphs")
    parser.add_argument("--equal-steps", type=int, default=40)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    given = parser.parse_args()
    for name in ("ranks", "rounds", "samples", "equal_steps", *(["rows"] if given.rows is not None else [])):
        if getattr(given, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: at least 1")
    if min(given.batches) < 1:
        parser.error("--batches: at least 1 sample each")
    needed = [given.programs / name for name in ("bench", "data_generator", *(["huge_ctr"] if given.equal else []))]
    for path in needed + ([given.before / "bench"] if given.before else []):
        if not path.is_file():
            parser.error(f"there is no {path}")
    return given


def write_config(given, model, precision, folder, **solver):
    """Writes the config, and returns its path."""
    config = model_configs.step_model(model, precision)
    shrink(config, given.rows)
    config["solver"].update(gpu=list(range(given.ranks)), eval_interval=0, **solver)
    config["layers"][0].pop("eval_source", None)
    path = folder / f"{model}_{precision}{'_equal' if solver else ''}.json"
    path.write_text(json.dumps(config, indent=1) + "\n")
    return path


def make_data(given, model, config, folder):
    if not (folder / f"{model}_train.txt").exists():
        run([given.programs / "data_generator", "--config", config, "--samples", given.samples, "--alpha", given.alpha], folder)


def step_ms(given, programs, config, batch, folder):
    """Milliseconds per step in one round."""
    figures = folder / "figures.json"
    command = [programs / "bench"] + (["step"] if given.ranks == 1 else ["scale"])
    command += [config, "--batch", batch, "--warm-up", given.warm_up, "--times", given.times, "--device", given.device, "--json", figures]
    run(command + (["--ranks", given.ranks] if given.ranks > 1 else []), folder)
    return next(one["value"] for one in json.loads(figures.read_text())["figures"] if one["what"] == "training step")


def spread(times):
    return (max(times) - min(times)) / statistics.median(times)


def measure(given, model, precision, config, folder):
    """The figures of one model in one precision, a row for each batch."""
    rows = []
    for batch in given.batches:
        builds = {"before": given.before, "now": given.programs} if given.before else {"now": given.programs}
        times = {name: [] for name in builds}
        for _ in range(given.rounds):
            for name, programs in builds.items():
                times[name].append(step_ms(given, programs, config, batch, folder))
        medians = {name: statistics.median(of) for name, of in times.items()}
        row = [model, precision, str(batch)] + [f"{value:.3f}" for value in medians.values()]
        if given.before:
            row.append(f"{medians['now'] / medians['before'] - 1:+.1%}")
        print(f"| {' | '.join(row)} | {max(map(spread, times.values())):.1%} |", flush=True)
        rows.append({"model": model, "precision": precision, "batch": batch, "ms": times})
    return rows


def models_differ(given, model, precision, folder):
    """The names of model files that differ between runs, each with a description of the run."""
    batch = given.ranks * min(given.batches)

    def train(name, programs=given.programs, **solver):
        prefix = folder / f"{model}_{precision}_{name}"
        config = write_config(given, model, precision, folder, batchsize=batch, max_iter=given.equal_steps, display=given.equal_steps,
                              snapshot_prefix=f"{prefix}/", **solver)
        run([programs / "huge_ctr", "--train", config, "--device", given.device, "--run-dir", f"{prefix}_run"], folder)
        return prefix

    first, differing = train("first"), []
    files = sorted(path.name for path in first.iterdir() if path.suffix == ".model")
    if not files:
        sys.exit(f"{first} has no model")
    runs = {"rerun": {}, "unrecorded": {"cuda_graph": False}}
    if given.before and (given.before / "huge_ctr").is_file():
        runs["before"] = {"programs": given.before}
    for name, options in runs.items():
        other = train(name, **options)
        differing += [f"{file} ({name})" for file in files if not filecmp.cmp(first / file, other / file, shallow=False)]
    return differing


def main():
    given = arguments()
    results, different = [], False
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder.resolve() if given.folder else pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| model | precision | batch | " + ("before, ms | now, ms | change" if given.before else "ms a step") + " | spread |")
        print("|---" * (7 if given.before else 5) + "|")
        cells = [(model, precision) for model in given.models for precision in given.precisions]
        for model, precision in cells:
            config = write_config(given, model, precision, folder)
            make_data(given, model, config, folder)
            results += measure(given, model, precision, config, folder)
        for model, precision in cells if given.equal else []:
            differing = models_differ(given, model, precision, folder)
            different = different or bool(differing)
            print(f"{model}, {precision}: " + (f"differ: {', '.join(differing)}" if differing else "models are equal"), flush=True)
    if given.json:
        given.json.write_text(json.dumps({"ranks": given.ranks, "rows": results}, indent=1) + "\n")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
