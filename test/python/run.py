#!/usr/bin/env python3
"""Tests of the Python package: run.py BIN_FOLDER WORK_FOLDER [TEST...]. Exit code 77: skipped, with the reason.

Builds the wheel, installs it into a clean environment without network, runs the tests there, and uninstalls the wheel.
The tests use NumPy and other packages of HCTR_PYTHON, or of this Python if it has NumPy. Otherwise pip installs the
packages once into the user's cache. If no test names are given, other Pythons train and score a model, too: the
oldest and the newest that PATH and pyenv have.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ["numpy", "pandas", "scikit-learn"]


def run(*command, **options):
    return subprocess.run([str(one) for one in command], check=True, **options)


def folder_of(python, package):
    """The installation folder of a Python package; None if it is not installed."""
    code = f"import {package}, pathlib; print(pathlib.Path({package}.__file__).parents[1])"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def version_of(python):
    """The version of a Python program, such as (3, 11); None if the program is no Python."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        said = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    return tuple(map(int, said.stdout.split())) if said.returncode == 0 else None


def installed_packages(python, packages, name="python", limit=None):
    """A cache folder into which pip has installed `packages`; None if pip fails or exceeds `limit` seconds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = ".".join(map(str, version_of(python)))
    for known in {f"python-{version}", f"{name}-{version}"}:
        if (cache / "huge_ctr" / known / "numpy").is_dir():
            return cache / "huge_ctr" / known
    folder = cache / "huge_ctr" / f"{name}-{version}"
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "15"]
    command = [str(python), "-m", "pip", "install", *options, "--target", str(folder), *packages]
    try:
        return folder if subprocess.run(command, timeout=limit).returncode == 0 else None
    except subprocess.TimeoutExpired:
        shutil.rmtree(folder, ignore_errors=True)
        return None


def other_pythons(used):
    """Returns the oldest and the newest installed Python, without versions below 3.9 and without version `used`."""
    folders = [Path(one) for one in os.environ["PATH"].split(":") if one]
    folders += sorted((Path.home() / ".pyenv/versions").glob("*/bin"))
    found = {}
    for minor in range(9, 20):
        for path in (folder / f"python3.{minor}" for folder in folders):
            if (3, minor) != used and minor not in found and path.exists() and version_of(path) == (3, minor):
                found[minor] = path
    return [found[minor] for minor in sorted({min(found), max(found)})] if found else []


def works_on_other_pythons(used, wheel, folder):
    """Whether the package in the wheel works on the other Pythons."""
    site = Path(folder) / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    right = True
    for python in other_pythons(version_of(used)):
        packages = folder_of(python, "numpy") or installed_packages(python, ["numpy"], "numpy", 60)
        if packages is None:
            print(f"SKIPPED: {python} has no NumPy, and pip cannot get it in a minute", flush=True)
            continue
        variables = {**os.environ, "PYTHONPATH": f"{site}:{packages}"}
        variables.pop("HUGE_CTR_LIBRARY", None)
        done = subprocess.run([str(python), str(HERE / "other_python.py")], cwd=folder, env=variables)
        right = right and done.returncode == 0
    return right


def files_of(folder):
    """The files below `folder`, without files in __pycache__ that Python compiled for other packages."""
    ours = ("huge_ctr", "hctr_")
    return {
        str(path.relative_to(folder))
        for path in Path(folder).rglob("*")
        if "__pycache__" not in path.parts or path.name.startswith(ours)
    }


def main():
    bin_folder, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    python = os.environ.get("HCTR_PYTHON") or sys.executable
    packages = [folder_of(python, "numpy") or installed_packages(python, PACKAGES), folder_of(python, "pyarrow")]
    if packages[0] is None:
        print(f"SKIPPED: {python} has no NumPy, and pip cannot get it; HCTR_PYTHON names a Python that has it")
        return 77
    with tempfile.TemporaryDirectory(dir=work) as folder:
        made = run(
            sys.executable,
            HERE.parents[1] / "python/build_wheel.py",
            bin_folder.parent,
            folder,
            "--test",
            stdout=subprocess.PIPE,
            text=True,
        )
        wheel = made.stdout.strip()
        print(f"{wheel}: {Path(wheel).stat().st_size / 1e6:.1f} MB", flush=True)
        environment = Path(folder) / "environment"
        made_one = subprocess.run([python, "-m", "venv", str(environment)], capture_output=True, text=True)
        if made_one.returncode != 0:
            print(f"SKIPPED: {python} makes no environments: {(made_one.stdout or made_one.stderr).strip()[:300]}")
            return 77
        inside = environment / "bin/python"
        site = next((environment / "lib").glob("python*/site-packages"))
        (site / "packages.pth").write_text("".join(f"{one}\n" for one in packages if one))
        before = files_of(environment)
        pip = [inside, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run(*pip, "install", "--no-index", "--no-deps", wheel)
        variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "HUGE_CTR_LIBRARY")}
        variables.update(HCTR_BIN_DIR=str(bin_folder), PATH=f"{environment / 'bin'}:{os.environ['PATH']}")
        command = [
            inside,
            "-W",
            "ignore::ResourceWarning",
            "-m",
            "unittest",
            *(sys.argv[3:] or ["discover", "-s", HERE]),
        ]
        tests = subprocess.run([str(one) for one in command], cwd=HERE, env=variables)
        run(*pip, "uninstall", "--yes", "huge-ctr")
        left = files_of(environment) - before
        if left:
            print(f"uninstalling leaves {sorted(left)[:10]}")
        others = bool(sys.argv[3:]) or works_on_other_pythons(python, wheel, folder)
        return 1 if left or tests.returncode != 0 or not others else 0


if __name__ == "__main__":
    sys.exit(main())
