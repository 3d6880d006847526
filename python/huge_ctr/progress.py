"""A progress bar for terminals and notebooks."""

from __future__ import annotations

import shutil
import sys
from typing import Any, Mapping, Optional, TextIO

_WIDTH = 24


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


class Progress:
    """One line that is rewritten in place, and ends with a newline. Prints nothing if the output is not interactive."""

    def __init__(
        self,
        config: Mapping[str, Any],
        iterations: Optional[int] = None,
        passes: Optional[int] = None,
        wanted: Optional[bool] = None,
        out: Optional[TextIO] = None,
    ):
        solver = config.get("solver") or {}
        self._iterations = iterations or (None if passes else solver.get("max_iter"))
        self._passes = passes or solver.get("num_epochs")
        self._out = out or sys.stderr
        self._wanted = (self._out.isatty() or _in_notebook()) if wanted is None else wanted
        self._shown = 0
        self.last = ""

    def share(self, state: Any) -> Optional[float]:
        """The finished fraction of the run; None: unknown."""
        if self._iterations:
            return min(1.0, state.iteration / self._iterations)
        if self._passes and state.epoch is not None:
            return min(1.0, state.epoch / self._passes)
        # None, because the number of samples in the files is unknown
        return 1.0 if self._passes and state.passes >= self._passes else None

    def line(self, state: Any) -> str:
        share, parts = self.share(state), []
        if share is not None:
            full = round(share * _WIDTH)
            parts.append(f"[{'#' * full}{'.' * (_WIDTH - full)}] {share:4.0%}")
        parts.append(f"iteration {state.iteration}")
        if state.mean_loss == state.mean_loss:
            parts.append(f"loss {state.mean_loss:.4f}")
        parts += [f"{name} {value:.4f}" for name, value in state.metrics.items()]
        if state.samples_per_second > 0:
            parts.append(f"{state.samples_per_second:,.0f} samples/s")
            if share:
                parts.append(f"{state.seconds / share * (1 - share):.0f} s left")
        return "  ".join(parts)

    def update(self, state: Any) -> None:
        self.last = self.line(state)
        if self._wanted:
            if self._out.isatty():  # a line longer than the terminal would wrap, and could not be overwritten
                self.last = self.last[: shutil.get_terminal_size().columns - 1]
            self._out.write("\r" + self.last.ljust(self._shown))
            self._out.flush()
            self._shown = len(self.last)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._wanted and self._shown:
            self._out.write("\n")
            self._out.flush()
