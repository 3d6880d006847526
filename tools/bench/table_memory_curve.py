#!/usr/bin/env python3
"""Measures DLRM's training speed as a function of the fraction of its rows that fit on the GPU; the other rows are in
host memory.

    tools/bench/table_memory_curve.py FOLDER [--gib 8] [--batches 16384,65536] [--alphas 1.05,1.2]
                                             [--shares 100,50,20,10,5] [--move-every 128] [--bin build/cuda/bin]

Writes configs, data and run folders into FOLDER. All rows exist from the start (direct keys), with 128 floats each, SGD
and fp16; keys follow a power law. Rows move between GPU and host during training, according to their access counts.
Figures are means over the last third of the steps.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from model_configs import large_dlrm


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gib", type=float, default=8, help="of all rows")
    parser.add_argument("--batches", default="16384,65536", help="samples of a step")
    parser.add_argument("--alphas", default="1.05,1.2", help="exponents of the power law of keys")
    parser.add_argument("--shares", default="100,50,20,10,5", help="per cent of the rows that fit on the GPU")
    parser.add_argument("--move-every", type=int, default=128, help="\"move_every\" of \"table_memory\"; 0: rows stay")
    parser.add_argument("--steps", type=int, default=2048, help="to train, for each figure")
    parser.add_argument("--samples", type=int, default=16_000_000, help="of the data, which repeat; few of them flatter")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/cuda/bin"))
    return parser.parse_args()


def mean(lines, name, missing):
    values = [line.get(name, missing) for line in lines]
    return sum(values) / len(values)


def measure(given, config, run):
    """Returns, for the end of a run: samples per second, the fraction of reads from the GPU, the reader's waiting time,
    and the rows moved.
    """
    programs = given.bin.resolve()
    (given.folder / "config.json").write_text(json.dumps(config, indent=1))
    subprocess.run([programs / "huge_ctr", "--train", "config.json", "--run-dir", run, "--device", given.device], cwd=given.folder,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (given.folder / run / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if line["kind"] == "train"]
    last = trained[-max(1, len(trained) // 3):]
    moved = [line["rows_moved_to_gpu"] for line in lines if line["kind"] == "table" and "rows_moved_to_gpu" in line]
    return (mean(last, "samples_per_second", 0), mean(last, "reads_from_gpu", 1), mean(last, "reader_wait", 0), moved[-1] if moved else 0)


def main():
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    programs = given.bin.resolve()
    print(f"{'alpha':>6} {'batch':>6} {'fit':>6} {'ms':>9} {'M samples/s':>12} {'reads from GPU':>15} {'reader waits':>13} {'rows moved':>11}")
    for alpha in given.alphas.split(","):
        name = f"table_memory_{alpha}"
        generated = False
        for batch in map(int, given.batches.split(",")):
            config = large_dlrm(name, given.gib, 1, batch=batch, iterations=given.steps)
            table = next(layer for layer in config["layers"] if "sparse_embedding_hparam" in layer)["sparse_embedding_hparam"]
            row_bytes = sum(table["slot_size_array"]) * table["embedding_vec_size"] * 4
            config["solver"].update(display=max(1, given.steps // 24), final_snapshot=False)
            config["layers"][0].update(format="Raw", source=f"{name}.raw", eval_source=f"{name}_eval.raw", num_samples=given.samples,
                                       eval_num_samples=1000, float_label_dense=True)
            config["layers"][0].pop("check")
            if not generated:
                (given.folder / "config.json").write_text(json.dumps(config, indent=1))
                subprocess.run([programs / "data_generator", "--config", "config.json", "--samples", str(given.samples), "--eval-samples",
                                "1000", "--alpha", alpha], cwd=given.folder, check=True, stdout=subprocess.DEVNULL)
                generated = True
            for share in given.shares.split(","):
                # The "gpu" budget: this share of the rows. `besides`: positions, numbers, access counts and marks of
                # all rows.
                besides = 16 * sum(table["slot_size_array"]) + (64 << 20)
                on_gpu = int(row_bytes * float(share) / 100) + besides
                config["solver"]["table_memory"] = {"gpu": f"{on_gpu}B", "host": f"{int(row_bytes * 1.01) + (64 << 20)}B",
                                                    "move_every": given.move_every}
                rate, hits, wait, moved = measure(given, config, f"run_{alpha}_{batch}_{share}")
                print(f"{alpha:>6} {batch:>6} {share + ' %':>6} {batch / rate * 1000:9.3f} {rate / 1e6:12.3f} {100 * hits:13.1f} % "
                      f"{100 * wait:11.1f} % {moved:>11}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
