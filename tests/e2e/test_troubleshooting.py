"""Each symptom on docs/troubleshooting.md is produced, and memctl prints what the page shows."""

import re
import shlex
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until

from memd.registry import workspace_at

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", PAGE))
BY_HAND = "memctl does not start at all"  # nothing of memd runs there


@pytest.fixture
def notes(tmp_path):
    """A folder with a note, and files that are not searched for a reason each."""
    return folder_of(tmp_path / "notes", {
        "heron.md": b"# Heron\n\nA grey bird.\n",
        ".hidden/otter.md": b"otter\n",
        "drafts/beaver.md": b"beaver\n",
        ".gitignore": b"drafts/\n",
        "utf16.md": "café".encode("utf-16"),
        "big.md": b"x " * (3 << 20),
    })  # fmt: skip


def _with_a_wrong_key(daemon: Daemon, notes: Path) -> None:
    (notes / "memory/config.toml").write_text("max_result = 5\n")
    until(lambda: daemon.status()["state"] == "error")


def _without_a_server(daemon: Daemon, notes: Path) -> None:
    (notes / "memory/config.toml").write_text('provider = "ollama"\nmodel = "none"\n')
    until(lambda: "model-failed" in daemon.call("search", query="heron", workspace=str(notes))["degraded"])


def _unregistered(daemon: Daemon, notes: Path) -> None:
    daemon.call("workspace.remove", path=str(notes))


def _without_a_config(daemon: Daemon, notes: Path) -> None:
    _unregistered(daemon, notes)
    (notes / "memory/config.toml").unlink()


def _as_another_folder(daemon: Daemon, notes: Path) -> None:
    """As one that cannot be written, was registered with a sign of its own, and is away."""
    place = workspace_at(notes, daemon.state)
    daemon.stop()
    place.kept_config.parent.mkdir(mode=0o700)
    (notes / "memory/config.toml").rename(place.kept_config)
    place.kept_config.with_suffix(".sign").write_text("0 0")
    daemon.start()
    daemon.call("search", query="heron", workspace=str(notes))


def _open_to_others(daemon: Daemon, _notes: Path) -> None:
    daemon.stop()
    daemon.state.chmod(0o777)


def _beside_another_package(daemon: Daemon, _notes: Path) -> None:
    facts = {"METADATA": "Metadata-Version: 2.1\nName: memd-engine\nVersion: 0.5.2\n"}
    folder_of(daemon.home / "site/memd_engine-0.5.2.dist-info", facts | {"RECORD": "memd/__init__.py,,\n"})
    daemon.environment["PYTHONPATH"] = str(daemon.home / "site")


def _with_another_socket(daemon: Daemon, _notes: Path) -> None:
    daemon.environment["MEMD_SOCKET"] = "/nonexistent/memd.sock"


# What is done before the block's command, beside making a workspace of the notes.
BEFORE = {
    '"no workspace in … or above it"': _without_a_config,
    '"is a workspace that is not registered"': _unregistered,
    '"is away, or another folder than memctl init found"': _as_another_folder,
    '"unknown key" in a configuration': _with_a_wrong_key,
    '"keyword only: model-failed"': _without_a_server,
    '"is open to other users"': _open_to_others,
    '"memd listens at …, and MEMD_SOCKET names …"': _with_another_socket,
    '"also provides the package memd or memctl"': _beside_another_package,
}


def test_each_preparation_belongs_to_a_symptom():
    assert BEFORE.keys() <= SECTIONS.keys()


@pytest.mark.parametrize("symptom", [one for one in SECTIONS if one != BY_HAND])
def test_a_symptom_looks_as_the_page_shows_it(symptom, own_daemon, notes):
    daemon = own_daemon
    daemon.add(notes)
    BEFORE.get(symptom, lambda *_: None)(daemon, notes)
    text = SECTIONS[symptom]
    blocks = re.findall(r"(?ms)^```console\n\$ memctl (.*?)\n(.*?)^```$", text)
    assert blocks
    for number, (command, shown) in enumerate(blocks):
        done = daemon.memctl(*shlex.split(command), cwd=notes)
        printed = done.stdout + done.stderr
        for line in shown.splitlines():
            pattern = re.escape(line).replace("…", ".*")
            assert re.search(f"(?m)^ *{pattern}", printed), f"{line!r} is not in\n{printed}"
        code = re.search(r"Exit code (\d+)", text)
        assert number > 0 or (code and done.returncode == int(code[1])), printed
    if daemon.state.exists():
        daemon.state.chmod(0o700)


def test_the_command_that_finds_another_memctl_is_one_of_the_shell():
    """The only symptom that memctl cannot show itself."""
    assert "type -a memctl" in SECTIONS[BY_HAND]
