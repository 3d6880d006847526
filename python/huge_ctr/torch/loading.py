"""Prefetches the rows of the next batch."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional

from .tables import Tables


class Prefetching:
    """Iterates over the batches of `loader`. As soon as `module` has looked up the rows of a batch, it looks up the
    rows of the next batch.

    `keys`: returns the arguments of the module's forward() for a batch, one value or a tuple. `to`: converts each batch
    first, for example lambda batch: batch.to("cuda", non_blocking=True). Tables with policies, or with rows outside GPU
    memory, allow only one batch in flight, so prefetching has no effect.
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
        """Returns `batch`. After `module` has looked up `batch`, it will look up `following`."""
        keys = self._keys(following)
        given = keys if isinstance(keys, tuple) else (keys,)
        self._module._engine.following = lambda: self._module.prefetch(*given)
        return batch
