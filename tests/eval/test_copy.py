"""Which files are looked at, and is a workspace's configuration copied as it is?"""

import tomllib

import pytest

from memd.eval.private_copy import toml_of
from memd.eval.sources import candidates

FILES = (
    "a.md", "b.markdown", "c.txt", ".hidden.md", "x/y/d.md", ".obsidian/e.md", "node_modules/p/README.md",
    "nested/memory/config.toml", "nested/f.md", "memory/topic/g.md", "memory/config.toml",
)  # fmt: skip


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["**/*.md", "**/*.markdown"], ["a.md", "b.markdown", "memory/topic/g.md", "x/y/d.md"]),
        (["**/*.txt"], ["c.txt", "memory/topic/g.md"]),
        (
            ["x/*", "!x/y"],
            ["a.md", "b.markdown", "c.txt", "memory/config.toml", "memory/topic/g.md", "x/y/d.md"],
        ),
    ],
)
def test_what_could_be_a_source_is_asked_for(tmp_path, patterns, found):
    """By the name's end where the patterns say no more, else all; never what memd never enters."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert sorted(candidates(str(tmp_path), patterns)) == found


def test_a_configuration_comes_back_as_it_was():
    """Every kind of value that config.toml has, and texts that need an escape."""
    config = {
        "sources": ["**/*.md", 'odd "name"/\x7f\u200e/*.md'],
        "ignore": [],
        "chunk_words": 200,
        "half_life_days": 30.5,
        "sidecars": False,
        "model": "/home/ada/b\\c",
        "weights": {"vector": 0.7, "keyword": 0.3},
    }
    assert tomllib.loads(toml_of(config)) == config
