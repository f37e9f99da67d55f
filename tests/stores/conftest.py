"""Fixtures of the tests of stores."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon

from stores.team_support import Member, Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A reference server that runs."""
    made = Server(tmp_path / "server").start()
    yield made
    made.close()


@contextmanager
def members(folder: Path, server: Server) -> Iterator[Callable[..., Member]]:
    """Give what makes daemons of the team, each in a home of its own."""
    made: list[Member] = []

    def make(name: str = "ada", **settings: Any) -> Member:
        made.append(Member(folder / name, server, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def member(tmp_path: Path, server: Server) -> Iterator[Callable[..., Member]]:
    """Make daemons of the team, each in a home of its own."""
    with members(tmp_path, server) as make:
        yield make


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon whose user has no team."""
    (tmp_path / "home").mkdir()
    made = Daemon(tmp_path / "home").start()
    yield made
    made.close()
