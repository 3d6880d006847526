"""Shared by the trials of `huge_ctr serve`: a small model, a server process and its resources, and `bench serve`."""

import atexit
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def train(program, folder, seeds=(1,)):
    """Writes clicks.csv, and trains a model for each seed in the run folders run, run2, run3 and so on."""
    random.seed(1)
    with open(os.path.join(folder, "clicks.csv"), "w") as file:
        file.write("clicked,city,price\n")
        for _ in range(2000):
            city = random.choice(["berlin", "paris", "rome"])
            file.write(f"{int(random.random() < (0.6 if city == 'paris' else 0.3))},{city},{random.uniform(0, 9):.2f}\n")
    commands = [["init", "clicks.csv", "--label", "clicked", "--out", "config.json"]]
    for number, seed in enumerate(seeds, 1):
        commands.append(["train", "config.json", "--run-dir", "run" if number == 1 else f"run{number}",
                         "--max-iter", "40", "--seed", str(seed)])
    for command in commands:
        done = subprocess.run([program, *command], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"huge_ctr {' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


class Server:
    """A server process, whose output goes to server.log in `folder`."""

    def __init__(self, command, folder, environment=None):
        self.log = open(os.path.join(folder, "server.log"), "w+")
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log, stderr=self.log, env=environment)
        atexit.register(self.process.kill)  # also after an error

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

    def resources(self):
        """Resident memory in MiB, open descriptors, and threads."""
        folder = f"/proc/{self.process.pid}"
        with open(folder + "/status") as file:
            status = dict(line.split(":", 1) for line in file)
        return {"MiB": int(status["VmRSS"].split()[0]) / 1024, "descriptors": len(os.listdir(folder + "/fd")),
                "threads": int(status["Threads"])}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def start_ours(program, folder, options=(), device="cpu"):
    """Serves the repository models/ with the version 1 of the model ctr. Returns the server and its three ports."""
    ports = [free_port() for _ in range(3)]
    os.makedirs(os.path.join(folder, "models/ctr"), exist_ok=True)
    if not os.path.lexists(os.path.join(folder, "models/ctr/1")):
        os.symlink(os.path.join(folder, "run"), os.path.join(folder, "models/ctr/1"))
    server = Server([program, "serve", "models", "--model-control", "explicit", "--load-model", "ctr", "--device", device,
                     "--http-port", str(ports[0]), "--grpc-port", str(ports[1]), "--metrics-port", str(ports[2]),
                     *options], folder)
    server.wait(ports[0])
    return server, ports


def start_triton(home, folder, config, model):
    """Starts the Triton of the unpacked wheel nvidia-pytriton with a model ctr of its Python backend. `home`:
    pytriton/tritonserver. `config`: text of config.pbtxt. `model`: text of model.py, which runs with the packages of
    this Python. Returns the server and its ports for HTTP, gRPC and metrics.
    """
    ports = [free_port() for _ in range(3)]
    repository = os.path.join(folder, "triton")
    os.makedirs(os.path.join(repository, "ctr/1"))
    with open(os.path.join(repository, "ctr/1/model.py"), "w") as file:
        file.write(f"import sys\nsys.path[:0] = {[path for path in sys.path if path]!r}\n" + model)
    with open(os.path.join(repository, "ctr/config.pbtxt"), "w") as file:
        file.write(config)
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


def raw(port, method, path, body=None, headers=None, timeout=60):
    """Sends one HTTP request. Returns status and body, also of an error."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, method=method, headers=headers or {})
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
        return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class Load:
    """`bench serve` in the background. result() returns requests per second and percentiles in ms, and ends the trial if
    a request failed.
    """

    def __init__(self, program, model, address, folder, name, *options):
        self.path = os.path.join(folder, name + ".json")
        self.process = subprocess.Popen([program, "serve", model, "--address", address, "--json", self.path,
                                         "--device", "cpu", *map(str, options)], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def result(self):
        text = self.process.communicate()[0]
        if self.process.returncode != 0:
            sys.exit("bench serve failed:\n" + text)
        with open(self.path) as file:
            figures = {row["what"].removeprefix("serve "): row["value"] for row in json.load(file)["figures"]}
        return figures


def load_average():
    return f"load average {os.getloadavg()[0]:.1f}"
