"""An agent revises an entry, supersedes it and takes that back; a person does by memctl."""

import functools
import json

import pytest

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

FACT = {"topic": "deploy", "title": "How staging is deployed", "content": "Run make stage on a Friday."}
NEWER = {
    "topic": "deploy",
    "title": "A pushed tag deploys",
    "content": "The pipeline brings a tag to staging.",
}
TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3  # put together here, so that no scanner takes it for a leak


@pytest.mark.parametrize("by", ["id", "path"])
def test_a_revision_is_found_at_once_and_the_text_before_is_not(workspace, by):
    first = workspace.call("extract_memory", **FACT, tags=["ops"])
    done = workspace.call("extract_memory", content="Push a zebra tag.", update=first[by])
    assert {key: done[key] for key in ("path", "id", "created")} == {
        key: first[key] for key in ("path", "id", "created")
    }
    assert first["updated"] is None
    assert done["updated"] >= first["created"]
    assert done["indexed"] is True
    assert workspace.call("get", path=first["path"])["hash"] == done["hash"]
    assert workspace.found("zebra", mode="keyword") == [first["path"]]
    assert workspace.found("friday", mode="keyword") == []
    [hit] = workspace.call("search", query="zebra", mode="keyword")["hits"]
    assert (hit["title"], hit["tags"], hit["date_of"]) == (FACT["title"], ["ops"], "updated")


def test_an_entry_is_found_by_its_id_wherever_a_person_has_put_it(workspace):
    call = functools.partial(workspace.daemon.call, workspace=str(workspace.root))
    first, moved = (call("extract_memory", **FACT)["id"], call("extract_memory", **NEWER)["id"])
    for entry, to in ((first, "memory/deploy/Staging.md"), (moved, "tags.md")):
        [file] = workspace.root.glob(f"memory/deploy/*-{entry[:6]}.md")
        file.rename(workspace.root / to)
    assert call("extract_memory", content="Push a zebra.", update=first)["path"] == "memory/deploy/Staging.md"
    assert call("forget", id=first, agent=True)["path"] == "memory/deploy/Staging.md"
    workspace.call("sync")
    with pytest.raises(RpcError, match=r"tags\.md is not an entry"):
        call("forget", id=moved)
    newer = call("extract_memory", **FACT, supersedes=moved)["path"]
    assert call("get", path="tags.md")["superseded_by"] == [newer]


def test_a_persons_note_is_superseded_and_related_by_path(workspace):
    done = workspace.call(
        "extract_memory", **NEWER, supersedes=["1.md"],
        related=["0.md", str(workspace.root / "2.md"), "0.md"],
    )  # fmt: skip
    text = (workspace.root / done["path"]).read_text()
    assert "supersedes:\n- 1.md\nrelated:\n- 0.md\n- 2.md\n" in text
    assert workspace.call("get", path="1.md")["superseded_by"] == [done["path"]]
    assert (workspace.root / "1.md").read_text() == "The weir was mended in May.\n"
    workspace.call("extract_memory", content="Not that.", update=done["id"], supersedes=[])
    assert workspace.call("get", path="1.md")["superseded_by"] == []


@pytest.mark.parametrize(
    ("params", "code", "said"),
    [
        ({"supersedes": ["nothing.md"]}, "MEMD_NOT_FOUND", "$.supersedes"),
        ({"related": ["memory"]}, "MEMD_NOT_FOUND", "$.related"),
        ({"supersedes": ["../../etc/passwd"]}, "MEMD_INVALID", "$.supersedes"),
        ({"related": ["/etc/passwd"]}, "MEMD_INVALID", "$.related"),
        ({"related": [".hidden.md"]}, "MEMD_NOT_FOUND", "$.related"),
        ({"supersedes": ["abcdef0123456789"]}, "MEMD_NOT_FOUND", "abcdef0123456789"),
        ({"supersedes": [f"{number}.md" for number in (0, 1, 2)] * 11}, "MEMD_INVALID", "supersedes"),
        ({"supersedes": ["a\0.md"]}, "MEMD_INVALID", "$.supersedes"),
        ({"update": "1.md"}, "MEMD_INVALID", "not an entry"),
        ({"update": "../outside.md"}, "MEMD_INVALID", "$.update"),
        ({"update": "abcdef"}, "MEMD_NOT_FOUND", "abcdef"),
        ({"update": "memory/config.toml"}, "MEMD_INVALID", "not an entry"),
        ({"hash": "0" * 32}, "MEMD_INVALID", "$.hash"),
        ({"topic": None}, "MEMD_INVALID", "topic"),
        ({"title": None}, "MEMD_INVALID", "title"),
        ({"content": TOKEN}, "MEMD_SECRET", "github-pat"),
        ({"content": TOKEN, "force": True}, "MEMD_INVALID", "$.force"),
        ({"source": {"origin": "robot"}}, "MEMD_INVALID", "$.source"),
        ({"derived_from": "the web"}, "MEMD_INVALID", "derived_from"),
        ({"derived_from": "external", "daily": True}, "MEMD_INVALID", "a daily entry has none"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_is_written(trapped, params, code, said):
    (trapped.root / ".hidden.md").write_text("mine")
    before = sorted(trapped.root.rglob("*"))
    error = trapped.error("extract_memory", **{**FACT, **params})
    assert (error.code, said in str(error)) == (code, True)
    assert sorted(trapped.root.rglob("*")) == before


def test_history_shows_a_chain_from_the_oldest_to_the_newest(workspace):
    (workspace.root / "2.md").write_text("---\ncreated: 2026-01-02\n---\nBuy oats.\n")
    first = workspace.call("extract_memory", **FACT, supersedes=["2.md"])["path"]
    second = workspace.call("extract_memory", **NEWER, supersedes=[first, "1.md"])["path"]
    workspace.call("sync")
    told = workspace.call("history", path=second)
    assert (told["path"], told["notes_total"], told["unresolved"]) == (second, 4, [])
    chain = {one["path"]: one for one in told["notes"]}
    assert set(chain) == {"1.md", "2.md", first, second}
    assert list(chain)[-1] == second
    assert list(chain).index("2.md") < list(chain).index(first)
    assert (chain["2.md"]["date"], chain["2.md"]["created"]) == ("2026-01-02", "2026-01-02")
    assert (chain[first]["supersedes"], chain[first]["superseded_by"]) == (["2.md"], [second])
    assert (chain[first]["origin"], chain["1.md"]["origin"]) == ("agent", "human")
    told = workspace.call("history", path="2.md")["notes"]
    assert [one["path"] for one in told] == ["2.md", first, second]
    alone = workspace.call("history", path="0.md")
    assert [one["path"] for one in alone["notes"]] == ["0.md"]
    (workspace.root / "0.md").write_text("---\nsupersedes: nowhere.md\n---\nx\n")
    workspace.call("sync")
    assert workspace.call("history", path="0.md")["unresolved"] == ["nowhere.md"]
    assert workspace.error("history", path="no.md").code == "MEMD_NOT_FOUND"


def test_a_person_does_all_of_it_by_memctl(workspace):
    here = workspace.root / "memory"
    said = workspace.memctl("add", "--topic", "t", "--title", "Weirs", "--json", "They stand.")
    first = json.loads(said.stdout)
    said = workspace.daemon.memctl(
        "add", "--topic", "t", "--title", "Weirs now", "--supersedes", first["id"], "--related", "../1.md",
        "They fell.", cwd=here,
    )  # fmt: skip
    newer = "memory/" + said.stdout.strip()
    assert (said.returncode, "related:\n- 1.md\n" in (workspace.root / newer).read_text()) == (0, True)
    shown = workspace.daemon.memctl(
        "journal", f"t/{first['path'].rpartition('/')[2]}", cwd=here
    ).stdout.splitlines()
    assert [line[:2] for line in shown] == ["* ", "  "]
    assert [line.rpartition("  ")[2] for line in shown] == ["Weirs", "Weirs now"]
    assert newer.removeprefix("memory/") in shown[1]
    done = workspace.memctl("add", "--update", first["id"], "--hash", "0" * 32, "Not this.")
    assert (done.returncode, "was not revised" in done.stderr) == (exits.REFUSED, True)
    done = workspace.memctl("add", "--update", first["path"], "They stood.")
    assert (done.returncode, "They stood." in (workspace.root / first["path"]).read_text()) == (0, True)
    front = (workspace.root / first["path"]).read_text().split("---\n")[1]
    assert "title: Weirs\n" in front
    assert "origin: human" in front
    missing = workspace.memctl("add", "They stood.")
    assert (missing.returncode, "a new entry needs --topic" in missing.stderr) == (2, True)
