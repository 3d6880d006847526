"""GPU memory of tables from PyTorch's caching allocator."""

from __future__ import annotations

import sys
from typing import Any, Optional

import torch


class CachingAllocator:
    """Allocates a set's memory from PyTorch's caching allocator, so that neither the set nor PyTorch keeps free memory
    that the other needs.
    """

    def __init__(self, gpu: int):
        self._gpu = gpu
        self._streams: dict[int, int] = {}  # stream of each allocation, by address

    def allocate(self, size: int, stream: int) -> Optional[int]:
        try:
            memory = torch.cuda.caching_allocator_alloc(size, self._gpu, stream)
        except torch.cuda.OutOfMemoryError:
            return None  # the library raises an error that says how much memory was needed, and for what
        self._streams[memory] = stream
        return memory

    def free(self, memory: int, stream: int) -> None:
        if sys.is_finalizing():  # PyTorch's allocator no longer exists
            return
        # waits, because PyTorch may reuse freed memory before the work of `stream` has run
        if self._streams.pop(memory) != stream:
            used = torch.cuda.ExternalStream(stream, self._gpu) if stream else torch.cuda.default_stream(self._gpu)
            used.synchronize()
        torch.cuda.caching_allocator_delete(memory)


def allocator_of(gpu: int) -> Any:
    return CachingAllocator(gpu) if gpu >= 0 else None
