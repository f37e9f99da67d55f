"""May memd open network sockets under systemd? Only where a workspace asks Ollama.

The unit allows none. A drop-in beside it, which `memctl service install` writes and removes, adds two
families of addresses and leaves every other wall where it is.
"""

import json
import tomllib
from contextlib import suppress
from pathlib import Path

from memctl.units import SERVICE
from memctl.workspaces import CONFIG

NAME = "ollama.conf"

_TEXT = """\
# Written by `memctl service install`, which also removes it when no workspace needs it any more.
# Reason: provider = "ollama" in
{roots}
# and Ollama is asked over TCP, which memd.service does not allow. Nothing else of it is loosened: this adds
# to its RestrictAddressFamilies=AF_UNIX, and memd itself connects only to the addresses that
# ~/.config/memd/config.toml names, which are loopback unless that file says otherwise.
[Service]
RestrictAddressFamilies=AF_INET AF_INET6
"""


def drop_in(unit_dir: Path) -> Path:
    """Return where the drop-in is, if it is there."""
    return unit_dir / f"{SERVICE}.d" / NAME


def text(roots: list[Path]) -> str:
    """Return the drop-in that lets the workspaces at *roots* ask Ollama."""
    # A root with a line feed in its name would end the comment.
    return _TEXT.format(roots="\n".join(f"#   {str(root)!r}" for root in roots))


def asking_ollama(state_dir: Path) -> list[Path]:
    """
    Return the registered workspaces whose configuration names Ollama, without asking the daemon.

    A registry or configuration that can't be read names nothing: memd says so where it is asked.
    """
    return [root for root in _registered(state_dir) if _provider(root) == "ollama"]


def update(unit_dir: Path, state_dir: Path) -> list[Path]:
    """Write the drop-in where a workspace needs it, remove it where none does; return the files written."""
    roots = asking_ollama(state_dir)
    if not roots:
        remove(unit_dir)
        return []
    path = drop_in(unit_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(roots), encoding="utf-8")
    return [path]


def advice(unit_dir: Path, state_dir: Path) -> str | None:
    """Return what to do where the drop-in does not fit the configurations any more; None where it does."""
    wanted = bool(asking_ollama(state_dir))
    if wanted == drop_in(unit_dir).exists():
        return None
    now = (
        "may open no network socket, and Ollama is asked"
        if wanted
        else "may open network sockets for nothing"
    )
    return f"memd under systemd {now}. Mend it: memctl service install"


def remove(unit_dir: Path) -> None:
    """Remove the drop-in, and its folder unless the user keeps drop-ins there."""
    path = drop_in(unit_dir)
    path.unlink(missing_ok=True)
    with suppress(OSError):  # it is not there, or not empty
        path.parent.rmdir()


def _registered(state_dir: Path) -> list[Path]:
    try:
        entries = json.loads((state_dir / "workspaces.json").read_text(encoding="utf-8"))["workspaces"]
        return [Path(entry["root"]) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _provider(root: Path) -> str:
    try:
        return str(tomllib.loads((root / CONFIG).read_text(encoding="utf-8-sig")).get("provider", ""))
    except (OSError, ValueError):
        return ""
