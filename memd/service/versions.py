"""Which versions run here? For `debug`, for `status`, and for the first line of the log."""

import os
import platform
import sys
from pathlib import Path

from memd import __version__
from memd.index.database import sqlite_version

PACKAGES = ("apsw", "msgpack", "msgspec", "numpy", "onnxruntime", "tokenizers", "watchfiles")
UNKNOWN = "unknown"


def all_of_them() -> dict[str, str]:
    """Return name → version of all that a bug may be in."""
    packages = {name: installed(name) for name in PACKAGES}
    own = {"memd": __version__, "python": platform.python_version(), "sqlite": sqlite_version()}
    return own | packages


def telemetry_disabled() -> bool:
    """Tell whether onnxruntime was told to report nothing home."""
    return os.environ.get("ORT_DISABLE_TELEMETRY") == "1"


def installed(package: str) -> str:
    """Return the version of an installed package, without loading it.

    The name of its folder of metadata has it. importlib.metadata says the same and loads a mail parser, which
    each start would pay for.
    """
    for folder in sys.path:
        for metadata in Path(folder).glob(f"{package}-*.dist-info"):
            return metadata.name.removesuffix(".dist-info").partition("-")[2]
    return UNKNOWN
