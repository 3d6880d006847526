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
import os
import sys
import tempfile

import tritonclient.http as http_client

from serve_calls import calls
from serve_rig import start_ours, start_triton, train


PYTHON_MODEL = """
import numpy as np
import triton_python_backend_utils as utils
class TritonPythonModel:
    def execute(self, requests):
        return [utils.InferenceResponse([utils.Tensor("loss",
            np.full((utils.get_input_tensor_by_name(r, "dense").as_numpy().shape[0], 1), 0.5, np.float32))])
            for r in requests]
"""


def start_model(home, folder, inputs):
    rows = ", ".join('{ name: "%s" data_type: TYPE_%s dims: %s }' % (i["name"], i["datatype"], i["shape"][1:])
                     for i in inputs)
    config = (f'name: "ctr" backend: "python" max_batch_size: 65536 input [ {rows} ] '
              'output [ { name: "loss" data_type: TYPE_FP32 dims: [ 1 ] } ] instance_group [ { kind: KIND_CPU } ]')
    return start_triton(home, folder, config, PYTHON_MODEL)


def print_differences(name, ours, theirs):
    """Prints two responses; of responses with fields, only the fields that differ."""
    print(name)
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        print(f"  ours:   {ours}\n  Triton: {theirs}")
        return
    for field in sorted({*ours, *theirs}):
        if ours.get(field) != theirs.get(field):
            print(f"  {field}: ours {ours.get(field, '-')}, Triton {theirs.get(field, '-')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="path of huge_ctr")
    parser.add_argument("--triton", help="the folder pytriton/tritonserver of the unpacked wheel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train(os.path.abspath(options.program), folder)
        server, ports = start_ours(os.path.abspath(options.program), folder, ["--shared-memory"])
        metadata = http_client.InferenceServerClient(f"127.0.0.1:{ports[0]}").get_model_metadata("ctr")
        ours = calls(ports)
        if server.stop() != 0:
            sys.exit("our server did not end with 0")
        if not options.triton:
            for name, answer in ours.items():
                print(f"{name}: {answer}")
            return
        server, ports = start_model(options.triton, folder, metadata["inputs"])
        theirs = calls(ports)
        server.stop()
        same = [name for name in ours if ours[name] == theirs[name]]
        print(f"{len(same)} of {len(ours)} calls are answered alike; the others:")
        for name in ours:
            if name not in same:
                print_differences(name, ours[name], theirs[name])


if __name__ == "__main__":
    main()
