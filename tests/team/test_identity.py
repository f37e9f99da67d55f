"""team.json and memory/team-id: what a user publishes where, and as whom."""

import pytest

from memd.errors import ConfigError
from memd.team import identity
from memd.team.identity import Identity

AT, OTHER = "https://milvus:1 memd memd", "https://old:1 memd memd"


def shared(owner, root, *, confirmed=False):
    root.mkdir(exist_ok=True)
    (root / "memory").mkdir(exist_ok=True)
    return owner.publication(root, AT, confirmed=confirmed)


def test_what_is_published_is_known_without_the_state_folder_and_after_a_move(tmp_path):
    """By the file beside config.toml alone, and by the folder's token, not by its path."""
    owner = Identity(tmp_path)
    first = shared(owner, tmp_path / "a")
    assert not (tmp_path / identity.NAME).exists()  # a store that never took anything is not remembered
    owner.remember(first)
    later = Identity(tmp_path)
    assert later.published(AT) == [first]
    assert later.published(OTHER) == []
    (tmp_path / "a").rename(tmp_path / "b")
    moved = shared(later, tmp_path / "b")
    assert (moved.id, moved.root) == (first.id, str(tmp_path / "b"))
    later.follow({first.root: moved.root})  # before the daemon looks what is to be withdrawn
    assert Identity(tmp_path).published(AT) == [moved]
    later.remember(moved)
    assert later.published(AT) == [moved]
    later.forget(moved)
    assert Identity(tmp_path).published(AT) == []


def test_another_folder_at_the_place_is_published_only_when_it_is_asked_for(tmp_path):
    owner = Identity(tmp_path)
    first = shared(owner, tmp_path / "a")
    owner.remember(first)
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(ConfigError, match="another folder than the one that was published"):
        shared(owner, tmp_path / "a")
    second = shared(owner, tmp_path / "a", confirmed=True)
    assert second.id != first.id
    owner.remember(second)
    assert shared(Identity(tmp_path), tmp_path / "a") == second


def test_a_store_that_was_named_before_is_told(tmp_path):
    owner = Identity(tmp_path)
    owner.remember(shared(owner, tmp_path / "a"))
    assert owner.elsewhere(OTHER) == [(str(tmp_path / "a"), AT)]
    assert owner.elsewhere(AT) == []


def test_a_name_tells_machines_of_one_login_apart_and_a_copied_home_is_another(tmp_path, monkeypatch):
    owner = Identity(tmp_path, "laptop")
    assert owner.machine == "laptop"
    assert owner.owner
    first = shared(owner, tmp_path / "a")
    owner.remember(first)
    monkeypatch.setattr(identity, "_machine_key", lambda: "another machine")
    copied = Identity(tmp_path)
    assert copied.published(AT) == []
    assert shared(copied, tmp_path / "a").id != first.id


@pytest.mark.parametrize("content", [b"", b"{", b'{"id": "x", "machine": "m"}', b"\xff", b"[]"])
def test_a_file_that_is_none_of_memds_is_as_none(tmp_path, content):
    (tmp_path / identity.NAME).write_bytes(content)
    assert Identity(tmp_path).published(AT) == []
