#!/usr/bin/env python3
"""Trains repeatedly while allocations fail: each run must end with exit code 6, a message with the cause, and a model.

  test/trials/refused_memory.py build/cpu/bin --trials 300 --jobs 4
  test/trials/refused_memory.py build/cuda/bin --trials 30 --gpu

A trial limits addresses (`ulimit -v`) or data (`ulimit -d`), or makes one allocation fail at a random point
(test/preload/refused_allocation.cc). The run has 1 to 4 ranks, as threads, or as processes joined by MPI or TCP. With
--gpu another process allocates the memory of a GPU that one rank trains on. Nine of ten limits take effect after the
first display. A trial fails if the run crashes, prints "bug", saves no model newer than the last display, or makes no
progress for more than 30 s: its threads sleep, or compute without output. Time in which a busy machine schedules none
of the threads does not count.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

# all keys have occurred after 30 of the 60 iterations; SECONDS: maximum time without progress
ITERATIONS, DISPLAY, SECONDS = 60, 6, 30
SAMPLES, VOCABULARY = 30000, 300000
OF_GPU = 20  # on a GPU, samples and keys are multiplied by this factor, and iterations by 8


def config(ranks, gpu=False):
    """A config with a table of wide rows that grows with every batch."""
    return {
        "solver": {"lr_policy": "fixed", "display": DISPLAY, "max_iter": ITERATIONS * (8 if gpu else 1), "gpu": ranks,
                   "batchsize": 1024,
                   "snapshot": 15, "snapshot_prefix": "out/", "eval_interval": 0, "seed": 3},
        "optimizer": {"type": "Adam", "update_type": "Local",
                      "adam_hparam": {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
        "layers": [
            {"name": "data", "type": "Data", "source": "train.txt", "eval_source": "eval.txt", "check": "Sum",
             "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 4},
             "sparse": [{"top": "keys", "type": "LocalizedSlot", "max_feature_num_per_sample": 6, "slot_num": 6}]},
            {"name": "emb", "type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
             "sparse_embedding_hparam": {"embedding_vec_size": 128, "combiner": 0}},
            {"name": "flat", "type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": 768},
            {"name": "all", "type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "all", "top": "fc1", "fc_param": {"num_output": 16}},
            {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
            {"name": "fc2", "type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}]}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def lines_in(path):
    try:
        with open(path, "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def take_gpu_memory(bytes_left, metrics, lines):
    """When a run has written `lines` lines, allocates all memory of GPU 0 except `bytes_left` bytes, until killed."""
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    print("ready", flush=True)
    while lines_in(metrics) < lines:
        time.sleep(0.001)
    piece = 64 << 20
    while True:
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        spare = free.value - bytes_left
        while piece > 2 << 20 and piece > spare:
            piece //= 2
        pointer = ctypes.c_uint64()
        if spare < piece or cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(piece)) != 0:
            piece = 2 << 20
            time.sleep(0.001)  # retry, because the run may free some memory


def start_job(command, env, where):
    return subprocess.Popen(command, env=env, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)


def processes_of(session):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == session:
                found.append(int(name))
        except ProcessLookupError:
            pass
    return found


def stats_of(pid):
    """The fields of /proc/<pid>/task/<thread>/stat of each thread, starting with the state."""
    stats = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                stats.append(file.read().rsplit(")", 1)[1].split())
    except OSError:
        pass  # the process or thread has just ended
    return stats


class Output:
    """The output of a job's processes, and the longest time without progress between two lines."""

    def __init__(self, jobs):
        self.jobs, self.lines = jobs, [[] for _ in jobs]
        self.longest = self.asleep = self.used = self.used_before = 0.0
        self.threads = [threading.Thread(target=self.read, args=a, daemon=True) for a in zip(jobs, self.lines)]
        for thread in self.threads:
            thread.start()

    def read(self, job, lines):
        for line in job.stdout:
            lines.append(line)
            self.asleep, self.used_before = 0.0, self.used

    def look(self, seconds):
        """Must be called every `seconds`. Returns the seconds without progress so far."""
        states, ticks = "", 0
        for job in self.jobs:
            for pid in processes_of(job.pid):
                for stat in stats_of(pid):
                    states += stat[0]
                    ticks += int(stat[11]) + int(stat[12])
        if not re.search("[RD]", states):
            self.asleep += seconds
        self.used = ticks / os.sysconf("SC_CLK_TCK")
        still = max(self.asleep, self.used - self.used_before)
        self.longest = max(self.longest, still)
        return still

    def kill(self):
        for job in self.jobs:
            for pid in processes_of(job.pid):
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass

    def text(self):
        for thread in self.threads:
            thread.join(1)
        return "".join("".join(lines) for lines in self.lines)


class Trials:
    def __init__(self, options):
        self.gpu = options.gpu
        self.bin = os.path.abspath(options.bin)
        self.preload = os.path.join(self.bin, "librefused_allocation.so")
        self.folder = tempfile.mkdtemp(prefix="refused_memory_")
        with open(os.path.join(self.folder, "config.json"), "w") as f:
            json.dump(config([0]), f)
        times = OF_GPU if self.gpu else 1
        subprocess.run([os.path.join(self.bin, "data_generator"), "--config", "config.json", "--samples",
                        str(SAMPLES * times), "--eval-samples", "1000", "--vocabulary", str(VOCABULARY * times),
                        "--alpha", "0"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.peaks = {}

    def commands(self, way, ranks, where):
        """The processes of a job as pairs (command, environment)."""
        train = [os.path.join(self.bin, "huge_ctr"), "--train", "config.json", "--run-dir", "run", "--peer-timeout", "10"]
        train += [] if self.gpu else ["--device", "cpu", "--threads", "1"]
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        lists = list(range(ranks)) if way == "threads" else [[r] for r in range(ranks)]
        with open(os.path.join(where, "config.json"), "w") as f:
            json.dump(config(lists, self.gpu), f)
        if way == "threads":
            return [(train, env)]
        if way == "mpi":
            return [(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)] + train, env)]
        port = str(free_port())
        return [(train, {**env, "RANK": str(r), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                         "MASTER_PORT": port}) for r in range(ranks)]

    def peak(self, way, ranks):
        """Two lists of a process's (addresses, data) in kilobytes: since its first display, and since its start."""
        if (way, ranks) in self.peaks:
            return self.peaks[way, ranks]
        where = tempfile.mkdtemp(dir=self.folder)
        self.link_data(where)
        jobs = [subprocess.Popen(c, env=e, cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for c, e in self.commands(way, ranks, where)]
        seen, before = [], []
        metrics = os.path.join(where, "run", "metrics.jsonl")
        while jobs[0].poll() is None:
            try:
                with open(f"/proc/{jobs[0].pid}/status") as file:
                    status = dict(re.findall(r"(Vm\w+):\s+(\d+)", file.read()))
                (seen if lines_in(metrics) >= 2 else before).append((int(status["VmSize"]), int(status["VmData"])))
            except (OSError, KeyError):
                pass  # the process has just ended
            time.sleep(0.02)
        for job in jobs:
            job.communicate()
        shutil.rmtree(where)
        seen = [s for s in seen if all(a >= max(b[i] for b in before) for i, a in enumerate(s))] or seen
        self.peaks[way, ranks] = seen, [s for s in before if s[0] > max(b[0] for b in before) / 2] + seen
        return self.peaks[way, ranks]

    def link_data(self, where):
        for name in os.listdir(self.folder):
            if name.startswith(("train", "eval")):
                os.symlink(os.path.join(self.folder, name), os.path.join(where, name))

    def run(self, number):
        chance = random.Random(number)
        early = chance.random() < 0.1
        if self.gpu:
            return self.run_on_gpu(number, chance, early)
        ways = ["threads", "threads", "tcp"] + (["mpi"] if shutil.which("mpirun") else [])
        way = chance.choice(ways)
        ranks = chance.randint(1, 4) if way == "threads" else chance.randint(2, 3)
        how = chance.choice(["addresses", "data", "allocation"])
        where = tempfile.mkdtemp(dir=self.folder)
        self.link_data(where)
        env_more, limit = {}, ""
        if how == "allocation":
            nth = int(10 ** chance.uniform(0, 4))
            lines = 0 if early else chance.randint(2, 9)
            env_more = {"LD_PRELOAD": self.preload, "HCTR_TEST_REFUSE": os.path.join(where, "run", "metrics.jsonl"),
                        "HCTR_TEST_REFUSE_LINES": str(lines), "HCTR_TEST_REFUSE_NTH": str(nth)}
            text = f"allocation {nth} after {lines} lines"
        else:
            seen = self.peak("tcp" if way == "mpi" else way, ranks)[early]
            low, high = (f(s[how == "data"] for s in seen) for f in (min, max))
            kilobytes = int(chance.uniform(low, high))
            limit = f"ulimit -{'v' if how == 'addresses' else 'd'} {kilobytes}; "
            text = f"{how} {kilobytes} of {low} to {high} kB"
        start = time.time()
        jobs = []
        for command, env in self.commands(way, ranks, where):
            # Limits huge_ctr, not mpirun.
            at = command.index(os.path.join(self.bin, "huge_ctr"))
            words = command[:at] + ["bash", "-c", limit + 'exec "$@"', "trial"]
            more = env_more if way != "mpi" else {}
            if way == "mpi":
                for name, value in env_more.items():
                    words[1:1] = ["-x", f"{name}={value}"]
            jobs.append(start_job(words + command[at:], {**env, **more}, where))
        return (number, f"{ranks} ranks, {way}, {text}") + self.judged(jobs, where, start)

    def run_on_gpu(self, number, chance, early):
        where = tempfile.mkdtemp(dir=self.folder)
        self.link_data(where)
        megabytes, lines = chance.choice([0, chance.randint(1, 1000)]), 0 if early else chance.randint(2, 20)
        other = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--take-gpu-memory", str(megabytes << 20),
                                  os.path.join(where, "run", "metrics.jsonl"), str(lines)], stdout=subprocess.PIPE)
        other.stdout.readline()
        start = time.time()
        jobs = [start_job(c, e, where) for c, e in self.commands("threads", 1, where)]
        result = self.judged(jobs, where, start)
        other.kill()
        other.wait()
        return (number, f"GPU, {megabytes} MiB left after {lines} lines") + result

    def judged(self, jobs, where, start):
        """Waits for the run. Returns: whether the run finished, the last displayed iteration, the problems, the
        seconds, the longest time without progress, and the output."""
        output, killed = Output(jobs), ""
        while any(job.poll() is None for job in jobs):
            if output.look(0.2) > 2 * SECONDS:
                killed = "\n(killed)"
                output.kill()
            time.sleep(0.2)
        codes, out, took = [job.returncode for job in jobs], output.text() + killed, time.time() - start
        still = output.longest
        shown = max([int(n) for n in re.findall(r"Iter: (\d+) ", out)] or [0])
        # If the save to `snapshot` failed, the model is in the run folder.
        folders = [os.path.join(where, name) for name in ("out", "run")]
        left = [name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder)]
        saved = [int(n) for n in re.findall(r"_dense_(\d+)\.model", " ".join(left))]
        problems = []
        if still > SECONDS:
            problems.append(f"stood still for {still:.0f} s")
        if any(c < 0 or c in (134, 139, 136) for c in codes) or "Segmentation" in out:
            problems.append(f"crash {codes}")
        if "error (bug)" in out:
            problems.append("bug")
        if re.search(r"[ :]-\d+ (more )?bytes|9223372036854775807", out):
            problems.append("a number of bytes that cannot be")
        finished = all(c == 0 for c in codes)
        if not finished and 6 not in codes:
            problems.append(f"exit {codes}")
        if shown > 0 and max(saved or [0]) < shown:
            problems.append(f"no model since iteration {shown}, only of {max(saved or [0])}")
        if any(".part" in name for name in left):
            problems.append("unfinished files")
        shutil.rmtree(where)
        return finished, shown, problems, took, still, out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", help="the folder of the programs")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the number, and random seed, of the first trial")
    parser.add_argument("--show", action="store_true", help="print the output of runs that failed")
    parser.add_argument("--gpu", action="store_true", help="one rank on a GPU whose memory another process takes")
    options = parser.parse_args()
    trials = Trials(options)
    if options.gpu:
        options.jobs = 1
    else:
        for way, ranks in [("threads", r) for r in range(1, 5)] + [("tcp", 2), ("tcp", 3)]:
            trials.peak(way, ranks)
    failed = finished = before = 0
    longest = longest_still = 0.0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        numbers = range(options.first, options.first + options.trials)
        for number, what, whole, shown, problems, took, still, out in pool.map(trials.run, numbers):
            finished += whole
            before += not whole and shown == 0
            longest, longest_still = max(longest, took), max(longest_still, still)
            if problems:
                failed += 1
                print(f"{number}: {what}: {', '.join(problems)}")
                if options.show:
                    print("   " + "\n   ".join(out.strip().split("\n")[-12:]))
    print(f"{options.trials} trials: {failed} failed; {finished} had memory enough, {before} ended before the first "
          f"display; the longest took {longest:.1f} s, and one stood still for {longest_still:.1f} s")
    shutil.rmtree(trials.folder)
    sys.exit(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--take-gpu-memory"]:
        take_gpu_memory(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    main()
