#!/usr/bin/env python3
"""Measures the bytes that two processes, configured as two hosts, send to each other, with the kernel's counters.
Compares them with the program's count.

    tools/bench/host_bytes.py FOLDER [--device cpu|gpu] [--tables localized,distributed] [--keys 1,5] [--precision fp32|bf16]
                              [--batch 8192] [--steps 20,120] [--bin build/cpu/bin]

Two processes with one rank each train one table of 26 slots. They are joined over TCP, and NCCL uses sockets (no P2P,
shared memory or InfiniBand), all over the interface lo. The interface's counter of sent bytes is read before and after
runs of fewer and of more steps. The difference belongs to the additional steps and excludes the bytes sent at the
start. With root rights the runs use a separate network namespace, in which no other process sends.

as hosts     each process is a host (NCCL_HOSTID): messages of unique keys, vectors and gradient sums have their real sizes
one host     both processes are on one host: all messages have their maximum size
program      the program's count in summary.json: sent_to_other_hosts.bytes; for "one host", .of_full_size
dense        the dense gradients, which the program does not count: each of the two ranks sends all of them

Writes config, data and run folders into FOLDER.
"""
import argparse
import ctypes
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys

SLOTS, WIDTH, DENSE = 26, 16, 13


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--tables", default="localized,distributed")
    parser.add_argument("--keys", default="1,5", help="maximum keys of a bag")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="precision of exchanged vectors and gradients")
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--vocabulary", type=int, default=100000, help="distinct keys of a slot, drawn from a power law of exponent 1.1")
    parser.add_argument("--steps", default="20,120", help="steps of the two runs")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/cpu/bin"))
    return parser.parse_args()


def make_network():
    """Creates a network namespace that has only lo, for this process and its children. Returns False without the
    necessary right.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
        return False
    try:
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    except OSError:
        return False
    return True


def enter_own_network():
    """Calls make_network() if a trial in a child process succeeds, because a partial failure would leave this process
    without any network.
    """
    if (other := os.fork()) == 0:
        os._exit(0 if make_network() else 1)
    return os.waitpid(other, 0)[1] == 0 and make_network()


def sent_over_lo():
    for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    sys.exit("/proc/self/net/dev has no line for lo")


def config(given, table, keys, steps):
    embedding = "LocalizedSlotSparseEmbeddingHash" if table == "localized" else "DistributedSlotSparseEmbeddingHash"
    return {
        "solver": {"lr_policy": "fixed", "display": steps, "max_iter": steps, "gpu": "all", "batchsize": given.batch, "snapshot": 0,
                   "eval_interval": 0, "final_snapshot": False, "seed": 7, "exchange_precision": given.precision},
        "optimizer": {"type": "SGD", "update_type": "Local", "sgd_hparam": {"learning_rate": 0.1}},
        "layers": [
            {"name": "data", "type": "Data", "source": "train.txt", "eval_source": "eval.txt", "check": "None",
             "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": DENSE},
             "sparse": [{"top": "keys", "type": "LocalizedSlot" if table == "localized" else "DistributedSlot", "slot_num": SLOTS,
                         "max_nnz": keys, "max_feature_num_per_sample": SLOTS * keys}]},
            {"name": "embedding", "type": embedding, "bottom": "keys", "top": "embedding",
             "sparse_embedding_hparam": {"embedding_vec_size": given.dim, "combiner": 0}},
            {"name": "flat", "type": "Reshape", "bottom": "embedding", "top": "flat", "leading_dim": SLOTS * given.dim},
            {"name": "concat", "type": "Concat", "bottom": ["flat", "dense"], "top": "concat"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "concat", "top": "fc1", "fc_param": {"num_output": WIDTH}},
            {"name": "relu", "type": "ReLU", "bottom": "fc1", "top": "relu"},
            {"name": "fc2", "type": "InnerProduct", "bottom": "relu", "top": "fc2", "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}]}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(given, config_of_run, as_hosts):
    """Returns the bytes that lo has sent, and the summary."""
    (given.folder / "config.json").write_text(json.dumps(config_of_run, indent=1))
    port = free_port()
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
              "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"}
    command = [given.bin.resolve() / "huge_ctr", "--train", "config.json", "--run-dir", "run", "--device",
               "cpu" if given.device == "cpu" else "cuda"]
    before = sent_over_lo()
    processes = []
    for rank in range(2):
        environment = {**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank), "NCCL_HOSTID": f"host{rank if as_hosts else 0}"}
        processes.append(subprocess.Popen(command, cwd=given.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                          text=True))
    said = [process.communicate()[1] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("\n".join(said))
    return sent_over_lo() - before, json.loads((given.folder / "run" / "summary.json").read_text())


def main():
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    few, many = map(int, given.steps.split(","))
    alone = enter_own_network()
    dense = 4 * 2 * ((SLOTS * given.dim + DENSE + 1) * WIDTH + WIDTH + 1)
    print(f"MB a step, sent by two {given.device.upper()} ranks together: batch {given.batch}, {SLOTS} slots of {given.vocabulary} keys, "
          f"vectors of {given.dim}, {given.precision}" + ("" if alone else "; other programs may send over lo, too"))
    print(f"{'table':<12} {'keys':>4}  {'':<8} {'kernel':>9} {'program':>9} {'dense':>9} {'kernel / both':>14} {'ms a step':>10}")
    for keys in map(int, given.keys.split(",")):
        (given.folder / "config.json").write_text(json.dumps(config(given, "localized", keys, many), indent=1))
        subprocess.run([given.bin.resolve() / "data_generator", "--config", "config.json", "--samples", str(given.batch * many),
                        "--eval-samples", str(given.batch), "--vocabulary", str(given.vocabulary), "--alpha", "1.1", "--force"],
                       cwd=given.folder, check=True, stdout=subprocess.DEVNULL)
        for table in given.tables.split(","):
            full = None
            for as_hosts in (True, False):
                runs = [run(given, config(given, table, keys, steps), as_hosts) for steps in (few, many)]
                per_step = lambda number: (number(runs[1]) - number(runs[0])) / (many - few)
                kernel = per_step(lambda one: one[0])
                if as_hosts:
                    program = per_step(lambda one: one[1]["sent_to_other_hosts"]["bytes"])
                    full = per_step(lambda one: one[1]["sent_to_other_hosts"]["of_full_size"])
                else:
                    program = full
                ms = 1e3 * per_step(lambda one: one[1]["seconds"])
                print(f"{table:<12} {keys:>4}  {'as hosts' if as_hosts else 'one host':<8} {kernel / 1e6:>9.3f} {program / 1e6:>9.3f} "
                      f"{dense / 1e6:>9.3f} {kernel / (program + dense):>14.3f} {ms:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
