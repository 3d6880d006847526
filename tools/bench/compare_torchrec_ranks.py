#!/usr/bin/env python3
"""Compares the times of embedding steps of huge_ctr.torch and of TorchRec with table-wise placement, on several ranks.

    torchrun --nproc-per-node 2 tools/bench/compare_torchrec_ranks.py                  # two GPUs
    torchrun --nproc-per-node 2 tools/bench/compare_torchrec_ranks.py --device cpu     # smaller shapes

Each process has its own samples and keys. A step is forward, backward and update by SGD of 26 tables of DLRM with dim
128, with a given gradient: keys go to the ranks with their rows, vectors and gradients back. Times are the medians of
groups of steps, of the slowest rank. Peers:

hashed    huge_ctr.torch with arbitrary 64-bit keys; tables are whole or spread by size
whole     huge_ctr.torch with row numbers, each table on one rank
spread    huge_ctr.torch with row numbers, each table spread over all ranks
torchrec  TorchRec with row numbers, each table on one rank (needs torchrec and fbgemm_gpu)
"""

import argparse
import gc
import os
import statistics
import time

import torch
import torch.distributed as dist
from compare_torchrec import BATCHES, DLRM_ROWS, Clock, gradient_of
from torchrec_peers import Ours, Shape

PLACES = {"hashed": {}, "whole": {"placement": "whole"}, "spread": {"placement": "spread"}}


class TorchRec:
    """TorchRec's tables, each on one rank as its planner decides."""

    def __init__(self, shape, device):
        from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
        from torchrec.distributed.model_parallel import DistributedModelParallel
        from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
        from torchrec.distributed.types import ShardingType
        from torchrec.modules.embedding_configs import EmbeddingBagConfig
        from torchrec.modules.embedding_modules import EmbeddingBagCollection
        from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

        self.names = [f"f{i}" for i in range(len(shape.tables))]
        tables = [
            EmbeddingBagConfig(name=f"t{i}", embedding_dim=dim, num_embeddings=rows, feature_names=[self.names[i]])
            for i, (rows, dim) in enumerate(shape.tables)
        ]
        bags = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
        apply_optimizer_in_backward(torch.optim.SGD, bags.parameters(), {"lr": 0.01})
        kind = "cpu" if device == "cpu" else "cuda"
        size = dist.get_world_size()
        topology = Topology(world_size=size, compute_device=kind, local_world_size=size)
        only = ParameterConstraints(sharding_types=[ShardingType.TABLE_WISE.value], compute_kernels=["fused"])
        planner = EmbeddingShardingPlanner(topology=topology, constraints={one.name: only for one in tables})
        sharders = [EmbeddingBagCollectionSharder()]
        plan = planner.collective_plan(bags, sharders, dist.GroupMember.WORLD)
        self.bags = DistributedModelParallel(bags, device=torch.device(device), plan=plan, sharders=sharders)
        self.lengths = torch.ones(len(shape.tables) * shape.samples, dtype=torch.int32, device=device)

    def prepare(self, numbers):
        from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

        return KeyedJaggedTensor(keys=self.names, values=numbers.flatten(), lengths=self.lengths)

    def step(self, keys, gradient):
        self.bags(keys).values().backward(gradient)


def peer_of(name, shape, device):
    if name == "torchrec":
        return TorchRec(shape, device)
    return Ours(shape, "sgd", device, name == "hashed", config_words=PLACES[name])


def slowest(milliseconds, device):
    """Returns the largest value over all ranks."""
    value = torch.tensor([milliseconds], dtype=torch.float64, device=device)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return float(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--peers", nargs="+", default=[*PLACES, "torchrec"], choices=[*PLACES, "torchrec"])
    parser.add_argument("--samples", type=int, default=0, help="of all ranks; default: 65,536, on a CPU 1,024")
    parser.add_argument("--most", type=int, default=0, help="largest table; default: 10,000,000 rows, on a CPU 65,536")
    parser.add_argument("--rounds", type=int, default=2, help="how often each peer is measured, in turn")
    options = parser.parse_args()
    rank, size, cuda = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), options.device == "cuda"
    device = f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    samples, most = options.samples or (65_536 if cuda else 1_024), options.most or (10_000_000 if cuda else 1 << 16)
    tables = [(min(most, rows), 128 if cuda else 16) for rows in DLRM_ROWS]
    shape = Shape("DLRM", tables, samples // size, power=1.05)
    gradient, clock = gradient_of(shape, device), Clock(device)
    batches = [shape.batch(seed * size + rank, device) for seed in range(BATCHES)]
    times = {}
    for _ in range(options.rounds):
        for name in options.peers:
            start = time.perf_counter()
            try:
                made = peer_of(name, shape, device)
            except ImportError as error:
                if rank == 0:
                    print(f"{name}: {error}", flush=True)
                continue
            keys = [made.prepare(one) for one in batches]
            found = slowest(clock(lambda i, made=made, keys=keys: made.step(keys[i % BATCHES], gradient)), device)
            times.setdefault(name, []).append(found)
            if rank == 0:
                print(f"{name}: {found:.3f} ms a step, {time.perf_counter() - start:.0f} s in all", flush=True)
            del made, keys
            gc.collect()
            if cuda:
                torch.cuda.empty_cache()
    if rank == 0:
        where = torch.cuda.get_device_name() if cuda else "CPU"
        print(f"{size} x {where}, PyTorch {torch.__version__}: 26 tables, {samples:,} samples in all, ms a step:")
        for name, values in times.items():
            print(f"  {name:9} {statistics.median(values):.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
