#!/usr/bin/env python3
"""Writes random tables in many spellings, trains a model on one spelling, and scores all spellings.

    spellings.py [--bin build/cpu/bin] [--seconds 60] [--first 1]         seeds from 1 on, for a minute
    spellings.py --seeds 17,23 [--keep found]                             these seeds alone

A spelling is a file with the same values: text with other delimiters, quoted, compressed, with columns in another order
and numbers in another notation, or Parquet with other types. The scores of a spelling must equal the scores of the
first spelling in every digit, or the command must fail. With --altered there are also spellings whose values may be
read differently, such as 007 for 7 in a hashed slot. Then other scores are allowed if a message names the column.
Findings are printed with their seed, and their files are copied to the folder of --keep. Parquet is omitted if Python
has no pyarrow or huge_ctr has no plug-in.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from spelled_tables import random_table  # noqa: E402
from table_spellings import parquet_spellings, text_spellings  # noqa: E402


def model_layers(table):
    """A Data layer without its format, and a linear model of its dense values and embedding vectors."""
    slots, dense = len(table.slots), len(table.dense)
    data = {"type": "Data", "label": {"top": "label"}, "sparse": []}
    data["dense"] = {"top": "dense", "dense_dim": dense}
    layers, tops = [data], ["dense"] if dense else []
    if slots:
        data["sparse"] = [{"top": "keys", "nnz_per_slot": [column.longest for column in table.slots]}]
        hparam = {"embedding_vec_size": 3, "combiner": "sum"}
        layers.append(
            {
                "type": "DistributedSlotSparseEmbeddingHash",
                "bottom": "keys",
                "top": "rows",
                "sparse_embedding_hparam": hparam,
            }
        )
        layers.append({"type": "Reshape", "bottom": "rows", "top": "vectors", "leading_dim": 3 * slots})
        tops.append("vectors")
    if len(tops) > 1:
        layers.append({"type": "Concat", "bottom": tops, "top": "all"})
        tops = ["all"]
    layers.append({"type": "InnerProduct", "bottom": tops[0], "top": "logit", "fc_param": {"num_output": 1}})
    layers.append({"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"})
    return layers


def config_of(table, spelling):
    layers = model_layers(table)
    layers[0].update({"format": spelling.format, "source": spelling.file, "eval_source": spelling.file})
    layers[0][spelling.format.lower()] = spelling.section
    solver = {"max_iter": 8, "batchsize": 8, "batchsize_eval": 64, "display": 0, "eval_interval": 100, "seed": 3}
    solver.update({"snapshot_prefix": "model/", "input_key_type": "I64", "gpu": [0]})
    optimizer = {"type": "Adam", "adam_hparam": {"learning_rate": 0.3}}
    return {"solver": solver, "optimizer": optimizer, "layers": layers}


class Run:
    """Runs the programs in the folder of one seed."""

    def __init__(self, huge_ctr, folder):
        self.huge_ctr, self.folder = str(huge_ctr), folder

    def __call__(self, *words):
        command = [self.huge_ctr, *words, "--device", "cpu"]
        with open(self.folder / "commands.txt", "a") as file:
            print(*command, file=file)
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=120)
        if done.returncode < 0 or done.returncode == 70:
            raise Finding(f"{' '.join(words[:2])} ended with {done.returncode}: {done.stderr[-500:]}")
        return done


class Finding(Exception):
    """A violation of the rules in the module docstring."""


def problem_of(done):
    at = done.stderr.find("error (")
    return " ".join(done.stderr[max(at, 0) :].split())[:400]


def judge(spelling, done, scores, expected):
    """Returns the result of a spelling: "equal", "refused" or "said" (a message names the column). Raises a Finding."""
    if done.returncode != 0:
        if spelling.must:
            raise Finding(f"{spelling.name}: refused: {problem_of(done)}")
        return "refused"
    if scores == expected:
        return "equal"
    said = [line for line in done.stderr.splitlines() if any(name in line for name in spelling.altered)]
    if said:
        return "said"
    rows = [row for row, (a, b) in enumerate(zip(scores, expected)) if a != b][:3]
    pairs = ", ".join(f"row {row}: {scores[row]} for {expected[row]}" for row in rows)
    raise Finding(f"{spelling.name}: other scores in silence: {pairs or len(scores)}; altered: {spelling.altered}")


def try_seed(seed, huge_ctr, folder, altered):
    """Returns the number of spellings by result. Raises all findings together."""
    rng = random.Random(seed)
    table = random_table(rng)
    spellings = text_spellings(table, rng, folder)
    if (huge_ctr.parent / "libhuge_ctr_parquet.so").exists():
        spellings += parquet_spellings(table, rng, folder)
    spellings = [spelling for spelling in spellings if altered or not spelling.altered]
    run, found, counts = Run(huge_ctr, folder), [], {}
    for spelling in spellings:
        (folder / f"{spelling.name}.json").write_text(json.dumps(config_of(table, spelling), indent=1))
    first = rng.choice([spelling for spelling in spellings if spelling.must])
    trained = run("--train", f"{first.name}.json", "--run-dir", "run")
    if trained.returncode != 0:
        raise Finding(f"{first.name}: not trained: {problem_of(trained)}")
    expected = None
    for spelling in [first] + [spelling for spelling in spellings if spelling is not first]:
        out = folder / f"{spelling.name}.scores.csv"
        try:
            done = run(
                "--predict", f"{spelling.name}.json", "--model", "run", "--data", spelling.file, "--out", out.name
            )
            scores = out.read_text().splitlines() if out.exists() else []
            expected = scores if spelling is first else expected
            fared = judge(spelling, done, scores, expected)
            counts[fared] = counts.get(fared, 0) + 1
        except Finding as finding:
            found.append(str(finding))
    if found:
        raise Finding(f"trained on {first.name}\n  " + "\n  ".join(found))
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path(__file__).parent / "../../build/cpu/bin")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", help="numbers with commas between them; default: all from --first on")
    parser.add_argument("--altered", action="store_true", help="also spellings whose values may count as others")
    parser.add_argument("--keep", type=Path, default=Path("found"), help="a folder for the files of what is found")
    options = parser.parse_args()
    huge_ctr = (options.bin / "huge_ctr").resolve()
    seeds = [int(seed) for seed in options.seeds.split(",")] if options.seeds else None
    end, seed, tried, failed, counts = time.time() + options.seconds, options.first, 0, [], {}
    while tried < len(seeds) if seeds else time.time() < end:
        seed = seeds[tried] if seeds else options.first + tried
        folder = Path(tempfile.mkdtemp(prefix=f"spellings_{seed}_"))
        try:
            for fared, count in try_seed(seed, huge_ctr, folder, options.altered).items():
                counts[fared] = counts.get(fared, 0) + count
        except Finding as finding:
            failed.append(seed)
            kept = options.keep / f"seed_{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            print(f"seed {seed}, files in {kept}: {finding}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        tried += 1
    print(f"{tried} seeds, {counts}, failed: {','.join(map(str, failed)) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
