"""Each way to write a link, and folders that are hard to serve, as `memctl lsp` answers about them."""

import re
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from lsp_editor import Editor, places

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "top.md": "---\ndate: 2024-03-05\n---\n# Top\n\nFirst words.\n\n## The plan\n\nSequence. ^blk\n",
    "a/here.md": "# Here\n",
    "a/Ann Heron.md": "---\naliases: [Annie]\n---\n# Profile\n\nShe likes waders.\n",
    "a/v1.2 (x).md": "# Version\n",
    "x/Twin.md": "# One\n",
    "y/Twin.md": "# Two\n",
    "old.md": "# Old\n",
    "new.md": "---\nsupersedes: old.md\n---\n# New\n",
    "genes.md": "# Genes\n\nMutations of a gene raise the risk of cancer.\n",
    "breast.md": "# Breast\n\nThe risk of breast cancer by a mutation of a gene.\n",
    **{f"risk{number}.md": f"# Risk {number}\n\nA risk.\n" for number in range(4)},
    "titled.md": "# none.md\n\n## ./none.md\n",
}  # fmt: skip

# What is written, where the definition is, what the hover begins with or has, and the hint's code.
ROWS = (
    ("[t](../top.md)", "top.md:0", "**Top** · 2024-03-05", ""),
    ("[t](<Ann Heron.md>)", "a/Ann Heron.md:0", "She likes waders.", ""),
    ("[t](Ann%20Heron.md 'title')", "a/Ann Heron.md:0", "**Profile**", ""),
    ("[t](../top.md#the-plan)", "top.md:7", "First words.", ""),
    ("[t](../top.md#none)", "top.md:0", "no such heading", "part"),
    ("[t][ref]", "top.md:0", "**Top**", ""),
    ("[REF][]", "top.md:0", "**Top**", ""),
    ("[ref]", "top.md:0", "---\n\n# Top\n", ""),
    ("[words that\ngo on](../top.md)", "top.md:0", "**Top**", ""),
    ("> [words that\n> go on](../top.md)", "top.md:0", "**Top**", ""),
    ("[[top#The plan|shown]]", "top.md:7", "**Top**", ""),
    ("[[top#^blk]]", "top.md:9", "**Top**", ""),
    ("[[Annie]]", "a/Ann Heron.md:0", "**Profile**", ""),
    ("[[a/Ann Heron]]", "a/Ann Heron.md:0", "**Profile**", ""),
    ("[[v1.2 (x)]]", "a/v1.2 (x).md:0", "**Version**", ""),
    ("[t](v1.2%20\\(x\\).md)", "a/v1.2 (x).md:0", "**Version**", ""),
    ("[[old]]", "old.md:0", "superseded by new.md", ""),
    ("[[Twin]]", "x/Twin.md:0", "several notes have this name", "ambiguous"),
    ("[[Nobody]]", "", "no such note", "missing"),
    ("[t](./none.md)", "", "no such note", "missing"),
    ("[t](./Profile)", "", "no such note", "missing"),
    ("[t](../../out.md)", "", "outside of the workspace", "outside"),
    ("![t](pic.png)", "", "no note", ""),
    ("`[[top]]`", "", None, ""),
    ("[t](https://example.org/top.md)", "", None, ""),
)


@pytest.fixture
def started(daemon, tmp_path):
    """Return a function that starts an editor in the folder of the notes."""
    root = daemon.add_notes(tmp_path / "notes", NOTES)
    (tmp_path / "notes/a/pic.png").touch()
    (tmp_path / "out.md").write_text("# Out\n\nsecret\n")
    daemon.call("sync", workspace=root)
    editors = []

    def start(*encodings, **options):
        editors.append(Editor(daemon, root, *encodings, **options))
        return editors[-1]

    yield start
    for one in editors:
        assert one.end() == 0


def test_each_way_to_write_a_link_is_followed_shown_and_checked(started):
    one = started("utf-32")
    text = "# Here\n\n" + "\n\n".join(row[0] for row in ROWS) + "\n\n[ref]: ../top.md\n"
    one.open("a/here.md", text)
    hints = {hint["range"]["start"]["line"]: hint["code"] for hint in one.hints("a/here.md")}
    found = []
    for written, _, says, _ in ROWS:
        line = text[: text.index(f"\n\n{written}\n\n") + 2].count("\n")
        column = written.index("[") + 3 if "[" in written[:2] else 4
        place = one.at("definition", "a/here.md", line, column)
        shown = one.at("hover", "a/here.md", line, column)
        value = shown and shown["contents"]["value"]
        where = (
            place and f"{unquote(place['uri'].rpartition('/notes/')[2])}:{place['range']['start']['line']}"
        )
        assert "secret" not in (value or "")
        found.append(
            (written, where or "", says if says and says in (value or "") else value, hints.get(line, ""))
        )
    assert found == list(ROWS)


@pytest.mark.parametrize("words", ['"no such phrase"', "-cancer", "tag:absent", "since:", "[[ OR ("])
def test_what_a_query_would_read_is_text_in_a_paragraph(started, words):
    """Related notes, completion behind the brackets and the five links that are offered."""
    one = started()
    line = f"The risk of breast cancer by a mutation of a gene {words} "
    one.open("a/here.md", f"# Here\n\n{line}[[\n")
    related = places(one.at("implementation", "a/here.md", 2, 3))
    assert related[:2] == [("breast.md", 2), ("genes.md", 2)]
    assert "a/here.md" not in [path for path, _ in related]
    assert one.at("implementation", "a/here.md", 1, 0) == []
    item = one.items("a/here.md", 2, len(line) + 2)[0]
    assert (item["textEdit"]["newText"], item["detail"]) == ("breast]]", "≈ breast.md")
    assert item["filterText"] == ""
    one.change("a/here.md", 2, {"text": f"# Here\n\n{line}\n"})
    near = [title for title in one.actions("a/here.md", 2, 3) if title.startswith("Link to")]
    assert near[:2] == ["Link to Breast (breast.md)", "Link to Genes (genes.md)"]
    assert len(near) == 5


def test_a_page_of_hits_is_named_where_the_editor_cannot_show_it(started):
    one = started()
    answer = one.ask(
        "workspace/executeCommand", command="memd.search", arguments=[{"query": "breast -genes"}]
    )
    assert [hit["path"] for hit in answer["hits"]] == ["breast.md"]
    while not one.told or one.told[-1]["method"] != "window/showMessage":
        one.hear()
    assert one.told[-1]["params"]["message"].endswith(answer["page"].removeprefix("file://"))
    assert "(file://" in Path(answer["page"].removeprefix("file://")).read_text()


def test_a_link_of_an_open_note_counts_once_and_its_own_not_at_all(started, daemon):
    """In references and in the number at the title, as it is saved and as it is changed."""
    one = started(initializationOptions={"inlayHints": True})
    Path(one.root, "a/here.md").write_text("# Here\n\n[[top]] [[here]] [[#Here]]\n")
    Path(one.root, "top.md").write_text("# Top\n\n[[here]] [[top]]\n")
    daemon.call("sync", workspace=one.root)
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    for path, text, count in (
        ("a/here.md", "# Here\n\n[[top]] [[here]] [[#Here]]\n", 1),
        ("top.md", "# Top\n\n[[here]] [[top]]\n", 1),
        ("top.md", "# Top\n\n[[here]] [[top]] [[Here]]\n", 2),
    ):
        one.open(path, text)
        found = one.at("references", "a/here.md", 0, 0, context={"includeDeclaration": False})
        assert [place["uri"] for place in found] == [one.uri("top.md")] * count
        given = {"textDocument": {"uri": one.uri("a/here.md")}, "range": span}
        (hint,) = one.ask("textDocument/inlayHint", **given)
        assert hint["label"].startswith(f"{count} backlinks · ")


def test_all_links_to_a_hub_come_each_once(daemon, tmp_path):
    """They are more than one answer of memd has; two are on a line, one note is open and has another one."""
    notes = {f"{number}.md": "[[hub]] 😀 [h](hub.md)\n" * 100 for number in range(11)}
    root = daemon.add_notes(tmp_path / "notes", {"hub.md": "# Hub\n", **notes})
    one = Editor(daemon, root, initializationOptions={"inlayHints": True})
    one.open("hub.md", "# Hub\n")
    one.open("3.md", notes["3.md"] + "[[hub]]\n")
    found = one.at("references", "hub.md", 0, 0, context={"includeDeclaration": False})
    starts = [(place["uri"], *place["range"]["start"].values()) for place in found]
    every = [(one.uri(path), line, at) for path in notes for line in range(100) for at in (0, 11)]
    assert sorted(starts) == sorted([*every, (one.uri("3.md"), 100, 0)])
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    (hint,) = one.ask("textDocument/inlayHint", textDocument={"uri": one.uri("hub.md")}, range=span)
    assert hint["label"].startswith("2201 backlinks · ")
    assert one.end() == 0


def test_no_link_is_broken_before_the_first_index_has_ended(daemon, tmp_path):
    """The note is opened when the index has just begun."""
    count, root = 1_500, tmp_path / "notes"
    for number in range(count):
        note = root / f"{number % 20}/n{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# N{number}\n\nwords {number}\n")
    (root / "memory").mkdir()
    (root / "memory/config.toml").write_text('provider = "none"\n')
    one = Editor(daemon, str(root))
    daemon.call("workspace.add", path=str(root))
    one.open("log.md", "".join(f"[[n{number}]]\n" for number in range(0, count, 50)) + "[[none]]\n")
    assert [hint["message"] for hint in one.hints("log.md")] == ["none: no such note"]
    assert one.end() == 0


NAMES = ("a #1 100%25?.md", "50% sure?.md", "🐦 王.md", "e\u0301.md", 'it\'s "q" & <b>.md', "a\u2028\fb.md")


def test_a_hostile_folder_is_served(daemon, tmp_path):
    """Odd names and line ends, a hub, an unreadable file, a way out, and files that vanish unseen."""
    notes = {name: f"# T{number}\n\nquay [[hub]]\n" for number, name in enumerate(NAMES)}
    to_all = [f"😀 [x]({quote(name)}) [[way]]\n" for name in NAMES]
    links = "".join(to_all[number % len(NAMES)] for number in range(3_000))
    notes["hub.md"] = f"# Hub\n\n{links}"
    notes["ends.md"] = "# Ends\n\none\u2028two\fthree\x85four [[hub]]\n\n## Last\n\nThe pier.\n"
    notes["gone.md"] = "# Gone\n\nThe lighthouse. [[hub]]\n"
    notes["shut.md"] = "# Shut\n\n[[hub]]\n"
    root = daemon.add_notes(tmp_path / "notes", notes)
    (tmp_path / "secret.md").write_text("# Secret\n\nlighthouse\n")
    Path(root, "way.md").symlink_to(tmp_path / "secret.md")
    daemon.call("sync", workspace=root)
    one = Editor(daemon, root, "utf-32", initializationOptions={"inlayHints": True})
    one.open("new.md", "".join(to_all) + "[[ends#Last]]\n")
    found = [one.at("definition", "new.md", number, 4) for number in range(len(NAMES))]
    assert [place and place["uri"] for place in found] == [one.uri(name) for name in NAMES]
    shown = [one.at("hover", "new.md", number, 4)["contents"]["value"] for number in range(len(NAMES))]
    assert [f"**T{number}**" in value for number, value in enumerate(shown)] == [True] * len(NAMES)
    assert "lighthouse" not in one.at("hover", "new.md", 0, len(to_all[0]) - 4)["contents"]["value"]
    assert one.at("definition", "new.md", len(NAMES), 3)["range"]["start"]["line"] == 4
    hits = one.ask("workspace/symbol", query="quay")
    assert {hit["location"]["uri"] for hit in hits} == {one.uri(name) for name in NAMES}
    Path(root, "shut.md").chmod(0)
    Path(root, "gone.md").unlink()
    asked = {"context": {"includeDeclaration": False}}
    one.open("hub.md", notes["hub.md"])
    found = {place["uri"] for place in one.at("references", "hub.md", 0, 0, **asked)}
    assert found - {one.uri("gone.md"), one.uri("shut.md")} == {one.uri(name) for name in (*NAMES, "ends.md")}
    (pier,) = one.ask("workspace/symbol", query="pier")
    assert pier["location"]["range"]["start"]["line"] == 6
    for hit in one.ask("workspace/symbol", query="lighthouse"):  # it may be indexed still
        assert hit["location"]["uri"] == one.uri("gone.md")
    for path, text, title, links in (
        *((name, notes[name], 0, 501) for name in NAMES),
        ("shut.md", notes["shut.md"], 0, 0),
        ("gone.md", "", 0, 0),
        ("mac.md", "---\ra: b\r---\r\r# 😀\rwords [[hub]]\r## Two\r", 4, 0),
        ("mixed.md", "one\r\n# 😀\rwords\r[[hub]]\n", 1, 0),
    ):
        one.open(path, text)
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        (hint,) = one.ask("textDocument/inlayHint", textDocument={"uri": one.uri(path)}, range=span)
        assert (hint["label"].partition(" ")[0], hint["position"]["line"]) == (str(links), title)
        assert hint["position"]["character"] == len(re.split("\r\n|\r|\n", text)[title])
    linked = one.ask("textDocument/documentLink", textDocument={"uri": one.uri("hub.md")})
    assert len(linked) >= 3_000
    one.change("hub.md", 2, {"text": notes["hub.md"]})
    assert {hint["message"] for hint in one.hints("hub.md")} == {"way: no such note"}
    Path(root, "shut.md").chmod(0o600)
    assert one.end() == 0
