"""The errors that reach a caller, each with its code, text, and whether the caller is at fault.

One class hierarchy. Every error that reaches a caller has a documented code; its text says what failed, with
which value, and what to do.
"""

import errno
from typing import Final


class MemdError(Exception):
    """A bug in memd, whose place is in the log; each subclass is a specific error with its own code."""

    code = "MEMD_INTERNAL"
    callers_fault = False


class InvalidError(MemdError):
    """A parameter is missing, of another type, or out of range."""

    code = "MEMD_INVALID"
    callers_fault = True


class MethodError(MemdError):
    """There is no method of that name."""

    code = "MEMD_METHOD"
    callers_fault = True


class WorkspaceError(MemdError):
    """The request names no workspace, or one that is not registered."""

    code = "MEMD_WORKSPACE"
    callers_fault = True


class NestedError(MemdError):
    """The folder's notes are in another workspace's index, which would lose them: confirmation is needed."""

    code = "MEMD_NESTED"
    callers_fault = True


class ConfigError(MemdError):
    """A configuration file has an unknown key, a wrong type or an impossible value."""

    code = "MEMD_CONFIG"
    callers_fault = True


class NotFoundError(MemdError):
    """A source, chunk or entry in the request does not exist in this workspace."""

    code = "MEMD_NOT_FOUND"
    callers_fault = True


class UnsafeError(MemdError):
    """A path leads out of its folder, or a folder is open to other users."""

    code = "MEMD_UNSAFE"
    callers_fault = True


class ChangedError(MemdError):
    """The entry is not as memd wrote it, or not as the caller saw it; a person may `force` a deletion."""

    code = "MEMD_CHANGED"
    callers_fault = True


class SecretError(MemdError):
    """The text contains a secret of a known shape and was not written."""

    code = "MEMD_SECRET"
    callers_fault = True


class BusyError(MemdError):
    """A limit on requests, connections or queue length is reached: try again."""

    code = "MEMD_BUSY"


class InterruptedParseError(Exception):
    """Parsing a note was interrupted from outside and should be retried. Contains no text of the note."""


class IndexClosedError(BusyError):
    """The workspace is being reopened with another configuration: ask again."""


class DeadlineError(MemdError):
    """The request's deadline passed before its answer was ready."""

    code = "MEMD_TIMEOUT"


class StoppingError(MemdError):
    """The daemon is stopping."""

    code = "MEMD_STOPPING"


class NoSpaceError(MemdError):
    """The disk is full. Searches still work on what was indexed before."""

    code = "MEMD_NOSPACE"


class StorageError(MemdError):
    """The operating system failed to read or write (EIO, permissions)."""

    code = "MEMD_IO"


class DiskError(StorageError):
    """A user's folder does not answer in time: its disk is slow, or hangs."""


class IndexDamagedError(MemdError):
    """The index on disk cannot be read; it is set aside and rebuilt from the Markdown."""

    code = "MEMD_CORRUPT"


class SchemaError(IndexDamagedError):
    """The index on disk was written by another release; it is set aside and rebuilt."""


class EmbedderError(MemdError):
    """The model could not be loaded or did not answer; searches continue by keyword."""

    code = "MEMD_EMBEDDER"


class ModelMismatchError(EmbedderError):
    """Vectors of one model were given to an index of another model."""


class StoreError(MemdError):
    """The team's store did not answer, or refused; local searches are not affected."""

    code = "MEMD_STORE"


class StoreRefusedError(StoreError):
    """The team's store answered, and will never accept this request: trying it again does not help."""


NUMPY_MISSING: Final = "numpy-missing"  # the code of an answer that was made without it


class NumpyMissingError(EmbedderError):
    """The request needs numpy, which is missing; searches continue without it."""


class AlreadyRunningError(MemdError):
    """Another daemon holds the lock of this state directory."""

    code = "MEMD_RUNNING"


def is_full(error: OSError) -> bool:
    """Return whether an error means a lack of space: no blocks, no inodes, or a quota reached."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def storage_error(what: str, error: OSError) -> NoSpaceError | StorageError:
    """Return the MemdError for an OSError; *what* names the failed operation."""
    if is_full(error):
        return NoSpaceError(f"{what}: no space or no inodes left on the device. Free some and try again")
    return StorageError(f"{what}: {error.strerror or error}")
