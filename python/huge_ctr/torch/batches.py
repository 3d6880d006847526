"""The batches of an embedding set between forward and backward, in the order that the library requires."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Optional

import numpy as np
import torch

from .._embedding import EmbeddingSet, FeatureOptions, TableOptions
from .given import Given

# the handle of a GPU's current stream, without a Stream object
_stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
    lambda gpu: torch.cuda.current_stream(gpu).cuda_stream
)


class Batches:
    """The embedding set of a module, and its batches between forward and backward. `make`: creates the set when
    needed.
    """

    def __init__(self, tables: list, features: list, make: Callable[[Any], EmbeddingSet]):
        self.tables: list[TableOptions] = tables
        self.features: list[FeatureOptions] = features
        self.dims = np.array([next(t.dim for t in tables if t.name == f.table) for f in features], np.int64)
        self.width = int(self.dims.sum())
        self._column_bytes = (4 * (np.cumsum(self.dims) - self.dims)).astype(np.uint64)
        self.pooled = features[0].pooling != "none"
        self.most_batches = 1
        self._make = make
        self._set: Optional[EmbeddingSet] = None
        self._stream: Optional[int] = None
        # ticket of each pending backward pass: its batch, or None if the batch is released
        self._open: dict[int, Optional[int]] = {}
        self._flight: deque = deque()  # (ticket or None, batch, given), in the library's batch order
        self._early: list = []  # prefetched batches without a forward pass
        self.settled = 0  # number of settle() calls; row numbers from before the last call may be invalid

    # The set.

    def set(self) -> EmbeddingSet:
        if self._set is None:
            self._set = self._make(self)
        if self._set.gpu >= 0:
            stream = _stream_of(self._set.gpu)
            if stream != self._stream:
                self._set.set_stream(stream)
                self._stream = stream
        return self._set

    @property
    def exists(self) -> bool:
        return self._set is not None

    def close(self) -> None:
        """Closes the set; set() will create a new one. Batches in flight lose their rows."""
        self._open.clear()
        if self._set is not None:
            self._release_before(None)
            self._set.close()
        self._set = self._stream = None

    def settle(self) -> EmbeddingSet:
        """Releases all batches in flight, as calls on rows require, and returns the set."""
        if self._set is not None:
            self._release_before(None)
        self.settled += 1
        return self.set()

    # Batches in flight.

    def _release_before(self, batch: Optional[int]) -> None:
        """Releases the batches before this one, or all batches. A released batch is prepared again for its backward
        pass.
        """
        while self._flight and self._flight[0][1] != batch:
            ticket, number, given = self._flight.popleft()
            self._before_release(ticket, number, given)
            self.set().release(number)
            if ticket in self._open:
                self._open[ticket] = None
            self._early = [one for one in self._early if one is not given]

    def _before_release(self, ticket: Optional[int], batch: int, given: Given) -> None:
        """Called before a batch is released, while the row numbers of its keys can still be read."""

    def _begin(self, ticket: Optional[int], given: Given, begin: Callable[[], int]) -> int:
        while len(self._flight) >= self.most_batches:
            self._release_before(self._flight[1][1] if len(self._flight) > 1 else None)
        batch = begin()
        self._flight.append((ticket, batch, given))
        return batch

    def _given_of(self, ticket: int) -> Optional[Given]:
        """The keys of a ticket's batch; None if the batch has been released."""
        for one, _, given in self._flight:
            if one == ticket:
                return given
        return None

    def _end(self) -> None:
        self._flight.popleft()

    def at_front(self, ticket: int, given: Given) -> int:
        """Makes the batch of a ticket the first one in flight, and returns it."""
        batch = self._open[ticket]
        if batch is None:
            return self.begin_again(ticket, given)
        self._release_before(batch)
        return batch

    def begin_again(self, ticket: Optional[int], given: Given) -> int:
        """Prepares a released batch again, as the only batch in flight."""
        self._release_before(None)
        again = self.empty_vectors(given)
        batch = self._begin(ticket, given, lambda: self.set().forward(given.keys, *self.places(given, again)))
        if ticket is not None:
            self._open[ticket] = batch
        return batch

    # Addresses of vectors.

    def empty_vectors(self, given: Given) -> torch.Tensor:
        if self.pooled:
            return torch.empty(given.samples, self.width, device=given.values.device)
        return torch.empty(given.layout.total, int(self.dims[0]), device=given.values.device)

    def places(self, given: Given, vectors: torch.Tensor) -> tuple[np.ndarray, int]:
        """Returns the addresses of each feature's vectors, and the distance in elements between two successive vectors.
        """
        if self.pooled:
            return self._column_bytes + vectors.data_ptr(), self.width
        at = vectors.data_ptr() + given.layout.row_starts * int(self.dims[0]) * 4
        return at.astype(np.uint64), int(self.dims[0])

    def rows_of(self, given: Given) -> Any:
        """The number of vectors of each feature: an array, or a single number if all features have the same number."""
        return given.samples if self.pooled else given.counts
