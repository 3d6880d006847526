#!/usr/bin/env python3
"""Runs the same tritonclient calls against `huge_ctr serve` and Triton, and compares the responses field by field.

    pip install "tritonclient[http,grpc]" "numpy<2"              # in an environment of its own
    pip download nvidia-pytriton==0.7.0 --no-deps && unzip *.whl  # brings Triton 2.51
    test/trials/serve_conformance.py --program build/cpu/bin/huge_ctr --triton pytriton/tritonserver

Without --triton, only our server is called. The script first trains a small model on generated clicks. Triton serves a
model with the same inputs and outputs by its Python backend. Prints the calls with different responses. docs/serving.md
lists the intended differences.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def train(program, folder):
    random.seed(1)
    with open(os.path.join(folder, "clicks.csv"), "w") as file:
        file.write("clicked,city,price\n")
        for _ in range(2000):
            city = random.choice(["berlin", "paris", "rome"])
            file.write(f"{int(random.random() < (0.6 if city == 'paris' else 0.3))},{city},{random.uniform(0, 9):.2f}\n")
    for command in (["init", "clicks.csv", "--label", "clicked", "--out", "config.json"],
                    ["train", "config.json", "--run-dir", "run", "--max-iter", "40"]):
        subprocess.run([program, *command], cwd=folder, check=True, capture_output=True)


class Server:
    def __init__(self, command, folder, environment=None):
        self.log = open(os.path.join(folder, "server.log"), "w+")
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log, stderr=self.log, env=environment)

    def wait(self, port):
        for _ in range(600):
            try:
                if urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready").status == 200:
                    return
            except OSError:
                time.sleep(0.1)
            if self.process.poll() is not None:
                break
        self.log.seek(0)
        sys.exit("the server did not start:\n" + self.log.read()[-3000:])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


PYTHON_MODEL = """
import numpy as np
import triton_python_backend_utils as utils
class TritonPythonModel:
    def execute(self, requests):
        return [utils.InferenceResponse([utils.Tensor("loss",
            np.zeros((utils.get_input_tensor_by_name(r, "dense").as_numpy().shape[0], 1), np.float32))])
            for r in requests]
"""


def start_ours(program, folder):
    ports = [free_port() for _ in range(3)]
    os.makedirs(os.path.join(folder, "models/ctr"))
    os.symlink(os.path.join(folder, "run"), os.path.join(folder, "models/ctr/1"))
    server = Server([program, "serve", "models", "--model-control", "explicit", "--load-model", "ctr", "--shared-memory",
                     "--http-port", str(ports[0]), "--grpc-port", str(ports[1]), "--metrics-port", str(ports[2])], folder)
    server.wait(ports[0])
    return server, ports


def start_triton(home, folder, inputs):
    ports = [free_port() for _ in range(3)]
    repository = os.path.join(folder, "triton")
    os.makedirs(os.path.join(repository, "ctr/1"))
    with open(os.path.join(repository, "ctr/1/model.py"), "w") as file:
        file.write(f"import sys\nsys.path[:0] = {[path for path in sys.path if path]!r}\n" + PYTHON_MODEL)
    rows = ", ".join('{ name: "%s" data_type: TYPE_%s dims: %s }' % (i["name"], i["datatype"], i["shape"][1:])
                     for i in inputs)
    with open(os.path.join(repository, "ctr/config.pbtxt"), "w") as file:
        file.write(f'name: "ctr" backend: "python" max_batch_size: 65536 input [ {rows} ] '
                   'output [ { name: "loss" data_type: TYPE_FP32 dims: [ 1 ] } ] instance_group [ { kind: KIND_CPU } ]')
    libraries = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(home))), "nvidia_pytriton.libs")
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries + ":" + os.path.join(home, "lib"))
    binary = os.path.join(os.path.abspath(home), "bin/tritonserver")
    os.chmod(binary, 0o755)
    backends = os.path.join(folder, "backends")
    shutil.copytree(os.path.join(home, "backends"), backends)
    stub = "python_backend_stubs/%d.%d/triton_python_backend_stub" % sys.version_info[:2]
    shutil.copy(os.path.join(home, stub), os.path.join(backends, "python"))
    os.chmod(os.path.join(backends, "python/triton_python_backend_stub"), 0o755)
    server = Server([binary, "--model-repository", repository, "--backend-directory",
                     backends, "--model-control-mode=explicit", "--load-model=ctr",
                     "--http-address=127.0.0.1", f"--http-port={ports[0]}", "--grpc-address=127.0.0.1",
                     f"--grpc-port={ports[1]}", "--metrics-address=127.0.0.1", f"--metrics-port={ports[2]}"], folder,
                    environment)
    server.wait(ports[0])
    return server, ports


def shape_of(value):
    """The fields and types of a response, without values that differ between servers."""
    if isinstance(value, dict):
        return {key: shape_of(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    return type(value).__name__


def raw(port, method, path, body=None, headers=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, method=method, headers=headers or {})
    try:
        answer = urllib.request.urlopen(request)
        return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def tensors(module, binary=None):
    """Two samples: a dense input with one column, and one key per slot."""
    values = {"dense": np.array([[1.0], [2.0]], np.float32), "keys": np.array([[3], [4]], np.int64)}
    inputs = []
    for name, value in values.items():
        one = module.InferInput(name, list(value.shape), "FP32" if value.dtype == np.float32 else "INT64")
        one.set_data_from_numpy(value, **({} if binary is None else {"binary_data": binary}))
        inputs.append(one)
    return inputs


def outcome(call):
    try:
        return call()
    except Exception as error:  # the error that a client sees
        status = getattr(error, "status", lambda: "")()
        return f"{type(error).__name__} {status}"


def calls(ports):
    """Calls by name, with the fields or values of the response that both servers should share."""
    http = http_client.InferenceServerClient(f"127.0.0.1:{ports[0]}")
    grpc = grpc_client.InferenceServerClient(f"127.0.0.1:{ports[1]}")
    found = {}

    def add(name, call):
        found[name] = outcome(call)

    infer = "/v2/models/ctr/infer"
    dense = {"name": "dense", "shape": [1, 1], "datatype": "FP32", "data": [1.5]}
    keys = {"name": "keys", "shape": [1, 1], "datatype": "INT64", "data": [3]}
    as_json = lambda *inputs, **more: json.dumps({"inputs": inputs, **more}).encode()
    for name, client in (("http", http), ("grpc", grpc)):
        module = http_client if client is http else grpc_client
        more = {} if client is http else {"as_json": True}
        add(f"{name} live", client.is_server_live)
        add(f"{name} ready", client.is_server_ready)
        add(f"{name} model ready", lambda: client.is_model_ready("ctr"))
        add(f"{name} unknown model ready", lambda: client.is_model_ready("zz"))
        add(f"{name} server metadata", lambda: shape_of(client.get_server_metadata(**more)))
        add(f"{name} model metadata", lambda: shape_of(client.get_model_metadata("ctr", **more)))
        add(f"{name} metadata of an unknown model", lambda: client.get_model_metadata("zz", **more))
        add(f"{name} config", lambda: sorted(set(client.get_model_config("ctr", **more).get("config", {}) or
                                                 client.get_model_config("ctr", **more)) & {"name", "input", "output"}))
        add(f"{name} infer", lambda: client.infer("ctr", tensors(module)).as_numpy("loss").shape)
        add(f"{name} infer, version and id",
            lambda: [client.infer("ctr", tensors(module), model_version="1", request_id="a").get_response(**more).get(key)
                     if client is grpc else
                     client.infer("ctr", tensors(module), model_version="1", request_id="a").get_response().get(key)
                     for key in ("id", "model_name", "model_version")])
        add(f"{name} infer, unknown model", lambda: client.infer("zz", tensors(module)))
        add(f"{name} infer, unknown version", lambda: client.infer("ctr", tensors(module), model_version="9"))
        add(f"{name} infer, one input missing", lambda: client.infer("ctr", tensors(module)[:1]))
        add(f"{name} infer, unknown output",
            lambda: client.infer("ctr", tensors(module), outputs=[module.InferRequestedOutput("zz")]))
        add(f"{name} statistics", lambda: shape_of(client.get_inference_statistics("ctr", **more))["model_stats"][0]["name"])
        add(f"{name} index", lambda: shape_of(client.get_model_repository_index(**more)))
        add(f"{name} unload", lambda: client.unload_model("ctr"))
        add(f"{name} infer, unloaded", lambda: client.infer("ctr", tensors(module)))
        add(f"{name} load", lambda: client.load_model("ctr"))
        for _ in range(100):
            if client.is_model_ready("ctr"):
                break
            time.sleep(0.1)
        add(f"{name} load of an unknown model", lambda: client.load_model("zz"))
    add("http infer, JSON", lambda: http.infer("ctr", tensors(http_client, False)).as_numpy("loss").shape)
    for packing in ("gzip", "deflate"):
        add(f"http infer, {packing}", lambda: http.infer("ctr", tensors(http_client), request_compression_algorithm=packing,
                                                         response_compression_algorithm=packing).as_numpy("loss").shape)
    add("raw JSON", lambda: shape_of(json.loads(raw(ports[0], "POST", infer, as_json(dense, keys))[1])))
    for name, body in {
            "no JSON": b"{", "wrong datatype": as_json(dict(dense, datatype="INT32", data=[1]), keys),
            "unknown input": as_json(dense, dict(keys, name="zz")), "shape and data": as_json(dict(dense, data=[1, 2]), keys),
            "wrong shape": as_json(dict(dense, shape=[1, 2], data=[1, 2]), keys), "no inputs": b"{}"}.items():
        add(f"raw, {name}", lambda: (raw(ports[0], "POST", infer, body)[0],
                                     sorted(json.loads(raw(ports[0], "POST", infer, body)[1]))))
    add("raw, unknown path", lambda: raw(ports[0], "GET", "/v2/nothing")[0])
    add("raw, wrong verb", lambda: raw(ports[0], "PUT", "/v2/models/ctr")[0])
    answers = []
    grpc.start_stream(callback=lambda result, error: answers.append(error or result.as_numpy("loss").shape))
    for _ in range(3):
        grpc.async_stream_infer("ctr", tensors(grpc_client))
    grpc.stop_stream()
    found["grpc stream"] = [str(one) for one in answers]
    metrics = raw(ports[2], "GET", "/metrics")[1].decode()
    found["metrics"] = sorted({line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE nv_inf")})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="huge_ctr")
    parser.add_argument("--triton", help="pytriton/tritonserver of the unpacked wheel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train(os.path.abspath(options.program), folder)
        server, ports = start_ours(os.path.abspath(options.program), folder)
        metadata = http_client.InferenceServerClient(f"127.0.0.1:{ports[0]}").get_model_metadata("ctr")
        ours = calls(ports)
        if server.stop() != 0:
            sys.exit("our server did not end with 0")
        if not options.triton:
            for name, answer in ours.items():
                print(f"{name}: {answer}")
            return
        server, ports = start_triton(options.triton, folder, metadata["inputs"])
        theirs = calls(ports)
        server.stop()
        same = [name for name in ours if ours[name] == theirs[name]]
        print(f"{len(same)} of {len(ours)} calls are answered alike; the others:")
        for name in ours:
            if name not in same:
                print(f"{name}\n  ours:   {ours[name]}\n  Triton: {theirs[name]}")


if __name__ == "__main__":
    main()
