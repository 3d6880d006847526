"""Exceptions by kind. A message names the location and the value, and what would be valid."""

from __future__ import annotations


class HugeCtrError(Exception):
    """The base class of the engine's errors. Each subclass is a kind; `kind` is the exit code of the programs."""

    kind = 1


class UsageError(HugeCtrError, ValueError):
    """Wrong arguments: an unknown name, a wrong shape or type. The call has changed nothing."""

    kind = 2


class ConfigError(HugeCtrError, ValueError):
    """A wrong config. The message has every problem with its location."""

    kind = 3


class DataError(HugeCtrError, ValueError):
    """Wrong data or model files. The message has file, row, column and value."""

    kind = 4


class FileError(HugeCtrError, OSError):
    """A file that cannot be opened, read or written."""

    kind = 5


class DeviceError(HugeCtrError, RuntimeError):
    """A GPU failed, or the system refused memory or threads."""

    kind = 6


class CommunicationError(HugeCtrError, RuntimeError):
    """Another process or rank of a job failed."""

    kind = 7


class InterruptedWork(HugeCtrError, RuntimeError):
    """A callback or a signal ended the call."""

    kind = 130


class ForkError(UsageError):
    """A child of os.fork() has used a model, trainer or table of its parent, whose threads the child lacks."""


class LibraryMissing(HugeCtrError, ImportError):
    """libhuge_ctr.so is missing, or has another version."""


KINDS = {
    error.kind: error
    for error in (UsageError, ConfigError, DataError, FileError, DeviceError, CommunicationError, InterruptedWork)
}
