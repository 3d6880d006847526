"""Keys of the next batch, given before its turn."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional

from .tables import Tables


class Prefetching:
    """Batches of `loader`. Behind the look-up of each, `module` looks up the rows of the next one.

    `keys`: what of a batch the module's forward() gets, one value or a tuple. `to`: what a batch becomes first, as in
    lambda batch: batch.to("cuda", non_blocking=True). Tables with policies or rows beyond the GPU have one batch
    at a time, and then this changes nothing.
    """

    def __init__(
        self, loader: Iterable, module: Tables, keys: Callable[[Any], Any], to: Optional[Callable[[Any], Any]] = None
    ):
        self._loader, self._module, self._keys, self._to = loader, module, keys, to

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator:
        waiting: list = []
        for batch in self._loader:
            batch = batch if self._to is None else self._to(batch)
            if waiting:
                yield self._with_next(waiting.pop(), batch)
            waiting.append(batch)
        yield from waiting

    def _with_next(self, batch: Any, following: Any) -> Any:
        """The batch, behind whose look-up comes that of the next one."""
        keys = self._keys(following)
        given = keys if isinstance(keys, tuple) else (keys,)
        self._module._engine.following = lambda: self._module.prefetch(*given)
        return batch
