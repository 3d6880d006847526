"""The state and history of training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from . import _structs as s

ENDS = ("reached", "pass_ended", "metric", "stopped")


@dataclass
class State:
    """The progress of training. `metrics` are the results of the last evaluation, at iteration `evaluated_at` (-1:
    none).
    """

    iteration: int
    samples: int
    loss: float
    mean_loss: float
    learning_rate: float
    samples_per_second: float
    seconds: float
    evaluated_at: int
    passes: int
    epoch: Optional[float]
    metrics: dict[str, float]

    @staticmethod
    def _of(at: s.TrainerState) -> "State":
        plain = [
            getattr(at, name)
            for name in (
                "iteration",
                "samples",
                "loss",
                "mean_loss",
                "learning_rate",
                "samples_per_second",
                "seconds",
                "evaluated_at",
                "passes",
            )
        ]
        metrics = {at.metrics[i].name.decode(): at.metrics[i].value for i in range(at.metric_count)}
        return State(*plain, None if math.isnan(at.epoch) else at.epoch, metrics)


@dataclass
class History:
    """The displays and evaluations of a trainer, in order."""

    displays: list[State] = field(default_factory=list)
    evaluations: list[State] = field(default_factory=list)
    ended: str = ""


class Callback:
    """The base class of callbacks for fit(). Callbacks run in the thread that calls fit(). Training ends if one returns
    False.
    """

    def on_display(self, state: State) -> Optional[bool]:
        """Called at each display."""

    def on_evaluation(self, state: State) -> Optional[bool]:
        """Called after each evaluation."""


def call_each(callbacks: Sequence[Any], method: str, state: State) -> bool:
    """Calls all callbacks. Returns False if one of them returns False."""
    goes_on = True
    for callback in callbacks:
        called = getattr(callback, method, None) or (callback if callable(callback) else None)
        if called is not None and called(state) is False:
            goes_on = False
    return goes_on
