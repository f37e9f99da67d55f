"""What a process of memd takes from the shell that starts it: variables, the encoding of names, limits.

Everything is an allow list: one daemon serves every shell, so the shell that happened to start it must not
matter. memctl and memd use this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

# SSL_*: where some systems (NixOS) name the certificates that the others have in one place.
_NAMES = frozenset({
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "TZDIR",
    "USER", "ORT_DISABLE_TELEMETRY",
})  # fmt: skip
_PREFIXES = ("LC_", "MEMD_", "OPENBLAS_", "XDG_")
# Set by a service manager, for the process that it starts and for no child of it.
_OF_MANAGER = frozenset({
    "LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC",
})  # fmt: skip
_DESCRIPTORS = 1024  # what Linux gives by default: 256 connections, and the files of some workspaces


def kept(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a daemon takes over; those of a service manager are not among them."""
    named = _keys_of_servers()
    return {
        name: value
        for name, value in environment.items()
        if name in _NAMES or name in named or name.startswith(_PREFIXES)
    }


def for_program(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for an import, an evaluation or memctl itself: all but those of another Python."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_MANAGER and not name.startswith("PYTHON")
    }


def clean() -> list[str]:
    """Drop all other variables of this process, which a service manager may have started; return their names.

    PYTHON* stay: they have taken effect, and the programs of memd need the same PYTHONPATH.
    """
    allowed = kept(os.environ)
    dropped = [
        name for name in os.environ
        if name not in allowed and name not in _OF_MANAGER and not name.startswith("PYTHON")
    ]  # fmt: skip
    for name in dropped:
        del os.environ[name]
    os.environ["PYTHONUTF8"] = "1"
    return sorted(dropped)


def use_utf8() -> None:
    """Start this program again with UTF-8 names if the locale has another encoding (ISO-8859-1).

    Names of files are bytes, and the protocol is UTF-8: with another encoding each name that is not ASCII
    would be another one for memctl, for memd and for the disk.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - no shell


def raise_limits() -> int:
    """Raise this process's soft limits, as `ulimit` in a shell sets them; return that of the address space.

    In bytes; -1: there is none.
    """
    import resource  # not for memctl, which only imports this module

    for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE"):
        limit = getattr(resource, name)
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(limit)[1]
            resource.setrlimit(limit, (hard, hard))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _DESCRIPTORS:
        wanted = _DESCRIPTORS if hard < 0 else min(hard, _DESCRIPTORS)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_AS)[0]


def _keys_of_servers() -> set[str]:
    """Return the variables that the user's configuration names as `api_key_env`."""
    from memctl.paths import PathError, config_dir

    try:
        raw = (config_dir() / "config.toml").read_bytes()
        if b"api_key_env" not in raw:
            return set()
        import tomllib

        servers = tomllib.loads(raw.decode("utf-8-sig")).get("openai", {})
        return {str(server["api_key_env"]) for server in servers.values() if "api_key_env" in server}
    except (OSError, ValueError, TypeError, AttributeError, PathError):
        return set()
