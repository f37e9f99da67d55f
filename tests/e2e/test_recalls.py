"""What is told with hits: recall's budget, folders that are described, long notes, what is like a note."""

import math
from datetime import datetime, timedelta

import pytest
from daemon_process import folder_of

from memctl.client import RpcError
from memd.entries.secrets import find_secrets

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def home(daemon, tmp_path):
    """A workspace with a core, a daily file and notes."""
    sections = [f"## Part {n}\n\n" + f"The heron of part {n} stands by the weir. " * 20 for n in range(3)]
    return daemon.workspace(tmp_path / "notes", {
        "MEMORY.md": "# Always\n\nThe user drinks tea, never coffee.\n",
        "heron.md": "# Heron\n\n" + "\n\n".join(sections) + "\n",
        "otter.md": "# Otter\n\nThe otter eats fish at the weir.\n",
    })  # fmt: skip


def recalled(home, query="heron at the weir", **more):
    answer = home.call("recall", query=query, **more)
    assert answer["tokens"] == math.ceil(len(answer["text"].encode()) / 4) <= answer["budget_tokens"]
    return answer


def paths(answer):
    return [one["path"] for one in answer["sources"]]


def test_what_is_always_known_comes_first(home):
    done = home.call("extract_memory", title="Weir", content="A heron came.", daily=True)
    answer = recalled(home)
    assert paths(answer)[0] == "MEMORY.md"
    assert answer["sources"][0]["score"] is None
    assert {"heron.md", done["path"]} < set(paths(answer))
    origins = {one["path"]: one["origin"] for one in answer["sources"]}
    assert (origins[done["path"]], origins["heron.md"]) == ("agent", "human")
    today = f"{datetime.now().astimezone():%Y-%m-%d}"
    assert f"Source: {done['path']}:2-4 ({today}, written by an agent)" in answer["text"]


def test_the_core_is_what_the_workspace_says(home):
    home.call("workspace.configure", settings={"core": ["otter.md", "MEMORY.md", "no.md"]})
    assert paths(recalled(home))[:2] == ["otter.md", "MEMORY.md"]
    assert "MEMORY.md" not in paths(recalled(home, core=False))


def test_filters_of_tag_and_time_do_not_hide_the_core_and_those_of_path_do(home):
    """Who may see a folder alone is shown nothing of what stands above it."""
    tomorrow = f"{datetime.now().astimezone() + timedelta(days=1):%Y-%m-%d}"
    assert paths(recalled(home, query="", since=tomorrow)) == ["MEMORY.md"]
    assert paths(recalled(home, tag="none")) == ["MEMORY.md"]
    assert paths(recalled(home, path="otter.md")) == ["otter.md"]
    assert paths(recalled(home, query="path:otter.md fish")) == ["otter.md"]
    assert "MEMORY.md" not in paths(recalled(home, query="-path:MEMORY.md fish"))


def test_a_core_that_is_deleted_or_ignored_is_in_no_answer(home):
    (home.root / "MEMORY.md").unlink()
    assert "MEMORY.md" not in paths(recalled(home))
    (home.root / "MEMORY.md").write_text("Tea.\n")
    home.call("workspace.configure", settings={"ignore": ["MEMORY.md"]})
    home.call("sync")
    assert "MEMORY.md" not in paths(recalled(home))


def test_where_nothing_is_a_good_match_the_core_may_come_alone(home):
    query = "quokka zymurgy"
    answer = recalled(home, query=query, nearest=False)
    assert (answer["confidence"], paths(answer)) == ("none", ["MEMORY.md"])
    nearest = recalled(home, query=query, min_score=0.0)
    assert ("No good match" in nearest["text"]) is (len(nearest["sources"]) > 1)


def test_a_channel_never_sees_the_core_of_another(daemon, tmp_path):
    """A workspace is asked alone: its parent's core is not in its answer, nor the other way round."""
    for name in ("a", "b"):
        daemon.add(folder_of(tmp_path / name, {"MEMORY.md": f"The secret of channel {name}.\n"}))
    inner = folder_of(tmp_path / "a/inner", {"note.md": "The inner note.\n"})
    daemon.call("workspace.add", path=str(inner), nested=True)
    for workspace, own in ((tmp_path / "a", "a"), (tmp_path / "b", "b"), (inner, "none")):
        for more in ({}, {"path": "**"}, {"format": "xml"}):
            text = daemon.call("recall", workspace=str(workspace), query="secret of channel", **more)["text"]
            assert [name for name in ("a", "b") if f"channel {name}" in text] == [own] * (own != "none")


def test_what_the_reader_has_is_not_sent_again(home):
    lines = [
        f"The kingfisher number {n} dives for minnows near stone {n} of the old ford." for n in range(60)
    ]
    (home.root / "birds.md").write_text("# Kingfishers\n\n" + "\n".join(lines) + "\n")
    home.call("index")
    known, sent = [], []
    while sources := (answer := recalled(home, "kingfisher", known=known, core=False))["sources"]:
        assert answer["keys"]
        known += answer["keys"]
        sent += [
            (one["path"], line) for one in sources for line in range(one["start_line"], one["end_line"] + 1)
        ]
    assert len(sent) == len(set(sent))
    assert {line for path, line in sent if path == "birds.md"} == set(range(1, 63))
    assert "keys" not in recalled(home, core=False)


def test_a_note_that_replaces_a_sure_one_is_sent_in_its_place(home):
    """Whatever its own words are: the correction is what the prompt needs."""
    (home.root / "newer.md").write_text("---\nsupersedes: otter.md\n---\nIt is a vegetarian now.\n")
    home.call("index")
    answer = recalled(home, "What does the otter eat at the weir?", sure=True, core=False)
    assert paths(answer) == ["newer.md"]


@pytest.mark.parametrize("key", ["", "0123", "0123456789ABCDEF", "g" * 16, "0" * 17])
def test_a_key_that_is_none_is_refused(home, key):
    with pytest.raises(RpcError, match="known"):
        home.call("recall", query="x", known=["0" * 16, key])


SECRET = "ghp_" + "A1b2C3d4E5f6G7h8J9k0" + "L1m2N3o4P5q6R7s8"
LONG = "Runbooks of the shop, each tried in the last quarter, " + "with steps and with the way back " * 6


@pytest.fixture
def shop(daemon, tmp_path):
    """Folders that are described: well, at length, with a secret, privately, and not at all."""
    notes = {
        "shop/README.md": f"---\ndescribes: {LONG}\n---\n# Shop\n",
        "shop/deep/weir.md": "# Weir\n\nThe weir of the shop.\n",
        "shop/other.md": "# Weir again\n\nAnother text on a weir, of the shop.\n",
        "keys/index.md": f"---\ndescribes: Keys like {SECRET}\n---\n# Keys\n",
        "keys/weir.md": "# Weir key\n\nThe weir has a key.\n",
        "diary/README.md": "---\nprivate: true\ndescribes: quinceword\n---\n# Diary\n",
        "diary/weir.md": "# Weir walk\n\nA walk to the weir.\n",
        "plain/notes.md": "---\ndescribes: not of a folder\n---\n# Weir plain\n\nA plain weir.\n",
    }
    return daemon.add_notes(tmp_path / "notes", notes)


def test_a_folder_tells_agents_once_what_it_is(daemon, shop):
    assert find_secrets(SECRET)
    answer = daemon.call("search", workspace=shop, query="weir", agent=True)
    assert {hit["path"] for hit in answer["hits"]} >= {"shop/deep/weir.md", "keys/weir.md", "diary/weir.md"}
    assert answer["folders"].keys() == {"shop", "keys"}
    assert answer["folders"]["shop"].startswith("Runbooks of the shop")
    assert len(answer["folders"]["shop"].encode()) <= 30 * 4
    assert answer["folders"]["keys"].startswith("Keys like [masked")
    assert "folders" not in daemon.call("search", workspace=shop, query="weir")
    told = daemon.call("recall", workspace=shop, query="weir", agent=True)
    assert told["text"].count("Runbooks of the shop") == 1
    assert told["tokens"] <= 2000
    assert "quinceword" not in told["text"]
    assert SECRET not in told["text"]


def test_a_hit_and_its_place_have_the_same_neighbours(sample):
    [hit] = sample.call("search", query="breast cancer gene", limit=1)["hits"]
    by_id = sample.call("similar", id=hit["id"])
    by_path = sample.call("similar", path=hit["path"], line=hit["start_line"])
    assert by_id["hits"] == by_path["hits"]
    assert by_id["to"]["path"] == hit["path"]
    assert by_id["to"]["id"] == hit["id"]
    assert hit["path"] not in [one["path"] for one in by_id["hits"]]
    assert set(by_id["hits"][0]) == set(hit)
    assert (by_id["mode"], by_id["degraded"]) == ("vector", [])


@pytest.mark.parametrize(
    ("params", "code", "told"),
    [
        ({}, "MEMD_INVALID", "expected either path or id"),
        ({"path": "a.md", "id": 1}, "MEMD_INVALID", "expected either path or id"),
        ({"id": 1, "line": 1}, "MEMD_INVALID", "$.line"),
        ({"id": 2**40}, "MEMD_NOT_FOUND", "there is no chunk"),
        ({"path": "nothing.md"}, "MEMD_NOT_FOUND", "is not an indexed source"),
        ({"path": "/etc/passwd"}, "MEMD_NOT_FOUND", "is not an indexed source"),
        ({"path": "research/brca1.md", "line": 999}, "MEMD_NOT_FOUND", "at line 999"),
        ({"path": "a.md", "query": "x"}, "MEMD_INVALID", "$.query: unknown parameter"),
    ],
)
def test_what_cannot_be_compared_is_named(sample, params, code, told):
    error = sample.error("similar", **params)
    assert (error.code, told in error.message) == (code, True), error.message


def test_without_a_model_words_are_compared_and_it_says_so(daemon, tmp_path):
    notes = {"a.md": "heron and weir\n", "b.md": "a heron by the weir\n", "c.md": "garlic\n"}
    workspace = daemon.add_notes(tmp_path / "notes", notes)
    answer = daemon.call("similar", workspace=workspace, path="a.md")
    assert [hit["path"] for hit in answer["hits"]] == ["b.md"]
    assert (answer["mode"], answer["degraded"]) == ("keyword", ["no-provider"])


def test_a_text_that_is_asked_for_again_is_embedded_once(daemon, server, tmp_path):
    """An editor asks for the paragraph at the cursor again and again."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    (root / "heron.md").write_text("A heron stands by the weir.\n")
    workspace = daemon.add(root)
    for _ in range(2):
        answer = daemon.call("similar", workspace=workspace, text="grey birds", min_score=0.0)
        assert (answer["mode"], [hit["path"] for hit in answer["hits"]]) == ("vector", ["heron.md"])
    assert str(server.asked).count("grey birds") == 1


def test_a_chunk_of_a_note_that_is_gone_cannot_be_had(daemon, tmp_path):
    """Its rows are kept for a day, and are no answer to anybody."""
    root = folder_of(tmp_path / "notes", {"a.md": "heron\n", "b.md": "heron\n"})
    workspace = daemon.add(root)
    [hit] = daemon.call("search", workspace=workspace, query="heron", path="a.md")["hits"]
    (root / "a.md").unlink()
    daemon.call("sync", workspace=workspace)
    for method in ("similar", "get"):
        assert daemon.error(method, workspace=workspace, id=hit["id"]).code == "MEMD_NOT_FOUND"
