"""The ranks of torch.distributed that share tables, joined by this library's communicator."""

from __future__ import annotations

import ctypes as c
import secrets
import socket
from typing import Any, Optional

import torch

from .. import _embedding_structs as e
from .._library import Handle, _handle, call, library


class RankOfGroup:
    """An hctr_rank for one set of tables."""

    def __init__(self, size: int, handle: Handle):
        self.size, self._handle = size, handle

    @property
    def pointer(self) -> Any:
        return self._handle.pointer

    def close(self) -> None:
        self._handle.close()


def rank_of_group(distributed: Optional[bool]) -> Optional[RankOfGroup]:
    """The rank of this process in the default group. Collective. None: a single process, or tables that are not
    shared.
    """
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    if distributed is False or not ready or torch.distributed.get_world_size() == 1:
        return None
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    place: list = [None]
    if rank == 0:
        place = [(_own_address(), _free_port(), secrets.token_hex(16))]
    torch.distributed.broadcast_object_list(place, 0)
    address, port, secret = place[0]
    join = e.Join(address=address.encode(), port=port, process=rank, processes=size, secret=secret.encode())
    handles = (c.c_void_p * 1)()
    library()
    call("hctr_ranks_create", join, c.cast(handles, c.POINTER(_handle)))
    return RankOfGroup(size, Handle(c.c_void_p(handles[0]), "hctr_rank_destroy", "rank"))


def _own_address() -> str:
    """The address of this process for other processes: torchrun's MASTER_ADDR, or the local host."""
    import os

    return os.environ.get("MASTER_ADDR") or "127.0.0.1"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]
