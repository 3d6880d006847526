#!/usr/bin/env python3
"""Makes a wheel from a build: python/build_wheel.py BUILD_FOLDER OUT_FOLDER     (build/cpu dist)

A CPU build gives huge_ctr: the package, the library, the programs, hctr_model.py, and the system libraries that a clean
environment may lack (OpenBLAS, zstd, yaml-cpp). A CUDA build gives huge_ctr_cuda: only its library, which huge_ctr
finds at import. Needs only Python, strip and ldd; the same files give the same wheel.
"""

import argparse
import base64
import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
PROGRAMS = [
    "huge_ctr",
    "criteo2hugectr",
    "data_generator",
    "data_inspect",
    "feature_spec",
    "preprocess",
    "table_inspect",
    "model_convert",
]
PLUGINS = [f"libhuge_ctr_{name}.so" for name in ("parquet", "mpi", "rocksdb", "redis", "kafka", "grpc")]
# The libraries that every Linux with this version of glibc has, and the libraries of CUDA.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so|lib(cu|nv|nccl))")

METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: C++
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_libraries(files):
    """Returns all libraries that the files load, directly or indirectly, except the system's, as a dict of name to
    path.
    """
    found = {}
    for file in files:
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", str(file)), re.M):
            if not OF_THE_SYSTEM.match(name):
                found[name] = Path(path)
    return found


def blas_of(library):
    """Finds the BLAS that `library` loads by name. Returns its name and path as a dict, or an empty dict."""
    name = re.search(rb"lib(?:open|c)?blas[\w.-]*\.so[.\d]*", library.read_bytes())
    listed = re.search(rf"\s{re.escape(name[0].decode())} .*=> (\S+)", run("/sbin/ldconfig", "-p")) if name else None
    return {name[0].decode(): Path(listed[1])} if listed else {}


class Wheel:
    """The files of a wheel, by their names in the wheel."""

    def __init__(self, name, version, tag):
        self.name, self.version, self.tag, self.files = name, version, tag, {}

    def add(self, name, path_or_text, executable=False):
        data = path_or_text.encode() if isinstance(path_or_text, str) else path_or_text.read_bytes()
        self.files[name] = (data, 0o755 if executable else 0o644)

    def write(self, folder, level):
        info = f"{self.name}-{self.version}.dist-info"
        self.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: huge_ctr\nRoot-Is-Purelib: false\nTag: {self.tag}\n")
        record = []
        path = folder / f"{self.name}-{self.version}-{self.tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name, (data, mode) in sorted(self.files.items()):
                entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                entry.external_attr = (0o100000 | mode) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data, compresslevel=level)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{name},sha256={digest},{len(data)}")
            archive.writestr(f"{info}/RECORD", "\n".join(record + [f"{info}/RECORD,,"]) + "\n")
        return path


def stripped(path, folder):
    out = folder / path.name
    subprocess.run(["strip", "-o", out, path], check=True)
    return out


def add_program(wheel, scripts, bin_folder, program, work):
    path = bin_folder / program
    if not path.exists():
        sys.exit(f"{path} is not built; build all programs: cmake --build {bin_folder.parent}")
    wheel.add(f"huge_ctr/bin/{program}", stripped(path, work), executable=True)
    scripts.append(f"{program} = hctr_programs:{program}")


def cpu_wheel(bin_folder, version, tag, work):
    wheel = Wheel("huge_ctr", version, tag)
    library = bin_folder / "libhuge_ctr.so"
    for path in sorted((SOURCE / "huge_ctr").rglob("*.py")) + [SOURCE / "huge_ctr/py.typed"]:
        wheel.add(str(path.relative_to(SOURCE)), path)
    wheel.add("hctr_model.py", SOURCE.parent / "tools/python/hctr_model.py")
    wheel.add("hctr_programs.py", SOURCE / "hctr_programs.py")
    wheel.add("huge_ctr/lib/libhuge_ctr.so", stripped(library.resolve(), work))
    scripts = []
    for program in PROGRAMS:
        add_program(wheel, scripts, bin_folder, program, work)
    for plugin in PLUGINS:  # the wheel lacks the libraries that plug-ins need: they load the system's, if installed
        if (bin_folder / plugin).exists():
            wheel.add(f"huge_ctr/bin/{plugin}", stripped(bin_folder / plugin, work))
    bundled = needed_libraries([library, *(bin_folder / program for program in PROGRAMS)])
    blas = blas_of(library)
    bundled.update(blas)
    bundled.update(needed_libraries(blas.values()))
    for name, path in bundled.items():
        wheel.add(f"huge_ctr/lib/{name}", path)
    info = f"huge_ctr-{version}.dist-info"
    text = METADATA.format(name="huge-ctr", version=version, summary="Trains click-through-rate models, and scores")
    extras = "Provides-Extra: all\n" + "".join(
        f'Requires-Dist: {one}; extra == "all"\n' for one in ("pandas", "scikit-learn", "pyarrow")
    )
    wheel.add(f"{info}/METADATA", text + "Requires-Dist: numpy>=1.22\n" + extras)
    wheel.add(f"{info}/entry_points.txt", "[console_scripts]\n" + "\n".join(scripts) + "\n")
    wheel.add(f"{info}/LICENSE", SOURCE.parent / "LICENSE")
    return wheel


def cuda_wheel(bin_folder, version, tag, work):
    wheel = Wheel("huge_ctr_cuda", version, tag)
    wheel.add("huge_ctr_cuda/__init__.py", '"""The library of huge_ctr with CUDA, which `import huge_ctr` finds."""\n')
    wheel.add("huge_ctr_cuda/libhuge_ctr.so", stripped((bin_folder / "libhuge_ctr.so").resolve(), work))
    text = METADATA.format(name="huge-ctr-cuda", version=version, summary="huge_ctr on GPUs")
    wheel.add(f"huge_ctr_cuda-{version}.dist-info/METADATA", text + f"Requires-Dist: huge-ctr=={version}\n")
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--whole", action="store_true", help="put everything into one wheel, even for a CUDA build")
    parser.add_argument("--test", action="store_true", help="like --whole, but with fast compression")
    options = parser.parse_args()
    bin_folder = options.build.resolve() / "bin"
    about = run(str(bin_folder / "huge_ctr"), "--version")
    version = re.search(r"^huge_ctr (\S+)", about, re.M)[1]
    is_cpu = re.search(r"^  CUDA: *none", about, re.M)
    glibc = platform.libc_ver()[1].replace(".", "_")
    options.out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp())
    try:
        tag = f"py3-none-manylinux_{glibc}_{platform.machine()}"
        make = cpu_wheel if is_cpu or options.whole or options.test else cuda_wheel
        print(make(bin_folder, version, tag, work).write(options.out, 1 if options.test else 9))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
