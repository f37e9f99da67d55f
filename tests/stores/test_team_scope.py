"""Searches and recalls with the scope team: several daemons, one store."""

import re
import time
from contextlib import closing

import pytest
from agent_session import in_a_session

from memctl import exits
from stores.conftest import members
from stores.team_support import Server, comes

MARSH = "# Marsh\n\nThe bittern booms at dusk in the reed bed behind the mill.\n"
POND = "# Pond\n\nA kingfisher dives from the alder beside the sluice.\n"


def found(member, root, query, **params):
    answer = member.daemon.call("search", workspace=str(root), query=query, scope="team", **params)
    return answer, [(hit["team"]["workspace"], hit["path"]) for hit in answer["hits"]]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Ada publishes her marsh, Bob his pond; whoever changes more than faults of the store has two others."""
    folder = tmp_path_factory.mktemp("team")
    with closing(Server(folder / "server").start()) as server, members(folder, server) as member:
        yield published(member)


@pytest.fixture
def two_others(member):
    """The same, of one test alone."""
    return published(member)


def published(member):
    """Publish the notes of both."""
    ada, bob = member("ada"), member("bob")
    marsh = ada.folder(
        "marsh", {"bittern.md": MARSH, "diary.md": "---\nprivate: true\n---\nSecret bittern.\n"}
    )
    pond = bob.folder("pond", {"kingfisher.md": POND})
    for one, root in ((ada, marsh), (bob, pond)):
        assert one.publish(root)["done"]
    return ada, marsh, bob, pond


def test_each_finds_the_notes_of_the_other(two):
    """The hit names workspace, machine and owner; private notes are nobody's."""
    ada, marsh, bob, pond = two
    answer, places = found(bob, pond, "bittern at dusk")
    assert places == [("marsh", "bittern.md")]
    [hit] = answer["hits"]
    assert hit["team"].keys() == {"workspace", "machine", "owner"}
    assert hit["id"] == 0
    assert answer["degraded"] == []
    assert found(ada, marsh, "kingfisher")[1] == [("pond", "kingfisher.md")]
    assert bob.daemon.call("search", workspace=str(pond), query="bittern")["hits"] == []


def test_own_hits_name_the_own_root(two):
    ada, marsh, _, _ = two
    answer, places = found(ada, marsh, "bittern")
    assert places == [("marsh", "bittern.md")]
    assert answer["hits"][0]["team"]["root"] == str(marsh)


def test_an_own_save_is_found_before_it_is_published(two_others):
    """Rows of the own index lie over those of the store, which is late."""
    ada, marsh, bob, pond = two_others
    ada.server.tell(lag_s=60)
    ada.save(marsh, "new.md", "# Crane\n\nA crane rests on the marsh; the bittern is silent.\n")
    answer, places = found(ada, marsh, "crane", sync=True)
    assert places == [("marsh", "new.md")]
    assert answer["corrected"] == {}
    (marsh / "bittern.md").unlink()
    assert ("marsh", "bittern.md") not in found(ada, marsh, "bittern", sync=True)[1]
    assert found(bob, pond, "crane")[1] == []


def test_memctl_names_whose_notes_it_shows(two):
    """Notes of other machines by owner, machine and workspace; for programs in JSON."""
    _, _, bob, pond = two
    page = bob.daemon.memctl("search", "--team", "bittern", cwd=pond).stdout
    assert "marsh/bittern.md:3" in page
    assert "@" in page.split(":marsh/")[0]
    own = bob.daemon.memctl("search", "--team", "kingfisher", cwd=pond).stdout
    assert " kingfisher.md:3" in own
    refused = bob.daemon.memctl("search", "--team", "--files", "bittern", cwd=pond)
    assert refused.returncode == exits.USAGE
    assert "are no files here" in refused.stderr
    recalled = bob.daemon.memctl("recall", "--team", "bittern", cwd=pond).stdout
    assert "booms at dusk" in recalled


def test_filters_and_explanations_reach_the_store(two):
    """A path pattern excludes, and an explained hit has its parts."""
    _, _, bob, pond = two
    assert found(bob, pond, "bittern", path="no/*")[1] == []
    answer, places = found(bob, pond, "bittern path:bit*", explain=True)
    assert places == [("marsh", "bittern.md")]
    assert answer["explanation"]["stages"]["hits"] == 1
    assert answer["hits"][0]["explanation"]["keyword"]["rank"] == 1


def why(member, root, path, query, **params):
    return member.daemon.call("why", workspace=str(root), path=path, query=query, scope="team", **params)


def test_why_follows_a_note_of_another_machine(two_others):
    """With the home that a hit names; in the text it is named like that, and its chunk has no id here."""
    _, _, bob, pond = two_others
    [hit] = found(bob, pond, "bittern")[0]["hits"]
    home, name = hit["team"], "{owner}@{machine}:{workspace}/bittern.md".format(**hit["team"])
    told = why(bob, pond, hit["path"], "bittern", team=home)
    assert (told["stage"], told["path"], told["team"]) == ("returned", "bittern.md", home)
    assert told["text"] == f"{name}:1-3 is hit 1"
    assert told["facts"]["chunk"]["id"] == 0
    assert told["facts"]["has"] == ["bittern"]
    told = why(bob, pond, "bittern.md", "bittern path:no/*", team=home)
    assert told["stage"] == "filtered"
    assert f"{name}:1-3 is filtered out: its path does not match 'no/*'" in told["text"]
    told = why(bob, pond, "bittern.md", "kingfisher", team=home)
    assert told["stage"] in {"unmatched", "outside-pools", "below-floor"}
    assert name in told["text"]
    ahead = "# Reeds\n\nBittern, bittern, bittern: a book about the bittern.\n"
    bob.save(pond, "book.md", ahead)
    told = why(bob, pond, "bittern.md", "bittern", team=home, limit=1, sync=True)
    assert told["stage"] == "outranked"
    assert told["advice"] == "memctl search --team --limit 2"
    assert told["facts"]["last"]["path"] == "book.md"


def test_why_says_what_the_team_does_not_have(two_others):
    """Of another machine no more than that; of the workspace itself, what is at home."""
    ada, marsh, bob, pond = two_others
    home = found(bob, pond, "bittern")[0]["hits"][0]["team"]
    for path in ("diary.md", "nothing.md"):
        told = why(bob, pond, path, "bittern", team=home)
        assert (told["stage"], told["facts"]) == ("unpublished", {"reason": "unknown"})
        assert f":marsh/{path} is not in the team's memory" in told["text"]
    told = why(ada, marsh, "diary.md", "bittern")
    assert (told["stage"], told["facts"]) == ("unpublished", {"reason": "kept"})
    assert why(ada, marsh, "diary.md", "bittern", agent=True)["stage"] == "missing"
    assert why(ada, marsh, "bittern.md", "bittern")["stage"] == "returned"
    assert why(ada, marsh, "nothing.md", "bittern")["stage"] == "missing"
    assert why(ada, marsh, "../nothing.md", "bittern")["stage"] == "outside"
    (marsh / "bittern.md").unlink()
    assert why(ada, marsh, "bittern.md", "bittern")["stage"] in {"gone", "missing"}
    field = ada.folder("field", {"lark.md": "The lark rises."})
    told = why(ada, field, "lark.md", "lark")
    assert (told["stage"], told["facts"]) == ("unpublished", {"reason": "workspace"})
    assert told["advice"] == f"memctl team publish {field}"
    with pytest.raises(Exception, match="needs scope"):
        bob.daemon.call("why", workspace=str(pond), path="bittern.md", query="x", team=home)


def test_memctl_explains_a_note_as_search_prints_it(two):
    """Of another machine by its whole name, with a line; of the own workspace by its path."""
    _, _, bob, pond = two
    page = bob.daemon.memctl("search", "--team", "bittern", cwd=pond).stdout
    printed = next(word for word in page.split() if word.endswith(":marsh/bittern.md:3"))
    done = bob.daemon.memctl("why", "--team", printed, "bittern", cwd=pond)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"returned: {printed[:-2]}:1-3 is hit 1\n")
    for command in (["get", printed], ["why", printed, "bittern"], ["forget", printed], ["similar", printed]):
        done = bob.daemon.memctl(*command, cwd=pond)
        assert (done.returncode, "is a note of the team" in done.stderr) == (exits.NOT_FOUND, True)
    done = bob.daemon.memctl("why", "--team", "kingfisher.md", "kingfisher", cwd=pond)
    assert done.stdout.startswith("returned: kingfisher.md:1-3 is hit 1\n")
    done = bob.daemon.memctl("why", "--team", printed.replace("bittern", "heron"), "bittern", cwd=pond)
    assert done.returncode == exits.NONE
    assert done.stdout.startswith("unpublished: ")


def test_why_answers_from_home_while_the_store_is_away(two_others):
    _, _, bob, pond = two_others
    home = found(bob, pond, "bittern")[0]["hits"][0]["team"]
    bob.server.kill()
    told = why(bob, pond, "kingfisher.md", "kingfisher")
    assert (told["stage"], told["degraded"][0]) == ("returned", "store-away")
    with pytest.raises(Exception, match="store"):
        why(bob, pond, "bittern.md", "bittern", team=home)


def test_a_recall_says_whose_notes_they_are(two):
    """In its text and in its sources, which can be passed as known."""
    _, _, bob, pond = two
    answer = bob.daemon.call("recall", workspace=str(pond), query="bittern", scope="team", known=[])
    [source] = answer["sources"]
    assert (source["path"], source["team"]["workspace"]) == ("bittern.md", "marsh")
    assert f"@{source['team']['machine']}:marsh/bittern.md" in answer["text"]
    assert "booms at dusk" in answer["text"]
    params = {"workspace": str(pond), "query": "bittern", "scope": "team"}
    again = bob.daemon.call("recall", **params, known=answer["keys"])
    assert again["sources"] == []


def test_an_agent_searches_the_team_through_mcp(two_others):
    """Hits and sources say whose they are, and an answer says if the store is away."""
    _, _, bob, pond = two_others
    asked = {"query": "bittern at dusk", "scope": "team"}
    calls = [("search_memory", asked), ("recall", asked), ("search_memory", {"query": "bittern at dusk"})]
    searched, recalled, at_home = in_a_session(bob.daemon, pond, *calls)
    [hit] = searched.structured_content["hits"]
    assert (hit["path"], hit["team"]["workspace"]) == ("bittern.md", "marsh")
    [source] = recalled.structured_content["sources"]
    assert (source["path"], source["team"]) == ("bittern.md", hit["team"])
    assert "booms at dusk" in recalled.content[0].text
    assert at_home.structured_content["hits"] == []
    bob.server.kill()
    [away] = in_a_session(bob.daemon, pond, ("search_memory", {"query": "kingfisher", "scope": "team"}))
    assert [hit["path"] for hit in away.structured_content["hits"]] == ["kingfisher.md"]
    assert "store gave no answer" in away.structured_content["note"]


def test_a_store_that_hangs_leaves_the_local_answer(two):
    """It says that the store is away; the next queries do not wait, and it is used after its return."""
    _, _, bob, pond = two
    bob.server.tell(fault="hang")
    params = {"workspace": str(pond), "query": "kingfisher", "scope": "team"}
    answer = bob.daemon.call("search", **params)
    assert answer["degraded"][0] == "store-away"
    assert [hit["path"] for hit in answer["hits"]] == ["kingfisher.md"]
    recalled = bob.daemon.call("recall", **params)
    assert recalled["degraded"][0] == "store-away"
    assert "kingfisher" in recalled["text"]
    bob.server.tell(fault="")
    comes(lambda: found_or_none(bob, pond, "bittern") == [("marsh", "bittern.md")])


def test_a_store_that_is_gone_leaves_the_local_answer(two):
    _, _, bob, pond = two
    bob.server.kill()
    answer = bob.daemon.call("search", workspace=str(pond), query="kingfisher", scope="team")
    assert answer["degraded"][0] == "store-away"
    assert [hit["path"] for hit in answer["hits"]] == ["kingfisher.md"]
    bob.server.start()
    comes(lambda: found_or_none(bob, pond, "bittern") == [("marsh", "bittern.md")])


def found_or_none(member, root, query):
    time.sleep(0.2)
    answer = member.daemon.call("search", workspace=str(root), query=query, scope="team")
    return [(hit["team"]["workspace"], hit["path"]) for hit in answer["hits"] if "team" in hit]


def test_without_a_team_the_scope_is_refused(member):
    """With what to do, for agents and people: with the file."""
    ada = member("ada")
    root = ada.folder("marsh", {"bittern.md": MARSH})
    ada.daemon.stop()
    ada.config.write_text("")
    ada.daemon.start()
    told = f"no team is configured: {ada.config} has no [team], see docs/team.md. Without scope = "
    with pytest.raises(Exception, match=re.escape(told)):
        found(ada, root, "bittern")
    for command in (["search", "--team"], ["recall", "--team"], ["why", "--team", "bittern.md"]):
        done = ada.daemon.memctl(*command, "bittern", cwd=root)
        assert (done.returncode, told in done.stderr) == (exits.CONFIG, True)
