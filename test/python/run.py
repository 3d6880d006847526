#!/usr/bin/env python3
"""Tests of the Python package: run.py BIN_FOLDER WORK_FOLDER [TEST...]. Exit code 77: skipped, with the reason.

Makes the wheel, installs it into a clean environment without network, runs the tests there, and uninstalls it. NumPy
and other packages come from HCTR_PYTHON, or from this Python if it has NumPy; otherwise pip installs them once into the
user's cache.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ["numpy", "pandas", "scikit-learn"]


def run(*command, **options):
    return subprocess.run([str(one) for one in command], check=True, **options)


def folder_of(python, package):
    """The folder of a Python package; None: not installed."""
    code = f"import {package}, pathlib; print(pathlib.Path({package}.__file__).parents[1])"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def installed_packages(python):
    """A folder in the user's cache with the packages, installed by pip. None: pip cannot get them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
    )
    folder = cache / "huge_ctr" / f"python-{version.stdout.strip()}"
    if (folder / "numpy").is_dir():
        return folder
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "15"]
    done = subprocess.run([python, "-m", "pip", "install", *options, "--target", str(folder), *PACKAGES])
    return folder if done.returncode == 0 else None


def files_of(folder):
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if "__pycache__" not in path.parts}


def main():
    bin_folder, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    python = os.environ.get("HCTR_PYTHON") or sys.executable
    packages = [folder_of(python, "numpy") or installed_packages(python), folder_of(python, "pyarrow")]
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
        return 1 if left or tests.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
