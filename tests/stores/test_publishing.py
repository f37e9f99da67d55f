"""What daemons publish to a store: all that their owners share and nothing else, whatever happens."""

import random
import signal
import time

import pytest
from daemon_process import until
from tests_support import LONG

from memctl.client import RpcError
from stores.team_support import TOKEN

SECRET = "ghp_" + "x7Kq9LmN2pR4sT6vW8yZ1aB3cD5eF7gH9jK0"


def disk(root):
    """Return path → text of the notes of a workspace."""
    return {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("*.md") if path.stat().st_size
    }


def equals(member, root):
    """Wait until the store has exactly what the disk has, and the daemon says so."""
    until(lambda: member.texts(root.name) == disk(root), 60)
    until(lambda: [one["stage"] for one in member.status()["workspaces"]] == ["published"])
    assert member.daemon.call("team.check")["differences"] == []


def test_daemons_of_a_team_have_each_others_notes(member):
    """What one saves, every other finds in the store, with where it is from."""
    ada, bob = member("ada"), member("bob")
    for one, text in ((ada, "The heron nests."), (bob, "The weir was mended.")):
        root = one.folder(f"of-{one.daemon.home.name}", {"note.md": text})
        assert one.publish(root)["done"]
    assert ada.texts("of-bob") == {"note.md": "The weir was mended."}
    assert bob.texts("of-ada") == {"note.md": "The heron nests."}
    machines = {(one.name, one.machine != "") for one in ada.client.workspaces(10)}
    assert machines == {("of-ada", True), ("of-bob", True)}


def test_a_save_is_in_the_store_and_a_deletion_too(member):
    ada = member()
    root = ada.folder("notes", {"a.md": "one", "b.md": "two"})
    ada.publish(root)
    ada.save(root, "c.md", "three")
    ada.save(root, "a.md", "one, again")
    (root / "b.md").unlink()
    equals(ada, root)
    assert ada.texts() == {"a.md": "one, again", "c.md": "three"}


def test_a_forgotten_entry_is_gone_for_all(member, server):
    """Within ten seconds, and from the store's file, too."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    ada.publish(root)
    entry = ada.daemon.call("extract_memory", topic="birds", title="Zugvogel", content="Xylograph quokka.")
    until(lambda: entry["path"] in ada.texts())
    ada.daemon.call("forget", path=entry["path"], source={"origin": "human"})
    until(lambda: entry["path"] not in ada.texts(), 10)
    for word in (b"quokka", b"Zugvogel", entry["path"].encode()):
        assert word not in server.raw()


def test_nothing_is_in_the_store_that_is_not_shared(member, server):
    """Private and ignored notes, secrets and other workspaces: no word, no path, no count of them."""
    ada = member()
    private = "---\nprivate: true\n---\nThe privateword."
    shared = {
        "a.md": "The heron.",
        "p.md": private,
        "drafts/d.md": "The draftword.",
        "k.md": f"The {SECRET} key.",
    }
    root = ada.folder("notes", shared, agents_ignore=["drafts/"])
    ada.folder("other", {"o.md": "The otherword."})
    ada.publish(root)
    ada.save(root, "p.md", f"{private} Again.")
    ada.save(root, "drafts/d.md", "The draftword, again.")
    ada.save(root, "last.md", "The last.")
    until(lambda: "last.md" in ada.texts())
    assert sorted(ada.texts()) == ["a.md", "k.md", "last.md"]
    for word in (b"privateword", b"draftword", b"otherword", SECRET.encode(), SECRET.lower().encode()):
        assert word not in server.raw()
    for name in (b"p.md", b"drafts", b"o.md"):
        assert name not in server.raw()
    assert ada.client.vocabulary("draftword", 10).spellings == {}


def test_a_workspace_cannot_publish_itself(member, server):
    """Its own configuration, which may come with a git clone, has no such key."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    config = root / "memory" / "config.toml"
    config.write_text(f'[team]\nuri = "{server.uri}"\nshare = ["{root}"]\n')
    with pytest.raises(RpcError, match="team: unknown key"):
        until(lambda: ada.daemon.call("get", path="a.md") is None)
    config.write_text('provider = "none"\n')
    until(lambda: ada.daemon.found("one") == ["a.md"])
    assert ada.texts() == {}


def test_an_agent_cannot_publish(member):
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    for name in ("publish", "unpublish"):
        with pytest.raises(RpcError, match="is for people"):
            ada.daemon.call(f"team.{name}", path=str(root), agent=True)
    for name in ("status", "rebuild", "check"):
        with pytest.raises(RpcError, match="is for people"):
            ada.daemon.call(f"team.{name}", agent=True)
    assert "team" not in ada.daemon.call("status", agent=True)["server"]


def test_a_note_that_is_hidden_later_leaves_the_store(member, server):
    """By its front matter, or by the configuration of its workspace."""
    ada = member()
    notes = {"a.md": "The heron.", "b.md": "The bittern.", "drafts/c.md": "The coot."}
    root = ada.folder("notes", notes)
    ada.publish(root)
    ada.save(root, "b.md", "---\nprivate: true\n---\nThe bittern.")
    until(lambda: sorted(ada.texts()) == ["a.md", "drafts/c.md"])
    (root / "memory" / "config.toml").write_text('provider = "none"\nagents_ignore = ["drafts/"]\n')
    until(lambda: sorted(ada.texts()) == ["a.md"])
    for word in (b"bittern", b"coot", b"drafts"):
        assert word not in server.raw()


def test_what_is_unpublished_or_removed_leaves_the_store(member, server):
    """At once, by its owner's word; also when the store was away then."""
    ada = member()
    roots = [ada.folder(name, {"a.md": f"The {name}."}) for name in ("heron", "bittern", "coot")]
    for root in roots:
        ada.publish(root)
    assert ada.daemon.call("team.unpublish", path=str(roots[0]))["done"]
    assert ada.texts("heron") == {}
    ada.daemon.call("workspace.remove", path=str(roots[1]))
    until(lambda: ada.texts("bittern") == {})
    server.kill()
    answer = ada.daemon.call("team.unpublish", path=str(roots[2]), wait=False)
    assert not answer["done"]
    assert [one["stage"] for one in answer["status"]["workspaces"] if one["root"] == str(roots[2])] == [
        "withdrawing"
    ]
    ada.daemon.stop()
    server.start()
    ada.daemon.start()
    until(lambda: ada.client.workspaces(10) == ())
    assert b"coot" not in server.raw()


def test_what_an_earlier_address_has_is_told_until_it_is_removed_there(member, server):
    """The status names it; under the old address again, `unpublish` removes it there and only there."""
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron."})
    assert ada.publish(root)["done"]
    old = ada.config.read_text()
    assert ada.status()["elsewhere"] == []
    ada.config.write_text(old.replace("[team]\n", '[team]\ncollection = "second"\n'))
    ada.daemon.stop()
    ada.daemon.start()
    until(lambda: ada.status()["workspaces"][0]["stage"] == "published")
    [told] = ada.status()["elsewhere"]
    assert told == {"root": str(root), "address": f"{server.uri} memd"}
    assert "may still be in" in ada.daemon.memctl("team").stdout
    ada.config.write_text(old)
    ada.daemon.stop()
    ada.daemon.start()
    until(lambda: [one["address"] for one in ada.status()["elsewhere"]] == [f"{server.uri} second"])
    ada.daemon.call("team.unpublish", path=str(root))
    assert ada.texts() == {}
    assert len(ada.status()["elsewhere"]) == 1


def test_a_rebuilt_index_goes_on_publishing(member):
    """Its own counts begin anew, and yet the store takes what it sends."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one", "b.md": "two"})
    ada.publish(root)
    for _ in range(20):
        ada.daemon.call("team.rebuild")
    ada.daemon.call("index", rebuild=True)
    ada.save(root, "a.md", "one, again")
    (root / "b.md").unlink()
    equals(ada, root)


def test_what_a_store_has_lost_or_altered_is_found_and_sent_again(member, server):
    """By `team.check`: a source that is missing, one that differs, and one that nobody has."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one", "b.md": "two", "c.md": "three"})
    ada.publish(root)
    stored = ada.stored()
    key = stored["a.md"].key
    ada.client.remove(((key, 2**60),), 10)
    changed = [stored["b.md"].__class__(**{
        **{name: getattr(stored["b.md"], name) for name in stored["b.md"].__struct_fields__},
        "hash": b"other" * 3, "revision": stored["b.md"].revision + 1,
    })]  # fmt: skip
    stray = changed[0].__class__(**{
        **{name: getattr(changed[0], name) for name in changed[0].__struct_fields__},
        "key": key.__class__(key.workspace, "stray.md"),
    })  # fmt: skip
    ada.client.replace((*changed, stray), 10)
    answer = ada.daemon.call("team.check")
    kinds = {one["path"]: one["kind"] for one in answer["differences"]}
    assert (answer["ok"], kinds) == (False, {"a.md": "missing", "b.md": "other", "stray.md": "unknown"})
    assert ada.daemon.call("team.check", repair=True)["ok"]
    until(lambda: sorted(ada.texts()) == ["b.md", "c.md"])  # "a.md" was removed up to 2**60
    ada.daemon.call("team.check", repair=True)


@pytest.mark.parametrize("fault", ["refuse", "hang", "cut", "slow"])
def test_no_save_is_lost_while_the_store_fails(member, server, fault):
    """Saves and searches go on, and the store has all of them after its return."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    ada.publish(root)
    server.tell(fault=fault)
    for number in range(30):
        ada.save(root, f"{number}.md", f"word{number}")
    ada.save(root, "a.md", "one, again")
    until(lambda: ada.daemon.found("word29") == ["29.md"])
    if fault != "slow":
        until(lambda: ada.status()["error"], 30)
        until(lambda: ada.status()["waiting"] == 31)
    server.tell(fault="")
    equals(ada, root)


def test_a_full_store_takes_all_when_it_has_space(member, server):
    """Nothing is set aside meanwhile, and the reason is shown."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    ada.publish(root)
    server.tell(full=True)
    ada.save(root, "b.md", "two")
    until(lambda: "disk of the store is full" in ada.status()["error"])
    server.tell(full=False)
    equals(ada, root)


def test_a_workspace_that_the_store_refuses_is_named(member, server):
    """With the reason and what to do; as one that was published with the token of somebody else."""
    server.settings["tokens"] = {TOKEN: ["team"], "another-token": ["team"]}
    server.kill()
    server.start()
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    ada.publish(root)
    (server.folder / f"token-{TOKEN}").write_text("another-token")
    told = f"{root} is not published: the store at {server.uri}: this workspace belongs to somebody else. "
    until(lambda: told in ada.status()["error"])
    assert f"memctl team unpublish {root}" in ada.status()["error"]


def test_a_store_that_refuses_every_workspace_was_asked(member):
    """Nobody has searched it, and its refusal is known."""
    ada = member(token="unknown-token")
    root = ada.folder("notes", {"a.md": "one"})
    ada.config.write_text(ada.config.read_text() + f'share = ["{root}"]\n')
    ada.daemon.stop()
    ada.daemon.start()

    def known():
        return ada.daemon.call("status")["server"]["team"]

    until(lambda: "is not known" in known()["error"])
    assert known()["reachable"] is True


def test_a_store_that_forgot_its_last_writes_gets_them_again(tmp_path, member, server):
    server.settings["keeps_undo"] = True
    server.kill()
    server.start()
    ada = member()
    root = ada.folder("notes", {f"{number}.md": f"word{number}" for number in range(10)})
    ada.publish(root)
    ada.save(root, "1.md", "changed")
    (root / "2.md").unlink()
    equals(ada, root)
    server.tell(lose=5)
    assert ada.texts() != disk(root)
    server.kill()
    server.start()
    equals(ada, root)


def test_a_store_that_shows_writes_later_has_them_in_the_end(member, server):
    """A check does not take the delay for a loss."""
    server.tell(lag_s=0.3)
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    ada.publish(root)
    for number in range(5):
        ada.save(root, "a.md", f"version {number}")
        until(lambda: ada.status()["waiting"] == 0)
    assert ada.daemon.call("team.check")["differences"] == []
    equals(ada, root)


def test_a_source_that_the_store_never_takes_holds_nothing_back(member):
    """It is named in the status, and sent again when it has changed."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one", "bad.md": "unacceptable to this store", "c.md": "three"})
    ada.publish(root, wait=False)
    until(lambda: sorted(ada.texts()) == ["a.md", "c.md"])
    why = f"the store at {ada.server.uri}: a text that this store never takes"
    until(lambda: [one["refused"] for one in ada.status()["workspaces"]] == [[why]])
    ada.save(root, "bad.md", "acceptable")
    equals(ada, root)


def test_a_killed_daemon_has_published_what_the_disk_has(member):
    """Killed at random moments while notes are saved, changed and deleted: nothing is lost or left."""
    ada = member()
    root = ada.folder("notes", {f"{number}.md": f"word{number}" for number in range(20)})
    ada.publish(root, wait=False)
    chance = random.Random(1)
    for turn in range(50 if LONG else 5):
        for _ in range(chance.randrange(1, 12)):
            path = root / f"{chance.randrange(30)}.md"
            if path.exists() and chance.random() < 0.3:
                path.unlink()
            else:
                path.write_text(f"turn {turn} {chance.random()}")
        time.sleep(chance.random() * 0.3)
        ada.daemon.process.send_signal(signal.SIGKILL)
        ada.daemon.process.wait()
        ada.daemon.start()
        if turn % 5 == 4:
            equals(ada, root)
    equals(ada, root)
    stored = ada.stored()
    assert len(stored) == len(disk(root))


def test_a_copy_of_a_daemon_does_not_publish_in_its_place(tmp_path, member):
    """Two homes on one machine have identities of their own, though a workspace has the same root."""
    ada, bob = member("ada"), member("bob")
    root = ada.folder("notes", {"a.md": "one"})
    bob.daemon.add(root)
    ada.publish(root)
    bob.publish(root)
    assert len(ada.client.workspaces(10)) == 2
    bob.daemon.call("team.unpublish", path=str(root))
    assert ada.texts() == {"a.md": "one"}


@pytest.mark.skipif(not LONG, reason="ten daemons; .ci/long team starts them")
def test_ten_daemons_find_each_others_notes(member, server):
    """In ten homes, while the store fails in every way now and then."""
    members = [member(f"home-{number}") for number in range(10)]
    roots = [one.folder(f"of-{number}", {"a.md": f"start{number}"}) for number, one in enumerate(members)]
    for one, root in zip(members, roots, strict=True):
        one.publish(root, wait=False)
    chance = random.Random(2)
    for turn in range(20):
        server.tell(fault=chance.choice(["", "", "refuse", "cut", "slow", "hang"]))
        if turn % 7 == 6:
            server.kill()
            server.start()
        for one, root in zip(members, roots, strict=True):
            one.save(root, f"{chance.randrange(20)}.md", f"turn {turn} {chance.random()}")
        time.sleep(0.5)
    server.tell(fault="")
    for one, root in zip(members, roots, strict=True):
        until(lambda one=one, root=root: one.texts(root.name) == disk(root), 120)
