"""The errors that reach a caller: each with its code, its text and whether the caller is at fault.

One tree. Every error that reaches a caller has a code out of a documented list; the text says what
failed, with which value, and what to do.
"""

import errno


class MemdError(Exception):
    """A mistake of memd's own, which its log names; each subclass is another case with a code of its own."""

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
    """The folder's notes are in another workspace's index, and would leave it: say that this is meant."""

    code = "MEMD_NESTED"
    callers_fault = True


class ConfigError(MemdError):
    """A configuration file has an unknown key, a wrong type or an impossible value."""

    code = "MEMD_CONFIG"
    callers_fault = True


class NotFoundError(MemdError):
    """What the request names (a source, a chunk, an entry) is not in this workspace."""

    code = "MEMD_NOT_FOUND"
    callers_fault = True


class UnsafeError(MemdError):
    """A path leaves its folder, or a folder is open to other users: refused."""

    code = "MEMD_UNSAFE"
    callers_fault = True


class ChangedError(MemdError):
    """The entry is not what memd wrote, or not what the caller has seen; a person may `force` a deletion."""

    code = "MEMD_CHANGED"
    callers_fault = True


class SecretError(MemdError):
    """The text holds a secret of a known shape and was not written."""

    code = "MEMD_SECRET"
    callers_fault = True


class BusyError(MemdError):
    """A limit on requests, connections or queue length is reached: try again."""

    code = "MEMD_BUSY"


class InterruptedParseError(Exception):
    """Something from outside ended the parsing of a note: it is worth another try. Names no word of it."""


class IndexClosedError(BusyError):
    """The workspace is being reopened with another configuration: ask again."""


class DeadlineError(MemdError):
    """The request's deadline passed before its answer was ready."""

    code = "MEMD_TIMEOUT"


class StoppingError(MemdError):
    """The daemon is on its way down."""

    code = "MEMD_STOPPING"


class NoSpaceError(MemdError):
    """The disk is full. What was indexed before still answers."""

    code = "MEMD_NOSPACE"


class StorageError(MemdError):
    """Reading or writing failed below us (EIO, permissions)."""

    code = "MEMD_IO"


class IndexDamagedError(MemdError):
    """The index on disk cannot be read; it is set aside and rebuilt from the Markdown."""

    code = "MEMD_CORRUPT"


class SchemaError(IndexDamagedError):
    """The index on disk has the tables of another release; it is set aside and rebuilt."""


class EmbedderError(MemdError):
    """The model could not be loaded or did not answer; searches go on by keyword."""

    code = "MEMD_EMBEDDER"


class ModelMismatchError(EmbedderError):
    """Vectors of one model were offered to an index of another."""


class NumpyMissingError(EmbedderError):
    """What was asked for needs numpy; searches go on without it."""


class AlreadyRunningError(MemdError):
    """Another daemon holds the lock of this state directory."""

    code = "MEMD_RUNNING"


def is_full(error: OSError) -> bool:
    """Tell whether an error only means that there is no space: no blocks, no inodes, or a quota reached."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def storage_error(what: str, error: OSError) -> NoSpaceError | StorageError:
    """Return the error of ours that says that *what* failed, and why."""
    if is_full(error):
        return NoSpaceError(f"{what}: no space or no inodes left on the device. Free some and try again")
    return StorageError(f"{what}: {error.strerror or error}")
