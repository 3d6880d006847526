"""Exceptions by kind. A message names the place and the value, and says what would have worked."""

from __future__ import annotations


class HugeCtrError(Exception):
    """The base of the engine's errors. Its subclasses are the kinds; `kind` is the exit code of the programs."""

    kind = 1


class UsageError(HugeCtrError, ValueError):
    """Wrong arguments: an unknown name, a wrong shape or type. Nothing has changed."""

    kind = 2


class ConfigError(HugeCtrError, ValueError):
    """A wrong config, with every problem found and the place of each."""

    kind = 3


class DataError(HugeCtrError, ValueError):
    """Wrong data or model files: file, row, column and value."""

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
    """A model, trainer or table was made before os.fork(); the child does not have its threads."""


class LibraryMissing(HugeCtrError, ImportError):
    """libhuge_ctr.so is missing, or has another version."""


KINDS = {
    error.kind: error
    for error in (UsageError, ConfigError, DataError, FileError, DeviceError, CommunicationError, InterruptedWork)
}
