"""Fixtures of the live kits: a game."""

from collections.abc import Iterator

import pytest

from live.game import Game, game


@pytest.fixture
def played() -> Iterator[Game]:
    """A game that begins with an empty workspace and no vectors."""
    with game() as begun:
        yield begun
