#!/usr/bin/env python3
"""Opens 10,000 connections to a service, most of them slow, incomplete or hostile, while honest clients ask for scores.

    test/trials/serve_hostile.py build/cpu/bin
    test/trials/serve_hostile.py build/cpu/bin --connections 2000 --seconds 20

A connection stays silent, sends a request byte by byte, sends half a request and waits, sends noise, announces 2 GB,
sends requests without reading the answers, or closes in the middle. Others send mutated HTTP/2 frames to the gRPC port.
First the service accepts all connections, then only 100. The trial fails if an honest client gets anything but 200
(with the second service: 503 at the connection is right too), if the service dies or does not end with code 0, or if
its memory grows by more than 96 MiB and 64 KiB per connection.
"""

import argparse
import os
import random
import resource
import socket
import struct
import sys
import tempfile
import threading
import time

from serve_rig import Load, load_average, raw, start_ours, train

BODY = (b'{"inputs":[{"name":"city","datatype":"BYTES","shape":[1],"data":["paris"]},'
        b'{"name":"price","datatype":"FP64","shape":[1],"data":[2.5]}]}')
REQUEST = b"POST /v2/models/ctr/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


class Stranger:
    """One connection: bytes to send, how many at a time, and whether it reads answers and closes at the end."""

    def __init__(self, port, chance, kind):
        self.kind, self.reads, self.closes, self.at_once = kind, True, False, 1 << 16
        self.bytes = {
            "silent": b"", "slow": REQUEST, "half": REQUEST[:len(REQUEST) // 2],
            "noise": chance.randbytes(chance.randint(1, 2000)),
            "2 GB": b"POST /v2/models/ctr/infer HTTP/1.1\r\nContent-Length: 2147483648\r\n\r\n" + b"x" * 1000,
            "deaf": REQUEST * 50, "leaves": REQUEST[:chance.randint(1, len(REQUEST))],
            "mutated": bytes(b if chance.random() > 0.02 else chance.randrange(256) for b in REQUEST),
            "chunks": b"POST /v2/models/ctr/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        }[kind]
        self.at_once = 1 if kind == "slow" else self.at_once
        self.reads, self.closes = kind != "deaf", kind == "leaves"
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        self.sent, self.received = 0, b""

    def step(self):
        """Sends and reads what is possible. Returns whether the connection stays open."""
        try:
            if self.sent < len(self.bytes):
                self.sent += self.socket.send(self.bytes[self.sent:self.sent + self.at_once])
            elif self.closes:
                return False
            if self.reads:
                part = self.socket.recv(1 << 16)
                self.received = (self.received + part)[:64]
                return bool(part)
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


KINDS = ["silent", "slow", "half", "noise", "2 GB", "deaf", "leaves", "mutated", "chunks"]


def hold_connections(port, count, seconds, chance, most_open):
    """Keeps `count` connections open until `seconds` have passed: closed ones are replaced. Returns counts by status."""
    open_now, seen, begun = [], {}, 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(min(200, count - len(open_now))):
            open_now.append(Stranger(port, chance, chance.choice(KINDS)))
            begun += 1
        still = []
        for one in open_now:
            if one.step():
                still.append(one)
                continue
            status = one.received[9:12].decode(errors="replace") if one.received.startswith(b"HTTP/1.1 ") else "closed"
            seen[status] = seen.get(status, 0) + 1
            one.socket.close()
        open_now = still
        most_open[0] = max(most_open[0], len(open_now))
        time.sleep(0.02)
    for one in open_now:
        one.socket.close()
    return begun, dict(sorted(seen.items()))


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def hostile_frames(port, seconds, chance):
    """Sends a preface and mutated HTTP/2 frames, with gRPC messages of wrong lengths, to the gRPC port."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    path = b"/inference.GRPCInferenceService/ModelInfer"
    literal = lambda name, value: b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
    headers = b"".join(literal(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"a"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers")))
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        message = chance.randbytes(chance.randint(0, 300))
        length = chance.choice([len(message), 0, 2**32 - 1, chance.randrange(2**32)])
        text = frame(4, 0, 0, b"") + frame(1, 4, 1, headers)
        for _ in range(chance.randint(1, 4)):
            text += frame(0, chance.choice([0, 1]), 1, bytes([chance.choice([0, 1, 7])]) + struct.pack(">I", length) + message)
        if chance.random() < 0.7:
            text = bytes(b if chance.random() > 0.01 else chance.randrange(256) for b in text)
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as one:
                one.settimeout(0.05)
                one.sendall((preface if chance.random() < 0.9 else b"") + text)
                one.recv(4096)
        except OSError:
            pass
        count += 1
    return count


def trial(options, program, bench, folder, most_connections):
    server, ports = start_ours(program, folder, ["--threads", "1", "--max-connections", str(most_connections)])
    address = f"127.0.0.1:{ports[0]}"
    before, chance = server.resources(), random.Random(most_connections)
    counts, most_open, frames = {}, [0], [0]
    strangers = threading.Thread(target=lambda: counts.update(zip(("begun", "seen"), hold_connections(
        ports[0], options.connections, options.seconds, chance, most_open))))
    framing = threading.Thread(target=lambda: frames.__setitem__(0, hostile_frames(ports[1], options.seconds,
                                                                                    random.Random(1))))
    honest, most = {}, before
    accepts_all = most_connections > options.connections
    load = Load(bench, "ctr", address, folder, "honest", "--clients", 4, "--rate", 50, "--seconds",
                options.seconds) if accepts_all else None
    time.sleep(0.5)
    strangers.start()
    framing.start()
    while strangers.is_alive():
        time.sleep(0.5)
        if server.process.poll() is not None:
            sys.exit(f"the service died with code {server.process.returncode}")
        now = server.resources()
        most = {what: max(most[what], now[what]) for what in now}
        if not accepts_all:
            try:
                status = raw(ports[0], "POST", "/v2/models/ctr/infer", BODY)[0]
            except OSError:
                status = "refused"
            honest[status] = honest.get(status, 0) + 1
    strangers.join()
    framing.join()
    print(f"limit of {most_connections} connections; {load_average()}: {counts['begun']} connections, at most "
          f"{most_open[0]} at once, ends by status {counts['seen']}; {frames[0]} connections with frames")
    print(f"  {before['MiB']:.0f} MiB and {before['descriptors']} descriptors before, at most {most['MiB']:.0f} MiB and "
          f"{most['descriptors']}")
    if load:
        figures = load.result()
        print(f"  honest clients: {figures['requests']:.0f}/s, p50 {figures['p50']:.1f} ms, p99 {figures['p99']:.1f} ms, "
              "none failed")
    else:
        print(f"  honest clients by status: {honest}")
        if set(honest) - {200, 503, "refused"}:
            sys.exit("an honest client got a wrong status")
    time.sleep(1)
    status, _ = raw(ports[0], "POST", "/v2/models/ctr/infer", BODY)
    after = server.resources()
    print(f"  afterwards: status {status}, {after['MiB']:.0f} MiB, {after['descriptors']} descriptors, "
          f"{after['threads']} threads (before: {before['threads']})")
    code = server.stop()
    if status != 200 or code != 0:
        sys.exit(f"afterwards the service answered {status} and ended with {code}")
    if after["descriptors"] > before["descriptors"] + 20:
        sys.exit("descriptors were not closed")
    if (most["MiB"] - before["MiB"]) * 1024 > 64 * min(most_connections, options.connections) + 96 * 1024:
        sys.exit("the memory of the service grew by more than 96 MiB and 64 KiB per connection")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", help="folder of huge_ctr and bench")
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=60, help="duration with each of the two limits")
    options = parser.parse_args()
    program, bench = (os.path.join(os.path.abspath(options.bin), name) for name in ("huge_ctr", "bench"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < options.connections + 500:
        sys.exit(f"{options.connections} connections need as many open files: the limit is {most}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        train(program, folder)
        for limit in (options.connections + 200, 100):
            trial(options, program, bench, folder, limit)
    print("the service answered or refused")


if __name__ == "__main__":
    main()
