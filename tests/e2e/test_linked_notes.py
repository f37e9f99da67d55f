"""Links of notes in answers: Obsidian's in the text, and what an entry says it is related to."""

import pytest

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "birds/heron.md": "---\naliases: [grey bird]\n---\n# Heron\n\n"
    "It fishes at the [[weir|old weir]].\n\nSee `[[code]]`.\n",
    "river/weir.md": "# Weir\n\nBuilt in 1850, mended in [[2026 repairs]].\nThe [[Grey Bird]] waits there.\n",
    "index.md": "---\nrelated: [river/weir.md, nobody.md]\n---\n# All\n\n"
    "- [[birds/heron#Food]]\n- [[weir]]\n",
}


@pytest.fixture
def vault(daemon, tmp_path):
    return daemon.workspace(tmp_path / "vault", NOTES)


def links_of(answer):
    links = answer["links"]
    out = [(one["kind"], one["target"], one["path"], one["line"]) for one in links["outgoing"]]
    into = [(one["kind"], one["path"], one["line"]) for one in links["incoming"]]
    assert (links["outgoing_total"], links["incoming_total"]) == (len(out), len(into))
    return out, into


def test_get_and_similar_name_the_links_out_of_a_note_and_into_it(vault):
    weir = (
        [("text", "2026 repairs", None, 3), ("text", "Grey Bird", "birds/heron.md", 4)],
        [("text", "birds/heron.md", 6), ("related", "index.md", None), ("text", "index.md", 7)],
    )
    assert links_of(vault.call("get", path="river/weir.md", start_line=1)) == weir
    assert links_of(vault.call("similar", path="river/weir.md")) == weir
    assert links_of(vault.call("get", path="birds/heron.md")) == (
        [("text", "weir", "river/weir.md", 6)],
        [("text", "index.md", 6), ("text", "river/weir.md", 4)],
    )
    out, into = links_of(vault.call("get", path="index.md"))
    assert out[:2] == [
        ("related", "river/weir.md", "river/weir.md", None),
        ("related", "nobody.md", None, None),
    ]
    assert into == []


def test_an_entry_links_only_where_its_caller_says_so(vault):
    """Similar notes are advice: nothing is written of them; `related` is, and the other side knows it."""
    fact = {"topic": "birds", "title": "Herons at the weir", "content": "The heron fishes at the old weir."}
    alone = vault.call("extract_memory", **fact)
    assert alone["similar"]
    assert links_of(vault.call("get", path=alone["path"])) == ([], [])
    linked = vault.call("extract_memory", **fact, related=["birds/heron.md", alone["id"]])
    assert links_of(vault.call("get", path=linked["path"]))[0] == [
        ("related", "birds/heron.md", "birds/heron.md", None),
        ("related", alone["path"], alone["path"], None),
    ]
    assert links_of(vault.call("get", path=alone["path"]))[1] == [("related", linked["path"], None)]
    assert {path: (vault.root / path).read_text() for path in NOTES} == NOTES


def test_similar_notes_say_why_and_when(vault):
    first = vault.call(
        "extract_memory", topic="x", title="Heron",
        content="The heron fishes at the old weir at dawn.",
    )  # fmt: skip
    again = vault.call(
        "extract_memory", topic="x", title="Heron",
        content="At the old weir the heron fishes in rain.",
    )  # fmt: skip
    [same] = [one for one in again["similar"] if one["path"] == first["path"]]
    assert same["by"] == ["meaning", "words"]
    assert {"heron", "fishes", "weir"} <= set(same["words"])
    assert (same["date"], same["date_of"]) == (first["created"][:10], "created")
    assert (same["source"], same["superseded_by"]) == ({"origin": "agent"}, [])
    other = vault.call(
        "extract_memory",
        topic="x",
        title="Wading bird",
        content="Egrets and storks go fishing beside ancient dams, mornings.",
    )
    [near] = [one for one in other["similar"] if one["path"] == first["path"]]
    assert (near["by"], near["words"]) == (["meaning"], [])
    far = vault.call(
        "extract_memory", topic="x", title="Angling",
        content="Wading birds catch trout upstream.",
    )  # fmt: skip
    assert first["path"] not in {one["path"] for one in far["similar"]}


def test_memctl_says_how_many_links_there_are(vault):
    assert "links: 2 out, 3 in (memctl links)" in vault.memctl("similar", "river/weir.md").stderr
    assert vault.memctl("similar", "--files", "river/weir.md").stderr == ""


def test_of_very_many_links_the_first_are_named_and_all_are_counted(vault):
    """An answer to an agent stays short."""
    for number in range(60):
        (vault.root / f"n{number:02}.md").write_text(
            f"[[hub]] {' '.join(f'[[x{one}]]' for one in range(70))}\n"
        )
    (vault.root / "hub.md").write_text("hub\n")
    vault.call("sync")
    links = vault.call("get", path="hub.md")["links"]
    assert (len(links["incoming"]), links["incoming_total"]) == (50, 60)
    links = vault.call("get", path="n00.md")["links"]
    assert (len(links["outgoing"]), links["outgoing_total"]) == (50, 71)


def test_get_takes_a_title_and_names_near_paths(vault):
    assert vault.daemon.memctl("get", "Heron:4", cwd=vault.root / "river").stdout == "# Heron\n"
    assert vault.call("get", path="heron")["path"] == "birds/heron.md"
    for written, lines in (
        ("weir", (1, None)), ("[[Weir#Sluice|there]]", (1, None)), ("memory:///river/weir%2Emd", (1, None)),
        ("river/weir.md:1", (1, 1)), ("birds/heron.md:2-4", (2, 4)),
        ("memory:///birds/heron.md:2-4", (2, 4)), (f"file://{vault.root}/river/weir%2Emd", (1, None)),
        ("river/weir.md:1:7", (1, 1)), ("birds/heron.md#L2-L4", (2, 4)), ("weir.md#sluice", (1, None)),
        ("`river/weir.md`", (1, None)), ("![[weir|300]]", (1, None)), ("[a](<weir.md#x>)", (1, None)),
        ("birds/heron.md (lines 2-4)", (2, 4)), ("birds/heron.md, line 3", (3, 3)), ("<weir>", (1, None)),
        ("river/weir.md?plain=1#L1", (1, 1)), (f"vscode://file{vault.root}/river/weir.md:L1", (1, 1)),
        ("obsidian://open?vault=v&file=river%2Fweir", (1, None)),
        ("River_ weir", (1, None)), (r"river\weir.md", (1, None)), ("memory://river/weir.md", (1, None)),
    ):  # fmt: skip
        answer = vault.call("get", path=written, agent=True)
        assert answer["path"] == ("birds/heron.md" if "heron" in written else "river/weir.md")
        assert (answer["start_line"], lines[1] or answer["end_line"]) == (lines[0], answer["end_line"])
        assert vault.call("links", path=written)["path"] == answer["path"]
        vault.call("similar", path=written)
    for place in ("a", "b"):
        (vault.root / f"{place}.md").write_text(f"---\naliases: [Wehr]\n---\n{place}\n")
    vault.call("sync")
    with pytest.raises(RpcError, match=r"several notes are called Wehr, one is a\.md: name one by its path"):
        vault.call("get", path="Wehr", agent=True)
    with pytest.raises(RpcError, match=r"near it are river/weir\.md") as caught:
        vault.call("get", path="river/wier.md")
    assert caught.value.code == "MEMD_NOT_FOUND"
    done = vault.memctl("get", "river/weir.md:9999")
    assert (done.returncode, "lines, not 9999" in done.stderr) == (exits.NOT_FOUND, True)
    assert "near" not in str(vault.error("get", path="river/wier.md", agent=True))


def test_a_title_in_the_front_matter_names_a_note_after_its_file_is_renamed(vault):
    (vault.root / "links.md").write_text("See [[The Long Dam]].\n")
    (vault.root / "dam.md").write_text("---\ntitle: The Long Dam\n---\nOf 1850.\n")
    vault.call("sync")
    (vault.root / "dam.md").rename(vault.root / "river" / "1850.md")
    vault.call("sync")
    assert links_of(vault.call("get", path="links.md"))[0] == [("text", "The Long Dam", "river/1850.md", 1)]
