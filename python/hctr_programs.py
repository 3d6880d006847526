"""Entry points that run the wheel's programs. The programs find their libraries in the package."""

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent / "huge_ctr"


def _command(program):
    def start():
        path = str(_PACKAGE / "bin" / program)
        environment = dict(os.environ)
        folders = [str(_PACKAGE / "lib"), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
        os.execve(path, [path, *sys.argv[1:]], environment)

    return start


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _command(name)
