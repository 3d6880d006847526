#!/usr/bin/env python3
"""Trains with processes that join over TCP while strangers connect to their port. Compares with undisturbed runs.

  test/trials/hostile_join.py build/cpu/bin --connections 500

Strangers stay silent or close the connection immediately, or send: noise, another protocol, half a response, a response
with a wrong code, a recorded response of a member (as an eavesdropper could), or the messages of versions without a
secret. The trial fails if the exit code or the model of a job differs from an undisturbed job, if the job takes a
second longer, or if a stranger receives more than the challenge and a rejection.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from refused_memory import config, free_port

CHALLENGE, ANSWER, VERDICT = 40, 65, 33
SECRET = "a secret of some length, as openssl would make it"


def old_text(text):
    return struct.pack("<Q", len(text)) + text


def greeting(kind, process):
    return old_text(f"huge_ctr job 1\nhost stranger\njob \nkind {kind}\nport 1\nprocess {process}\nprocesses 2\n"
                    "version 0.1.0".encode())


def strangers(chance, heard):
    """The behaviours of strangers by name, as functions of the connected socket."""
    noise = chance.randbytes(chance.randint(1, 70000))
    answer = bytes([chance.choice(b"dcpw")]) + chance.randbytes(ANSWER - 1)

    def say(*texts, then_wait=True):
        def act(s):
            for text in texts:
                s.sendall(text)
            if then_wait:
                time.sleep(chance.uniform(0, 3))
        return act

    def answer_slowly(s):
        for byte in answer:
            s.sendall(bytes([byte]))
            time.sleep(0.05)

    return {
        "silent": say(), "closes": say(then_wait=False), "noise": say(noise), "http": say(b"GET / HTTP/1.1\r\n\r\n"),
        "tls": say(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise[:500]), "half": say(answer[:30]),
        "wrong code": say(answer), "wrong code, and more": say(answer + noise), "slow": answer_slowly,
        "replay": say(heard.get("answer", answer)), "challenge as answer": say(b"HCTRJOB3" + noise[:32]),
        "greeting": say(greeting("data", 1)), "abort": say(greeting("control", 1), old_text(b"abort 0")),
        "huge": say(struct.pack("<Q", 1 << 62) + noise[:100]), "zeros": say(bytes(ANSWER))}


class Relay:
    """Records the messages of a member that connects through this port."""

    def __init__(self, to):
        self.heard = {}
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.run, args=(to,), daemon=True).start()

    def run(self, to):
        try:
            while True:
                near, _ = self.server.accept()
                far = socket.create_connection(("127.0.0.1", to))
                threading.Thread(target=self.carry, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self.carry, args=(far, near, False), daemon=True).start()
        except OSError:
            pass

    def carry(self, source, sink, from_member):
        try:
            while data := source.recv(65536):
                if from_member and "answer" not in self.heard:
                    self.heard["answer"] = data[:ANSWER]
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Trials:
    def __init__(self, options):
        self.bin = os.path.abspath(options.bin)
        self.folder = tempfile.mkdtemp(prefix="hostile_join_")
        self.config = config([[0], [1]])
        self.config["solver"].update(max_iter=40, snapshot=0)
        with open(os.path.join(self.folder, "config.json"), "w") as f:
            json.dump(self.config, f)
        subprocess.run([os.path.join(self.bin, "data_generator"), "--config", "config.json", "--samples", "3000",
                        "--eval-samples", "100", "--vocabulary", "1000"], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, rank, port, where, master_port=None):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "RANK": str(rank), "WORLD_SIZE": "2",
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(master_port or port), "HCTR_JOB_SECRET": SECRET}
        return subprocess.Popen([os.path.join(self.bin, "huge_ctr"), "--train", "config.json", "--device", "cpu",
                                 "--threads", "1", "--run-dir", "run", "--join-timeout", "60"], cwd=where, env=env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def job(self, connections, chance, heard=None):
        """Runs one job. Returns the exit codes, the model, the seconds, the messages that strangers received, and the
        output."""
        where = tempfile.mkdtemp(dir=self.folder)
        for name in os.listdir(self.folder):
            if name.startswith(("train", "eval", "config")):
                os.symlink(os.path.join(self.folder, name), os.path.join(where, name))
        port = free_port()
        first = self.start(0, port, where)
        self.wait_for(port)
        learned = []

        def one(number):
            of = random.Random(number)
            name, act = of.choice(sorted(strangers(of, heard or {}).items()))
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
                    act(s)
                    s.shutdown(socket.SHUT_WR)
                    s.settimeout(5)
                    got = b""
                    while data := s.recv(4096):
                        got += data
                    told = got[CHALLENGE:] if got.startswith(b"HCTRJOB3") else got
                    if told and told != b"-" + bytes(VERDICT - 1):
                        learned.append((name, told[:200]))
            except OSError:
                pass  # the job already trains, or has closed the connection

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            jobs = [pool.submit(one, chance.random()) for _ in range(connections)]
            time.sleep(0.2 if connections else 0)
            relay = Relay(port) if heard is not None and not heard else None
            begin = time.time()
            second = self.start(1, port, where, relay.port if relay else None)
            outs = [p.communicate(timeout=120)[0] for p in (first, second)]
            took = time.time() - begin
            concurrent.futures.wait(jobs)
        if relay:
            heard.update(relay.heard)
        model = hashlib.sha256()
        for name in sorted(os.listdir(os.path.join(where, "out"))) if os.path.isdir(os.path.join(where, "out")) else []:
            if name.endswith(".model"):
                with open(os.path.join(where, "out", name), "rb") as f:
                    model.update(f.read())
        shutil.rmtree(where)
        return [first.returncode, second.returncode], model.hexdigest(), took, learned, "".join(outs)

    def wait_for(self, port):
        """Waits until a process listens on the port, without connecting to it."""
        wanted = f":{port:04X}"
        for _ in range(1000):
            with open("/proc/net/tcp") as f:
                if any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in f.readlines()[1:]):
                    return
            time.sleep(0.01)
        raise RuntimeError("the job does not listen")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", help="the folder of the programs")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--a-job", type=int, default=100, help="hostile connections to each job")
    parser.add_argument("--first", type=int, default=0, help="the random seed")
    options = parser.parse_args()
    trials, chance = Trials(options), random.Random(options.first)
    heard = {}
    codes, model, _, _, _ = trials.job(0, chance, heard)
    if not heard.get("answer") or codes != [0, 0] or model == hashlib.sha256().hexdigest():
        sys.exit("the undisturbed job has left no model, or its relay has heard nothing")
    usual = sorted(trials.job(0, chance)[2] for _ in range(3))[1]
    failed, slowest, made = 0, 0.0, 0
    while made < options.connections:
        codes_now, model_now, took, learned, out = trials.job(options.a_job, chance, heard)
        made += options.a_job
        slowest = max(slowest, took - usual)
        problems = []
        if codes_now != codes or codes != [0, 0]:
            problems.append(f"exit codes {codes_now}, undisturbed {codes}")
        if model_now != model:
            problems.append("another model")
        if took > usual + 1:
            problems.append(f"{took:.1f} s, undisturbed {usual:.1f}")
        if learned:
            problems.append(f"told strangers {learned[:3]}")
        if problems:
            failed += 1
            print(", ".join(problems), out[-1500:])
    shutil.rmtree(trials.folder)
    print(f"{made} connections: {failed} jobs failed; delayed by {max(slowest, 0):.2f} s at most, of {usual:.1f} s")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
