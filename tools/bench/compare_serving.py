#!/usr/bin/env python3
"""Compares `huge_ctr serve` with a bare gRPC server and with Triton, on this machine, with a small DLRM.

    cmake --build build/cpu --target huge_ctr plugins bench data_generator bare_grpc_server
    tools/bench/compare_serving.py build/cpu/bin
    pip install onnxruntime "numpy<2" && pip download nvidia-pytriton==0.7.0 --no-deps && unzip nvidia_pytriton*.whl
    tools/bench/compare_serving.py build/cpu/bin --triton pytriton/tritonserver

The model has 26 tables of dim 16 and the layers 64-64-1. Requests have one row and come by gRPC on loopback, in a closed
loop; client and server share the cores. The bare server reads a request and answers constant bytes. Triton runs the
exported ONNX graph in its Python backend, by onnxruntime with one thread, joins requests, and has as many instances as
the machine has cores. The servers are measured in turns, so other load on the machine disturbs all of them alike.
Finally requests arrive at random times, at half of the rate of huge_ctr.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/trials"))
import model_configs
from serve_rig import Load, free_port, load_average, raw, start_ours, start_triton

TRITON_MODEL = """
import json, os
import onnxruntime
import triton_python_backend_utils as utils
class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(PATH, options, providers=["CPUExecutionProvider"])
    def execute(self, requests):
        import numpy
        get = utils.get_input_tensor_by_name
        inputs = {name: [get(r, name).as_numpy() for r in requests] for name in ("dense", "keys")}
        score, = self.session.run(["score"], {name: numpy.concatenate(all) for name, all in inputs.items()})
        answers, at = [], 0
        for rows in map(len, inputs["dense"]):
            answers.append(utils.InferenceResponse([utils.Tensor("loss", score[at:at + rows])]))
            at += rows
        return answers
"""


def small_dlrm(programs, folder):
    """Trains the model in the run folder `run`, and exports it to onnx/model.onnx."""
    config = model_configs.dlrm("dlrm", [10000] * 26, bottom=(64,), top=(64, 64), dim=16, batch=1024, iterations=100)
    for field in ("mixed_precision", "scaler"):
        config["solver"].pop(field, None)
    (folder / "dlrm.json").write_text(json.dumps(config))
    for command in (["data_generator", "--config", "dlrm.json", "--samples", "100000", "--eval-samples", "2000"],
                    ["huge_ctr", "train", "dlrm.json", "--run-dir", "run", "--device", "cpu"],
                    ["huge_ctr", "export", "onnx", "run", "--out", "onnx"]):
        done = subprocess.run([programs / command[0], *command[1:]], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}:\n{done.stderr}")


def field(number, value):
    """A field of a Protocol Buffers message: bytes or text."""
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def constant_answers(metadata):
    """The answers of the bare server by method: the metadata of our service, and the score of one row."""
    tensor = lambda one: field(1, one["name"]) + field(2, one["datatype"]) + field(3, b"".join(map(varint, one["shape"])))
    described = field(1, metadata["name"]) + b"".join(field(4, tensor(one)) for one in metadata["inputs"])
    score = field(1, "loss") + field(2, "FP32") + field(3, varint(1) + varint(1))
    return {"ModelMetadata": described,
            "ModelInfer": field(1, metadata["name"]) + field(2, "1") + field(5, score) + field(6, b"\0\0\0\x3f")}


def start_bare(program, folder, answers):
    port = free_port()
    (folder / "answers").mkdir()
    for method, message in answers.items():
        (folder / "answers" / method).write_bytes(message)
    process = subprocess.Popen([program, str(port), folder / "answers"], stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        sys.exit("the bare server did not start")
    return process, f"127.0.0.1:{port}"


def triton_config(inputs):
    rows = ", ".join('{ name: "%s" data_type: TYPE_%s dims: %s }' % (one["name"], one["datatype"], one["shape"][1:])
                     for one in inputs if not one["name"].endswith(".counts"))
    return (f'name: "ctr" backend: "python" max_batch_size: 1024 input [ {rows} ] '
            'output [ { name: "loss" data_type: TYPE_FP32 dims: [ 1 ] } ] dynamic_batching { } '
            f'instance_group [ {{ count: {os.cpu_count()} kind: KIND_CPU }} ]')


def measure(bench, targets, folder, clients, options):
    """Returns rates and percentiles by server. Each round measures all servers; results are medians of the rounds."""
    rounds = {name: [] for name in targets}
    for _ in range(options.rounds):
        for name, address in targets.items():
            rounds[name].append(Load(bench, "ctr", address, str(folder), "load", "--grpc", "--clients", clients,
                                     "--seconds", options.seconds).result())
    found = {}
    for name, all_rounds in rounds.items():
        found[name] = {what: statistics.median(one[what] for one in all_rounds) for what in all_rounds[0]}
        one = found[name]
        print(f"{name:8} {clients:3} clients: {one['requests']:7.0f}/s, p50 {one['p50']:7.2f} ms, p99 {one['p99']:7.2f} ms; "
              f"{load_average()}", flush=True)
    ratios = {name: statistics.median(a["requests"] / b["requests"] for a, b in zip(rounds["huge_ctr"], rounds[name]))
              for name in targets if name != "huge_ctr"}
    print("  huge_ctr answers " + ", ".join(f"{ratio:.2f} times the requests of {name}" for name, ratio in ratios.items()))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path, help="folder of huge_ctr, bench, data_generator and bare_grpc_server")
    parser.add_argument("--bare", type=pathlib.Path, help="path of bare_grpc_server, if it is not in the folder `bin`")
    parser.add_argument("--triton", help="the folder pytriton/tritonserver of the unpacked wheel")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=3, help="seconds of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = options.bin.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        small_dlrm(programs, folder)
        ours, ports = start_ours(programs / "huge_ctr", str(folder), ["--threads", "1"])
        metadata = json.loads(raw(ports[0], "GET", "/v2/models/ctr")[1])
        bare, bare_address = start_bare((options.bare or programs / "bare_grpc_server").resolve(), folder,
                                        constant_answers(metadata))
        targets = {"huge_ctr": f"127.0.0.1:{ports[1]}", "bare": bare_address}
        triton = None
        if options.triton:
            model = f"PATH = {str(folder / 'onnx/model.onnx')!r}\n" + TRITON_MODEL
            triton, triton_ports = start_triton(options.triton, str(folder), triton_config(metadata["inputs"]), model)
            targets["Triton"] = f"127.0.0.1:{triton_ports[1]}"
        try:
            for clients in options.clients:
                found = measure(programs / "bench", targets, folder, clients, options)
            rate = found["huge_ctr"]["requests"] / 2
            for name, address in targets.items():
                if name == "Triton":
                    continue
                one = Load(programs / "bench", "ctr", address, str(folder), "half", "--grpc", "--clients", 32, "--rate",
                           rate, "--seconds", options.seconds).result()
                print(f"{name:8} at {rate:.0f}/s, random times: p50 {one['p50']:.2f} ms, p99 {one['p99']:.2f} ms; "
                      f"{load_average()}")
        finally:
            bare.kill()
            ours.stop()
            if triton:
                triton.stop()


if __name__ == "__main__":
    main()
