"""A torch.optim.Optimizer for the tables of a model: for schedulers, GradScaler, clipping and state_dict."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Iterable, Optional

import torch

from ..errors import UsageError
from .rules import default_rate
from .tables import Tables, tables_of


class Optimizer(torch.optim.Optimizer):
    """Has one parameter group per module with tables. Modules with update="backward" have updated their rows before
    step().
    """

    _step_supports_amp_scaling = True  # makes GradScaler pass grad_scale and found_inf, as documented in torch.optim

    def __init__(self, modules: Iterable[Tables], kind: Any = None, lr: Any = None, update: Any = None, **words: Any):
        self._modules = list(modules)
        if not self._modules:
            raise UsageError("there are no embedding tables to optimize")
        groups = []
        for module in self._modules:
            if update is not None:
                if update not in ("backward", "step"):
                    raise UsageError(f"update is '{update}', expected 'backward' or 'step'")
                module._set_update(update)
            if kind is not None:
                module.use_optimizer(kind, lr, words)
            elif lr is not None:
                module.lr = lr
            if module._kind is None:
                raise UsageError("tables without an optimizer: name one, as in optimizer(model, 'adam', lr=1e-3)")
            groups.append({"params": [module.anchor], "lr": module._lr, **module._hyper})
        super().__init__(groups, {"lr": default_rate(kind or "adam")})
        for number, module in enumerate(self._modules):
            module._group = (weakref.ref(self), number)

    @torch.no_grad()
    def step(self, closure: Optional[Callable] = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        for module in self._modules:
            if (scale is not None or found is not None) and not module._engine.in_step and module.scaler is None:
                raise UsageError(
                    'a GradScaler multiplies the loss, but tables with update="backward" have already updated rows '
                    "with gradients of the multiplied loss: "
                    'use update="step", or set module.scaler = scaler before the first step'
                )
        in_step = [module for module in self._modules if module._engine.in_step]
        if in_step and found is not None and float(found) != 0:
            return loss
        for module in in_step:
            if scale is not None and module.anchor.grad is not None:
                module.anchor.grad.div_(scale)
            module._engine.pending.apply()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for module in self._modules:
            module._engine.pending.drop()

    def state_dict(self) -> dict:
        """Adds the optimizer states of all rows, by key, as tensors; with several ranks, on rank 0."""
        state = super().state_dict()
        state["tables"] = []
        for module in self._modules:
            tables = {}
            for name in module.table_names():
                keys, _, states = module.export(name, states=True)
                tables[name] = {"keys": keys, "states": states}
            state["tables"].append({"updates": module._engine.set().updates, "tables": tables})
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        """Call this after the model's load_state_dict(), because the states belong to the rows that it loads."""
        state = dict(state_dict)
        saved = state.pop("tables", [])
        if len(saved) != len(self._modules):
            raise ValueError(f"the state has {len(saved)} modules with tables, but the model has {len(self._modules)}")
        super().load_state_dict(state)
        for module, one in zip(self._modules, saved):
            for name, rows in one["tables"].items():
                module._engine.set()
                module.set_rows(name, rows["keys"], None, rows["states"])
            module._engine.settle().updates = int(one["updates"])


def optimizer(model: torch.nn.Module, kind: Any = None, lr: Any = None, update: Any = None, **words: Any) -> Optimizer:
    """Makes the optimizer of all tables in `model`. Without `kind`, each table uses the optimizer that its constructor
    got. `words` are the arguments of the torch.optim class. rows="global" also updates rows without gradients, as
    torch.optim does with dense gradients.
    """
    return Optimizer([one for _, one in tables_of(model)], kind, lr, update, **words)
