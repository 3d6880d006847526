#!/usr/bin/env python3
"""Measures DLRM's steps against the share of its rows that are on the GPU; the others are in host memory.

    tools/bench/table_memory_curve.py FOLDER [--gib 8] [--batch 16384] [--shares 100,50,20,10,5] [--bin build/cuda/bin]

Writes the config and data into FOLDER. All rows exist from the start (direct keys), 128 floats each, SGD; keys follow a
power law with the exponent 1.05. Rows lie in the order of slots, those of the first slots on the GPU.
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
    parser.add_argument("--batch", type=int, default=16384)
    parser.add_argument("--alpha", default="1.05", help="exponent of the power law of keys")
    parser.add_argument("--shares", default="100,50,20,10,5", help="per cent of the rows on the GPU")
    parser.add_argument("--times", default="100", help="steps to measure")
    parser.add_argument("--samples", type=int, default=0, help="of the data; left out: eight batches")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/cuda/bin"))
    return parser.parse_args()


def main():
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    programs = given.bin.resolve()
    config = large_dlrm("table_memory", given.gib, 1, batch=given.batch)
    table = next(layer for layer in config["layers"] if "sparse_embedding_hparam" in layer)["sparse_embedding_hparam"]
    row_bytes = sum(table["slot_size_array"]) * table["embedding_vec_size"] * 4
    path = given.folder / "config.json"
    path.write_text(json.dumps(config, indent=1))
    samples = given.samples or 8 * given.batch
    subprocess.run([programs / "data_generator", "--config", "config.json", "--samples", str(samples), "--eval-samples",
                    "1000", "--alpha", given.alpha], cwd=given.folder, check=True, stdout=subprocess.DEVNULL)
    print(f"{'on the GPU':>10} {'ms':>9} {'M samples/s':>12}")
    for share in given.shares.split(","):
        config["solver"]["table_memory"] = {"gpu": f"{int(row_bytes * float(share) / 100) + (64 << 20) * (share == '100')}B",
                                            "host": f"{int(row_bytes * 1.01) + (64 << 20)}B"}
        path.write_text(json.dumps(config, indent=1))
        subprocess.run([programs / "bench", "step", "config.json", "--times", given.times, "--warm-up", "8", "--device",
                        given.device, "--json", "figures.json"], cwd=given.folder, check=True, stdout=subprocess.DEVNULL)
        figures = json.loads((given.folder / "figures.json").read_text())["figures"]
        ms = next(figure["value"] for figure in figures if figure["what"] == "training step")
        print(f"{share + ' %':>10} {ms:9.3f} {given.batch / ms / 1000:12.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
