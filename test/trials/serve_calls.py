"""The calls of serve_conformance.py: tritonclient over HTTP and gRPC, synchronous and asyncio, and raw requests."""

import asyncio
import json
import time

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as http_client
import tritonclient.http.aio as http_aio
import tritonclient.utils.shared_memory as shared_memory

from serve_rig import raw



def fields(value, path=""):
    """The fields of a response by path, with their types. All elements of a list have the same path."""
    if isinstance(value, dict):
        found = {}
        for key, one in value.items():
            found.update(fields(one, f"{path}.{key}" if path else key))
        return found or {path: "empty object"}
    if isinstance(value, list):
        found = {}
        for one in value:
            found.update(fields(one, path + "[]"))
        return found or {path: "empty list"}
    return {path: type(value).__name__}


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


def response_fields(result, **more):
    """The fields of an inference response, its output's shape and type, and the values that both servers must share."""
    response = result.get_response(**more)
    found = fields(response)
    found.update({key: response.get(key) for key in ("id", "model_name", "model_version")})
    scores = result.as_numpy("loss")
    found["loss"] = (scores.shape, str(scores.dtype))
    return found


def client_calls(add, name, client, module, more):
    """Calls that both clients have."""
    add(f"{name} live", client.is_server_live)
    add(f"{name} ready", client.is_server_ready)
    add(f"{name} model ready", lambda: client.is_model_ready("ctr"))
    add(f"{name} model ready, version", lambda: client.is_model_ready("ctr", "1"))
    add(f"{name} unknown model ready", lambda: client.is_model_ready("zz"))
    add(f"{name} server metadata", lambda: fields(client.get_server_metadata(**more)))
    add(f"{name} extensions", lambda: dict.fromkeys(client.get_server_metadata(**more)["extensions"], "listed"))
    add(f"{name} model metadata", lambda: fields(client.get_model_metadata("ctr", **more)))
    add(f"{name} inputs", lambda: client.get_model_metadata("ctr", **more)["inputs"])
    add(f"{name} metadata of an unknown model", lambda: client.get_model_metadata("zz", **more))
    add(f"{name} metadata of an unknown version", lambda: client.get_model_metadata("ctr", "9", **more))
    add(f"{name} config", lambda: fields(client.get_model_config("ctr", **more)))
    add(f"{name} infer", lambda: response_fields(client.infer("ctr", tensors(module)), **more))
    add(f"{name} infer, version and id",
        lambda: response_fields(client.infer("ctr", tensors(module), model_version="1", request_id="a"), **more))
    add(f"{name} infer, timeout and priority",
        lambda: response_fields(client.infer("ctr", tensors(module), priority=1, timeout=10_000_000), **more))
    add(f"{name} infer, own parameter",
        lambda: response_fields(client.infer("ctr", tensors(module), parameters={"from": "a"}), **more))
    add(f"{name} infer, reserved parameter", lambda: client.infer("ctr", tensors(module), parameters={"priority": 1}))
    add(f"{name} infer, one output",
        lambda: response_fields(client.infer("ctr", tensors(module), outputs=[module.InferRequestedOutput("loss")]),
                                **more))
    add(f"{name} infer, unknown model", lambda: client.infer("zz", tensors(module)))
    add(f"{name} infer, unknown version", lambda: client.infer("ctr", tensors(module), model_version="9"))
    add(f"{name} infer, version is no number", lambda: client.infer("ctr", tensors(module), model_version="x"))
    add(f"{name} infer, one input missing", lambda: client.infer("ctr", tensors(module)[:1]))
    add(f"{name} infer, an input twice", lambda: client.infer("ctr", tensors(module) + tensors(module)[:1]))
    add(f"{name} infer, unknown output",
        lambda: client.infer("ctr", tensors(module), outputs=[module.InferRequestedOutput("zz")]))
    add(f"{name} statistics", lambda: fields(client.get_inference_statistics("ctr", **more)))
    add(f"{name} statistics of all models", lambda: fields(client.get_inference_statistics(**more)))
    add(f"{name} statistics of an unknown model", lambda: client.get_inference_statistics("zz", **more))
    add(f"{name} index", lambda: fields(client.get_model_repository_index(**more)))
    add(f"{name} trace settings", lambda: type(client.get_trace_settings(**more)).__name__)
    add(f"{name} log settings", lambda: type(client.get_log_settings(**more)).__name__)
    add(f"{name} unload", lambda: client.unload_model("ctr"))
    add(f"{name} infer, unloaded", lambda: client.infer("ctr", tensors(module)))
    time.sleep(0.5)  # Triton unloads in the background
    add(f"{name} index, unloaded", lambda: [(row.get("state"), row.get("reason")) for row in rows_of(client, more)])
    add(f"{name} unload of an unknown model", lambda: client.unload_model("zz"))
    add(f"{name} load", lambda: client.load_model("ctr"))
    for _ in range(100):
        if client.is_model_ready("ctr"):
            break
        time.sleep(0.1)
    add(f"{name} load of an unknown model", lambda: client.load_model("zz"))


def rows_of(client, more):
    index = client.get_model_repository_index(**more)
    return index["models"] if isinstance(index, dict) else index


def region_calls(add, name, client, module, more):
    """Inputs and outputs in system shared memory, and accesses outside of it."""
    region = shared_memory.create_shared_memory_region("r", f"/hctr_conformance_{name}", 256)
    try:
        shared_memory.set_shared_memory_region(region, [np.array([[1.0], [2.0]], np.float32)])
        shared_memory.set_shared_memory_region(region, [np.array([[3], [4]], np.int64)], offset=16)
        register = lambda size, offset=0: client.register_system_shared_memory(
            "r", f"/hctr_conformance_{name}", size, offset=offset)

        def infer(*places, output=(64, 8)):
            inputs = tensors(module)
            for one, (offset, size) in zip(inputs, places):
                one.set_shared_memory("r", size, offset=offset)
            wanted = module.InferRequestedOutput("loss")
            if output:
                wanted.set_shared_memory("r", output[1], offset=output[0])
            response = client.infer("ctr", inputs, outputs=[wanted])
            found = fields(response.get_response(**more))
            if output:
                found["in memory"] = bool((shared_memory.get_contents_as_numpy(region, np.float32, [2, 1], offset=64) > 0).all())
            return found

        add(f"{name} infer, region not registered", lambda: infer((0, 8), (16, 16)))
        add(f"{name} region, too large", lambda: register(1024))
        add(f"{name} region, unknown key", lambda: client.register_system_shared_memory("q", "/hctr_none", 8))
        add(f"{name} region", lambda: register(128))
        add(f"{name} region, twice", lambda: register(128))
        add(f"{name} region status", lambda: fields(client.get_system_shared_memory_status(**more)))
        add(f"{name} region status, unknown", lambda: client.get_system_shared_memory_status("zz", **more))
        add(f"{name} infer, region", lambda: infer((0, 8), (16, 16)))
        add(f"{name} infer, region for inputs", lambda: infer((0, 8), (16, 16), output=None))
        add(f"{name} infer, end outside the region", lambda: infer((0, 8), (120, 16)))
        add(f"{name} infer, begin outside the region", lambda: infer((4096, 8), (16, 16)))
        add(f"{name} infer, too few bytes of a region", lambda: infer((0, 4), (16, 16)))
        add(f"{name} infer, output outside the region", lambda: infer((0, 8), (16, 16), output=(124, 8)))
        add(f"{name} infer, output too large for its bytes", lambda: infer((0, 8), (16, 16), output=(64, 4)))
        add(f"{name} region, removed", lambda: client.unregister_system_shared_memory("r"))
        add(f"{name} region, removed twice", lambda: client.unregister_system_shared_memory("r"))
        add(f"{name} regions, removed", client.unregister_system_shared_memory)
        add(f"{name} CUDA region status", lambda: fields(client.get_cuda_shared_memory_status(**more)))
    finally:
        shared_memory.destroy_shared_memory_region(region)


async def asyncio_calls(ports):
    """The same client in asyncio, with ten requests at once."""
    found = {}
    for name, module, port in ("http", http_aio, ports[0]), ("grpc", grpc_aio, ports[1]):
        more = {} if name == "http" else {"as_json": True}
        inputs = http_client if name == "http" else grpc_client
        async with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
            async def ask(call):
                try:
                    return await call
                except Exception as error:
                    return f"{type(error).__name__} {getattr(error, 'status', lambda: '')()}"

            found[f"{name} asyncio ready"] = await ask(client.is_server_ready())
            found[f"{name} asyncio metadata"] = fields(await ask(client.get_model_metadata("ctr", **more)))
            results = await asyncio.gather(*(client.infer("ctr", tensors(inputs), request_id=str(i)) for i in range(10)))
            found[f"{name} asyncio infer"] = [(one.get_response(**more)["id"], one.as_numpy("loss").shape)
                                              for one in results]
            found[f"{name} asyncio infer, unknown model"] = await ask(client.infer("zz", tensors(inputs)))
    return found


def raw_calls(add, port):
    """Requests that tritonclient does not send."""
    infer = "/v2/models/ctr/infer"
    dense = {"name": "dense", "shape": [1, 1], "datatype": "FP32", "data": [1.5]}
    keys = {"name": "keys", "shape": [1, 1], "datatype": "INT64", "data": [3]}
    as_json = lambda *inputs, **more: json.dumps({"inputs": inputs, **more}).encode()

    def answer(method, path, body=None, headers=None):
        status, text = raw(port, method, path, body, headers)
        try:
            return {"status": status, **fields(json.loads(text))}
        except ValueError:
            return {"status": status, "body": "empty" if not text else "no JSON"}

    posts = {
        "JSON": as_json(dense, keys), "nested data": as_json(dict(dense, data=[[1.5]]), dict(keys, data=[[3]])),
        "no JSON": b"{", "wrong datatype": as_json(dict(dense, datatype="INT32", data=[1]), keys),
        "unknown datatype": as_json(dict(dense, datatype="FP33"), keys),
        "unknown input": as_json(dense, dict(keys, name="zz")), "shape and data": as_json(dict(dense, data=[1, 2]), keys),
        "wrong shape": as_json(dict(dense, shape=[1, 2], data=[1, 2]), keys), "no inputs": b"{}",
        "negative shape": as_json(dict(dense, shape=[-1, 1]), keys),
        "texts for numbers": as_json(dict(dense, data=["a"]), keys),
        "an input without data": as_json({key: dense[key] for key in ("name", "shape", "datatype")}, keys),
        "an id": as_json(dense, keys, id="a"), "an error with an id": as_json(dense, id="a"),
        "binary output": as_json(dense, keys, parameters={"binary_data_output": True}),
        "an unknown field": as_json(dense, keys, more=1)}
    for name, body in posts.items():
        add(f"raw, {name}", lambda: answer("POST", infer, body))
    body = as_json(dict({key: dense[key] for key in ("name", "shape", "datatype")}, parameters={"binary_data_size": 4}),
                   keys)
    for name, tail, length in ("too few binary bytes", b"12", len(body)), ("a head beyond the body", b"", 10**6), (
            "a head that is no number", b"1234", "x"):
        add(f"raw, {name}", lambda: answer("POST", infer, body + tail, {"Inference-Header-Content-Length": str(length)}))
    for method, path in (("GET", "/v2"), ("GET", "/v2/health/live"), ("GET", "/v2/health/ready"), ("GET", "/v2/nothing"),
                         ("GET", "/v3"), ("PUT", "/v2/models/ctr"), ("GET", infer), ("POST", "/v2/models/ctr"),
                         ("GET", "/v2/models/ctr/versions/1"), ("GET", "/v2/models/ctr/versions/1/ready"),
                         ("GET", "/v2/models/ctr/versions/9/ready"), ("GET", "/v2/models/ctr/versions/x/ready"),
                         ("GET", "/v2/models/zz/ready"), ("GET", "/v2/models/stats"), ("GET", "/v2/models/ctr/stats"),
                         ("GET", "/v2/models/ctr/versions/1/config"), ("GET", "/v2/repository/index"),
                         ("GET", "/v2/systemsharedmemory/status"), ("GET", "/v2/cudasharedmemory/status")):
        add(f"raw, {method} {path}", lambda: answer(method, path))
    add("raw, POST /v2/repository/index", lambda: answer("POST", "/v2/repository/index", b'{"ready":true}'))


def calls(ports):
    """Calls by name, with the fields or values of the response that both servers should share."""
    found = {}

    def add(name, call):
        found[name] = outcome(call)

    http = http_client.InferenceServerClient(f"127.0.0.1:{ports[0]}")
    grpc = grpc_client.InferenceServerClient(f"127.0.0.1:{ports[1]}")
    for name, client, module, more in ("http", http, http_client, {}), ("grpc", grpc, grpc_client, {"as_json": True}):
        client_calls(add, name, client, module, more)
        region_calls(add, name, client, module, more)
    add("http infer, JSON", lambda: response_fields(http.infer("ctr", tensors(http_client, False))))
    for packing in ("gzip", "deflate"):
        add(f"http infer, {packing}", lambda: response_fields(
            http.infer("ctr", tensors(http_client), request_compression_algorithm=packing,
                       response_compression_algorithm=packing)))
    found.update(asyncio.run(asyncio_calls(ports)))
    raw_calls(add, ports[0])
    answers = []
    grpc.start_stream(callback=lambda result, error: answers.append(error or result.as_numpy("loss").shape))
    for model in ("ctr", "zz", "ctr"):
        grpc.async_stream_infer(model, tensors(grpc_client))
    grpc.stop_stream()
    found["grpc stream"] = sorted("error" if isinstance(one, Exception) else str(one) for one in answers)
    metrics = raw(ports[2], "GET", "/metrics")[1].decode()
    found["metrics"] = {line.split()[2]: line.split()[3] for line in metrics.splitlines()
                        if line.startswith("# TYPE nv_inf")}
    return found
