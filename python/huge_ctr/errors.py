"""What goes wrong, by kind: each error says place and value, and what would have worked."""

from __future__ import annotations


class HugeCtrError(Exception):
    """Of the engine. Its subclasses are the kinds of errors; `kind` is the exit code of the programs."""

    kind = 1


class UsageError(HugeCtrError, ValueError):
    """A call that does not fit: an unknown name, a wrong shape or type. Nothing has changed."""

    kind = 2


class ConfigError(HugeCtrError, ValueError):
    """The config, with every problem found and the place of each."""

    kind = 3


class DataError(HugeCtrError, ValueError):
    """Data or model files: file, row, column and value."""

    kind = 4


class FileError(HugeCtrError, OSError):
    """A file that cannot be opened, read or written."""

    kind = 5


class DeviceError(HugeCtrError, RuntimeError):
    """A GPU, or memory and threads that the system refuses."""

    kind = 6


class CommunicationError(HugeCtrError, RuntimeError):
    """Another process or rank of a job."""

    kind = 7


class InterruptedWork(HugeCtrError, RuntimeError):
    """Ended by a callback or a signal."""

    kind = 130


class ForkError(UsageError):
    """A model, trainer or table of a process before os.fork(), whose threads the child does not have."""


class LibraryMissing(HugeCtrError, ImportError):
    """There is no libhuge_ctr.so, or it is of another version."""


KINDS = {
    error.kind: error
    for error in (UsageError, ConfigError, DataError, FileError, DeviceError, CommunicationError, InterruptedWork)
}
