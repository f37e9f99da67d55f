"""Workspace symbols, settings, document links and hints of `memctl lsp`, also by the editor's name."""

import re
from functools import partial
from pathlib import Path

import pytest
from lsp_editor import ABLE, Editor, places

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "a/Same.md": "# One\n\nThe weir was mended. ![pic](pic.png)\n",
    "b/Same.md": "# Two\n\nSee [one](../a/Same.md), [it](../a/Same.md) and [[Solo]].\n",
    "Solo.md": "---\naliases: [Alone]\ntags: [water]\n---\n# Solo\n\n"
    "## A weir in 😀 spring\n\nThe weir broke.\n",
}


@pytest.fixture
def editor(daemon, editors, tmp_path):
    """Return a function that starts an editor, whose options go into `initialize`."""
    return partial(editors, daemon.add_notes(tmp_path / "notes", NOTES), able=ABLE)


def test_a_note_that_is_nearly_another_one_is_hinted_at_when_it_is_opened_or_saved(sample):
    one = Editor(sample.daemon, sample.root, "utf-16")
    one.open("copy.md", Path(sample.root, "recipes/kimchi.md").read_text().replace("the", "a", 1))
    [hint] = one.hints("copy.md")
    assert (hint["code"], hint["message"]) == ("near-duplicate", "nearly the same as recipes/kimchi.md")
    one.change("copy.md", 2, {"text": "# Another\n\nCabbage and salt are put into jars.\n"})
    assert one.hints("copy.md")[0]["code"] == "near-duplicate"
    one.tell("textDocument/didSave", textDocument={"uri": one.uri("copy.md")})
    assert one.hints("copy.md") == []
    assert one.end() == 0


def test_workspace_symbols_are_a_live_search_with_operators_best_first(editor):
    one = editor("utf-16")
    found = one.ask("workspace/symbol", query="weir tag:water")
    assert {path for path, _ in places([hit["location"] for hit in found])} == {"Solo.md"}
    best = one.ask("workspace/symbol", query="weir mended")[0]
    assert (best["name"], best["containerName"]) == ("The weir was mended. ![pic](pic.png)", "a/Same.md")
    assert best["location"]["range"] == {
        "start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 36},
    }  # fmt: skip
    scores = [hit["score"] for hit in one.ask("workspace/symbol", query="weir")]
    assert len(scores) > 1
    assert scores == sorted(scores, reverse=True)
    assert one.ask("workspace/symbol", query="since:") == []
    assert len(one.ask("workspace/symbol", query="")) == 3


@pytest.mark.parametrize(
    ("name", "settings", "is_by_name"),
    [
        ("Visual Studio Code", {}, True), ("Code - OSS", {}, True), ("Zed", {}, True),
        ("Sublime Text LSP", {}, True), ("Neovim", {}, False), ("Neovim", {"symbols": "names"}, True),
        ("Zed", {"symbols": "search"}, False),
    ],
)  # fmt: skip
def test_an_editor_that_filters_by_name_gets_names(editor, name, settings, is_by_name):
    one = editor(clientInfo={"name": name}, initializationOptions=settings)
    names = [hit["name"] for hit in one.ask("workspace/symbol", query="weir")]
    assert (names == ["A weir in 😀 spring"]) == is_by_name
    assert ("Alone" in [hit["name"] for hit in one.ask("workspace/symbol", query="alo")]) == is_by_name


def test_what_vs_codes_own_markdown_gives_is_off_there(editor):
    for name in ("Visual Studio Code - Insiders", "VSCodium", "Code - OSS", "Cursor"):
        given = editor(clientInfo={"name": name}).start["capabilities"]
        assert {"documentSymbolProvider", "documentLinkProvider"} & given.keys() == set()
    again = editor(clientInfo={"name": "Visual Studio Code"}, initializationOptions={"documentLinks": True})
    assert "documentLinkProvider" in again.start["capabilities"]
    assert "documentSymbolProvider" in editor().start["capabilities"]


def test_links_are_inserted_as_the_notes_write_them_or_as_is_set(editor):
    """Two links of the notes are Markdown's, one is a wiki link; a name that two notes have is no link."""
    one = editor()
    text = "# New\n\n[[alone]]\n[[two\n"
    for settings, alone, two in (
        ({}, "[Alone](../Solo.md)", "[Same](../b/Same.md)"),
        ({"links": "wiki"}, "Solo|Alone", "b/Same]]"),
        ({"links": "wiki-path"}, "Solo|Alone", "b/Same]]"),
    ):
        one.tell("workspace/didChangeConfiguration", settings=settings)
        one.open("c/new.md", text)
        item = one.items("c/new.md", 2, 7)[0]
        assert item["textEdit"]["newText"] == alone
        assert item["filterText"] == ("alone" if settings else "[[alone")
        gone = [edit["range"]["end"]["character"] for edit in item.get("additionalTextEdits", [])]
        assert gone == ([] if settings else [9])
        assert one.items("c/new.md", 3, 5)[0]["textEdit"]["newText"] == two


def test_notes_of_several_workspaces_are_served_at_once(editor, daemon, tmp_path):
    other = daemon.add_notes(
        tmp_path / "other", {"x.md": "# X\n\n[[y]] and [[Solo]]\n", "y.md": "# Y\n\nThe weir.\n"}
    )
    one = editor(workspaceFolders=[{"uri": f"file://{other}", "name": "other"}])
    one.open("b/Same.md", NOTES["b/Same.md"])
    one.tell(
        "textDocument/didOpen",
        textDocument={"uri": f"file://{other}/x.md", "languageId": "markdown", "version": 1,
                      "text": "# X\n\n[[y]] and [[Solo]]\n"},
    )  # fmt: skip
    for character, expected in ((2, f"file://{other}/y.md"), (13, None)):
        place = {
            "textDocument": {"uri": f"file://{other}/x.md"},
            "position": {"line": 2, "character": character},
        }
        found = one.ask("textDocument/definition", **place)
        assert (found and found["uri"]) == expected
    found = one.ask("workspace/symbol", query="weir")
    assert {hit["location"]["uri"].startswith(f"file://{other}/") for hit in found} == {True, False}


@pytest.mark.parametrize(
    "way",
    ["notes/b/Same.md", "notes/./b/Same.md", "notes/a/../b/Same.md", "/notes//b/Same.md", "whole/b/Same.md",
     "part/Same.md", "alone.md"],
)  # fmt: skip
def test_a_note_is_the_same_by_each_way_to_its_file(editor, tmp_path, way):
    one = editor(
        workspaceFolders=[{"uri": f"file://{tmp_path}/{name}", "name": "x"} for name in ("notes", "whole")]
    )
    for link, to in (("whole", "notes"), ("part", "notes/b"), ("alone.md", "notes/b/Same.md")):
        (tmp_path / link).symlink_to(tmp_path / to)
    assert len(one.ask("workspace/symbol", query="weir broke")) == 2, "one of each note"
    uri = f"file://{tmp_path}/{way}"
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": NOTES["b/Same.md"]}
    one.tell("textDocument/didOpen", textDocument=document)
    place = {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 8}}
    assert one.ask("textDocument/definition", **place)["uri"].endswith("/a/Same.md")
    found = one.ask("textDocument/references", **place, context={"includeDeclaration": False})
    assert [hit["uri"] for hit in found] == [uri, uri]
    if way != "alone.md":
        foreign = {"oldUri": f"file://{tmp_path}/x.md", "newUri": f"file://{tmp_path}/y.md"}
        moved = {"oldUri": uri, "newUri": uri.replace("Same", "deep/Same")}
        found = one.ask("workspace/willRenameFiles", files=[foreign, moved])["documentChanges"]
        new = [edit["newText"] for change in found for edit in change["edits"]]
        assert new == ["../../a/Same.md", "../../a/Same.md"]
        assert one.ask("workspace/willRenameFiles", files=[foreign]) is None
    assert one.ask("workspace/willRenameFiles", files=[]) is None


def test_folders_are_served_from_when_they_are_added_to_when_they_are_removed(editor, daemon, tmp_path):
    """A note that is open in one keeps it; one that was open before `memctl init` gets its hints with it.

    That holds within another workspace, too.
    """
    other, late = tmp_path / "other", tmp_path / "late"
    daemon.add_notes(other, {"sub/y.md": "# Y\n\nThe weir.\n"})
    late.mkdir()
    one = editor()

    def change(added=(), removed=()):
        event = {"added": added, "removed": removed}
        event = {what: [{"uri": f"file://{path}", "name": "x"} for path in event[what]] for what in event}
        one.tell("workspace/didChangeWorkspaceFolders", event=event)

    def found():
        uris = [hit["location"]["uri"] for hit in one.ask("workspace/symbol", query="weir")]
        return {uri.removeprefix(f"file://{tmp_path}/").partition("/")[0] for uri in uris}

    def tell(method, path, **more):
        document = {"uri": f"file://{tmp_path}/{path}", "languageId": "markdown", "version": 1, **more}
        one.tell(f"textDocument/{method}", textDocument=document)

    def hints(path):
        while (told := one.hear()["params"])["uri"] != f"file://{tmp_path}/{path}":
            pass
        return [hint["message"] for hint in told["diagnostics"]]

    assert found() == {"notes"}
    change([other / "sub"])
    assert found() == {"notes", "other"}
    tell("didOpen", "other/new.md", text="[[none]] [[y]]\n")
    assert hints("other/new.md") == ["none: no such note"]
    change(removed=[other / "sub", one.root])
    assert hints("other/new.md") == ["none: no such note"]
    assert found() == {"other"}
    tell("didClose", "other/new.md")
    assert hints("other/new.md") == []
    tell("didOpen", "late/new.md", text="[[none]] [[y]]\n")
    assert found() == set()
    daemon.add_notes(late, {"y.md": "# Y\n\nThe weir.\n"})
    change([late, one.root])
    assert hints("late/new.md") == ["none: no such note"]
    assert found() == {"notes", "late"}
    (late / "in").mkdir()
    (late / "in/q.md").write_text("# Q\n")
    daemon.call("sync", workspace=str(late))
    tell("didOpen", "late/in/new.md", text="[[q]]\n")
    assert hints("late/in/new.md") == []
    daemon.call("workspace.add", path=str(late / "in"), nested=True)
    daemon.call("sync", workspace=str(late))
    tell("didSave", "late/in/new.md")
    assert hints("late/in/new.md") == []


@pytest.mark.parametrize(("words", "count"), [("plain words go on ", 33_000), ("🐦 🐦🐦🐦🐦🐦🐦", 38_000)])
def test_of_a_note_that_is_too_long_the_begin_is_served(editor, daemon, words, count):
    """It has more characters than memd takes, or more bytes than a request may have.

    Its end is as it was saved: no link to a heading there is broken.
    """
    one = editor()
    lines = "\n".join(words * 100 for _ in range(count // 100))
    text = f"# Long\n\n## Near\n\n[[Solo]] [[#Far]]\n\n{lines}\n\n## Far\n\n[[none]]\n"
    Path(one.root, "long.md").write_text(text)
    daemon.call("sync", workspace=one.root)
    one.open("long.md", text)
    one.open("new.md", "[[long#Near]] [[long#Far]] [[long#none]]\n")
    assert [hint["message"] for hint in one.hints("new.md")] == ["long#none: no such heading"]
    one.tell("textDocument/didSave", textDocument={"uri": one.uri("long.md")})
    (hint,) = one.hints("long.md")
    assert hint["code"] == "too-long"
    assert re.fullmatch(
        r"this note is too long: its links and headings are read to line \d{3} only", hint["message"]
    )
    for version, column in ((2, 4), (3, 5)):
        place = {"line": 4, "character": 0}
        assert places([one.at("definition", "long.md", 4, column)]) == [("Solo.md", 0)]
        assert "The weir broke." in one.at("hover", "long.md", 4, column)["contents"]["value"]
        one.change("long.md", version, {"range": {"start": place, "end": place}, "text": "x"})
    (top,) = one.ask("textDocument/documentSymbol", textDocument={"uri": one.uri("long.md")})
    assert [top["name"], *(child["name"] for child in top["children"])] == ["Long", "Near"]
    assert one.at("definition", "new.md", 0, 4)["range"]["start"]["line"] == 2
    assert one.at("definition", "new.md", 0, 18)["range"]["start"]["line"] == count // 100 + 7
    assert "too long" in one.refused("textDocument/rename", **one.place("long.md", 2, 4), newName="Here")


def test_lines_that_a_carriage_return_ends_are_counted_as_the_editor_does(editor, daemon, tmp_path):
    (tmp_path / "notes/mac.md").write_bytes(
        "# Mac\r\rone\rtwo 😀 [[Solo]]\n\n## There\n\nThe quay.\n".encode()
    )
    (tmp_path / "notes/first.md").write_bytes("# First\rtwo 😀 [[Solo]]\r\r## There\rThe pier.\r".encode())
    daemon.call("sync", workspace=str(tmp_path / "notes"))
    one = editor("utf-8")
    one.open("Solo.md", "[[mac#There]] [[first#There]]\n")
    for column, line in ((3, 5), (17, 3)):
        assert one.at("definition", "Solo.md", 0, column)["range"]["start"] == {"line": line, "character": 0}
    links = one.at("references", "Solo.md", 9, 0, context={"includeDeclaration": False})
    starts = {places([link])[0][0]: link["range"]["start"] for link in links}
    assert starts["mac.md"] == {"line": 3, "character": 9}
    assert starts["first.md"] == {"line": 1, "character": 9}
    found = one.ask("workspace/symbol", query="pier")[0]
    assert (found["name"], found["location"]["range"]["start"]["line"]) == ("The pier.", 4)
    one.open("first.md", (tmp_path / "notes/first.md").read_bytes().decode())
    (top,) = one.ask("textDocument/documentSymbol", textDocument={"uri": one.uri("first.md")})
    assert top["children"][0]["selectionRange"]["start"] == {"line": 3, "character": 0}
    assert one.at("prepareRename", "first.md", 3, 4)["placeholder"] == "There"


def test_document_links_lead_to_notes_and_files(editor, tmp_path):
    (tmp_path / "notes/a/pic.png").write_bytes(b"")
    one = editor()
    one.open("a/Same.md", NOTES["a/Same.md"])
    one.open("b/Same.md", NOTES["b/Same.md"] + "[[none]]\n")
    for path, expected in (
        ("a/Same.md", ["a/pic.png"]),
        ("b/Same.md", ["a/Same.md", "a/Same.md", "Solo.md"]),
    ):
        found = one.ask("textDocument/documentLink", textDocument={"uri": one.uri(path)})
        assert [link["target"] for link in found] == [one.uri(to) for to in expected]


def test_numbers_at_the_title_are_shown_on_request(editor):
    assert "inlayHintProvider" not in editor().start["capabilities"]
    assert editor(initializationOptions={"inlayHints": True}).start["capabilities"]["inlayHintProvider"]


def test_a_request_that_is_cancelled_before_its_turn_is_not_answered_with_a_result(editor):
    """The reader is ahead: while one request is answered, the ones behind it can be cancelled."""
    one = editor()
    one.open("Solo.md", NOTES["Solo.md"])
    for number in range(500, 560):
        one.send(id=number, method="workspace/symbol", params={"query": "weir"})
    one.tell("$/cancelRequest", id=559)
    answers = [one.reply() for _ in range(500, 560)]
    assert answers[-1]["id"] == 559
    assert answers[-1]["error"]["code"] == -32800
    assert all("result" in answer for answer in answers[:-1])


@pytest.mark.parametrize("of", [{}, {"id": None}, {"id": {}}, {"id": [1]}])
def test_a_cancellation_of_nothing_is_passed_over(editor, of):
    one = editor()
    one.tell("$/cancelRequest", **of)
    assert one.ask("workspace/symbol", query="weir")
