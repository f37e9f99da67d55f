"""What agents get of a workspace: no private note, by whatever they ask, and no secret of the others."""

from pathlib import Path

import pytest
from every_call import NAMES

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3  # put together here, so that no scanner takes it for a leak
# An agent asks for the first word; the second one is told by no answer that it makes up itself.
TEXT = "# About zephyrineword\n\nThe same sentence, zephyrineword and quinceword.\n"
PRIVATE = f"---\nprivate: true\ntags: [shared]\n---\n{TEXT}"
DIARY = f"---\ntags: [shared]\n---\n{TEXT}\nDear diary, nothing else happened today.\n"
OPEN = "---\ntags: [shared]\n---\n# About heronword\n\nThe same sentence, and heronword.\n"


@pytest.fixture
def kept(daemon, tmp_path):
    """A workspace with private notes beside open ones."""
    notes = {NAMES[2]: OPEN, "memory/config.toml": 'agents_ignore = ["diary/"]\n'}
    for folder, text in (("open", OPEN), ("hidden", PRIVATE), ("diary", DIARY)):
        notes |= {f"{folder}/{name}": text for name in NAMES[:2]}
    return daemon.workspace(tmp_path / "notes", notes)


def test_a_note_that_becomes_private_is_kept_from_the_next_read(kept):
    """A read looks at the file as it is now; a search follows with the save."""
    note = Path(kept.root) / "open" / "notes.md"
    note.write_text(note.read_text().replace("---\n", "---\nprivate: true\n", 1))
    with pytest.raises(RpcError, match="is not an indexed source"):
        kept.call("get", path="open/notes.md", agent=True)
    found = kept.call("search", query="heronword", agent=True, sync=True)["hits"]
    assert "open/notes.md" not in {hit["path"] for hit in found}
    assert "heronword" in kept.call("get", path="open/notes.md")["text"]


def test_a_change_of_agents_ignore_holds_at_once(kept):
    kept.call("workspace.configure", settings={"agents_ignore": ["open/", "diary/"]})
    found = kept.call("search", query="heronword", agent=True)["hits"]
    assert {hit["path"] for hit in found} == {"memory/facts/one.md"}
    with pytest.raises(RpcError, match="agents_ignore"):
        kept.call("workspace.configure", settings={"agents_ignore": ["a//"]})


def test_recall_keeps_its_budget_where_what_is_masked_grows(kept):
    """What stands for a short password is longer than it; the budget counts what is sent."""
    line = "The database is at postgres://app:k3tchup9@db.acme.dev/app since May.\n"
    (Path(kept.root) / "databases.md").write_text("# Databases\n\n" + line * 30)
    kept.call("sync")
    for budget in (50, 200, 500, 2000):
        told = kept.call("recall", query="database postgres", budget_tokens=budget)
        assert "k3tchup9" not in told["text"]
        assert len(told["text"].encode()) <= 4 * budget
        assert told["tokens"] <= budget


def test_every_text_of_an_answer_to_an_agent_is_masked_though_no_note_has_it(kept):
    for agent in (True, False):
        told = kept.call("search", query=f"tag:{TOKEN}", agent=agent)
        assert (TOKEN in str(told["unmatched"])) is not agent


def test_an_agent_cannot_tell_how_long_a_secret_is_or_test_a_guess_of_it(kept):
    told = []
    for secret in (TOKEN, "ghp_" + "Kx7Qm2Vr9Tz4" * 3 + "Pw"):
        (Path(kept.root) / "linked.md").write_text(f"# Key\n\nIt is {secret}, see [[open/notes]].\n")
        kept.call("sync")
        for agent in (True, False):
            links = [
                kept.call("links", path=path, which=which, agent=agent)["links"]
                for path, which in (("linked.md", "out"), ("open/notes.md", "in"))
            ]
            one = kept.call("get", path="linked.md", agent=agent)
            assert (secret in one["text"]) is not agent, "people get it as it is written"
            told.append((links, one["links"], one["hash"]))
    assert told[0] == told[2]
    assert all(mine != other for mine, other in zip(told[1], told[3], strict=True))
