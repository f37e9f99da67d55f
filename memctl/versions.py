"""The version of memctl, compared with that of the running daemon, and what else provides the same packages.

Only done when the cost does not matter: by `status`, `start` and `version`, and after an error that a
difference would explain. This module never stops or restarts a daemon: memctl.launch does.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memctl import __version__

if TYPE_CHECKING:
    from memctl.lock import Holder

DISTRIBUTION = "memd-search"
# Whether the names of memd's distributions are registered on the public index. Until they are, they may be
# anybody's there: messages and pages tell to install what lies in a clone.
PUBLISHED = False


def installer() -> str:
    """Return what has made this environment: pipx, uv, or else pip; the first two may put no pip into it."""
    parts = Path(sys.prefix).parts
    if "pipx" in parts:
        return "pipx"
    return "uv" if "uv" in parts and "tools" in parts else "pip"


def install_line(requirement: str) -> str:
    """Return the command that adds a library to this environment."""
    from shlex import quote

    commands = {
        "pipx": f"pipx inject {DISTRIBUTION}",
        "uv": f"uv pip install --python {sys.executable}",
        "pip": f"{sys.executable} -m pip install",
    }
    return f"{commands[installer()]} {quote(requirement)}"


def with_install_line(text: str) -> str:
    """Return a text of memd with `install_line` in place of a line for pip."""
    return re.sub("pip install '([^']+)'", lambda line: install_line(line[1]), text)


def older_line(holder: "Holder") -> str:
    """Return one line for stderr about a daemon older than this memctl, with the command that replaces it."""
    from memctl import lock, systemd  # rarely needed

    if systemd.managed():
        cure = f"restart it: systemctl --user restart {systemd.SERVICE}"
    elif holder.installation != lock.installation():
        cure = "it belongs to another installation; memctl restart replaces it by this one"
    else:
        cure = "restart it: memctl restart"
    return f"the running memd (process {holder.pid}) is older than this memctl; {cure}"


def other_distributions() -> list[str]:
    """Return name and version of each other installed distribution with a package memd or memctl.

    On the public index both names belong to other people. Whichever was installed last has overwritten files
    of the other, so that either may fail in any way.
    """
    from importlib.metadata import packages_distributions, version  # reads the files of every distribution

    provided = packages_distributions()
    names = {name for package in ("memd", "memctl") for name in provided.get(package, ())}
    return sorted(f"{name} {version(name)}" for name in names if name.replace("_", "-") != DISTRIBUTION)


def others_line() -> str | None:
    """Return one line for stderr about `other_distributions`; None if there is none."""
    if not (others := other_distributions()):
        return None
    in_clone = "in a clone of it: uv tool install ., or pipx install ."
    how = f"with uv tool install {DISTRIBUTION}" if PUBLISHED else in_clone
    return (
        f"{', '.join(others)} in the same environment also provides the package memd or memctl, and may have "
        f"overwritten files of {DISTRIBUTION}. Install it alone, {how}"
    )


def warning(daemon_version: str) -> str | None:
    """Return one line for stderr if the daemon has another version, otherwise None."""
    if daemon_version == __version__:
        return None
    both = (daemon_version, __version__)
    theirs, ours = ([int(part) for part in re.findall("[0-9]+", version)] for version in both)
    cure = "Update this memctl" if theirs > ours else "Start this version: memctl restart"
    return f"this memctl is {__version__}, the running memd is {daemon_version}. {cure}"
