"""What `memctl lsp` offers to change, and what it says by itself: rename, code actions, commands, hints."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

import pytest
from lsp_editor import ABLE, Editor
from recorded_socket import Recorded

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "log.md": "# Log\n\nSee [[Ann Heron|Ann]] and [her](people/Ann%20Heron.md#old-habits), [[Nobody]].\n",
    "people/Ann Heron.md": "---\naliases: [Annie]\n---\n# Profile\n\n## Old habits ##\n\n"
    "[up](../log.md) waders [[#Old habits]]\n",
    "people/Bea.md": "---\nrelated: ['[[Ann Heron]]']\nsupersedes: people/Cai.md\n---\n# Bea\n\n"
    "[[people/Ann Heron#Old habits]] [[Annie]] [ref]\n\n[ref]: <Ann Heron.md>\n",
    "people/Cai.md": "# Cai\n\n```\n[[Ann Heron]]\n```\nKnows Annie well.\n",
    "win.md": "# Win\r\n\r\n王 😀 [[Ann Heron]] and\r\n[[people/Ann Heron]]\r\n",
    "genes.md": "# Genes\n\nMutations of a gene raise the risk of cancer.\n",
}  # fmt: skip


@pytest.fixture
def editor(daemon, editors, tmp_path):
    return editors(daemon.add_notes(tmp_path / "notes", NOTES), "utf-8", able=ABLE)


def offset(text, position, encoding="utf-8"):
    """Return the offset of a position, by encoding the line."""
    codec, size = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}[encoding]
    start = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))][position["line"]]
    line = re.match(r"[^\r\n]*", text[start:])[0].encode(codec)
    return start + len(line[: position["character"] * size].decode(codec))


def applied(edit, root, opened=(), encoding="utf-8"):
    """Make a workspace edit in the files, as an editor does; return the texts by path."""
    texts = {
        str(path.relative_to(root)): path.read_bytes().decode() for path in Path(root).rglob("*.md")
    } | dict(opened)
    for change in (edit or {}).get("documentChanges", ()):
        if "kind" in change:
            old, new = (unquote(urlsplit(change.get(key, "")).path) for key in ("oldUri", "newUri"))
            if change["kind"] == "create":
                texts[unquote(urlsplit(change["uri"]).path).removeprefix(f"{root}/")] = ""
            else:
                texts[new.removeprefix(f"{root}/")] = texts.pop(old.removeprefix(f"{root}/"))
            continue
        path = unquote(urlsplit(change["textDocument"]["uri"]).path).removeprefix(f"{root}/")
        text = before = texts[path]
        last = len(text)
        edits = [
            (*(offset(before, one["range"][end], encoding) for end in ("start", "end")), one["newText"])
            for one in change["edits"]
        ]
        for start, stop, new in sorted(edits, reverse=True):
            assert stop <= last, "edits overlap"
            text, last = text[:start] + new + text[stop:], start
        texts[path] = text
    return texts


def test_a_note_is_renamed_with_every_link_to_its_file(editor):
    editor.open("log.md", NOTES["log.md"])
    assert editor.at("prepareRename", "log.md", 2, 8)["placeholder"] == "Ann Heron"
    edit = editor.at("rename", "log.md", 2, 8, newName="Anna H")
    texts = applied(edit, editor.root)
    assert (
        texts["log.md"]
        == "# Log\n\nSee [[Anna H|Ann]] and [her](people/Anna%20H.md#old-habits), [[Nobody]].\n"
    )
    assert texts["people/Anna H.md"] == NOTES["people/Ann Heron.md"]
    assert texts["people/Bea.md"] == NOTES["people/Bea.md"].replace("Ann Heron", "Anna H")
    assert texts["people/Cai.md"] == NOTES["people/Cai.md"]
    assert texts["win.md"] == NOTES["win.md"].replace("Ann Heron", "Anna H")
    assert [one["textDocument"]["version"] for one in edit["documentChanges"][:1]] == [1]


def test_a_heading_is_renamed_with_every_link_to_it(editor):
    editor.open("people/Ann Heron.md", NOTES["people/Ann Heron.md"])
    found = editor.at("prepareRename", "people/Ann Heron.md", 5, 6)
    assert (found["placeholder"], found["range"]["end"]["character"]) == ("Old habits", 13)
    texts = applied(editor.at("rename", "people/Ann Heron.md", 5, 6, newName="New [habits]"), editor.root)
    assert "## New [habits] ##\n" in texts["people/Ann Heron.md"]
    assert "[[#New habits]]" in texts["people/Ann Heron.md"]
    assert "(people/Ann%20Heron.md#new-habits)" in texts["log.md"]
    assert "[[people/Ann Heron#New habits]]" in texts["people/Bea.md"]


def test_links_of_unsaved_buffers_follow_and_are_versioned(editor):
    text = "# New\n\nsaved nowhere: [[Ann Heron]]\n"
    editor.open("new.md", text)
    editor.change("new.md", 7, {"text": text})
    edit = editor.at("rename", "new.md", 2, 20, newName="Anna")
    assert {one["textDocument"]["version"] for one in edit["documentChanges"][:-1]} == {7, None}
    assert applied(edit, editor.root, {"new.md": text})["new.md"] == text.replace("Ann Heron", "Anna")


def test_a_heading_that_is_not_saved_is_what_links_to_it_mean(editor):
    heron = "new\n\n" + NOTES["people/Ann Heron.md"] + "\n## Fresh\u2028one\n"
    editor.open("people/Ann Heron.md", heron)
    text = "[[Ann Heron#Old habits]] [[Ann Heron#Fresh\u2028one]] [[Ann Heron#Gone]]\n"
    editor.open("new.md", text)
    assert [one["message"] for one in editor.hints("new.md")] == ["Ann Heron#Gone: no such heading"]
    for column, line in ((14, 7), (39, 11), (68, 0)):
        found = editor.at("definition", "new.md", 0, column)
        assert found["range"]["start"]["line"] == line
        said = editor.at("hover", "new.md", 0, column)["contents"]["value"]
        assert ("no such heading" in said) is (not line)
        if line:
            links = editor.at("references", "new.md", 0, column, context={"includeDeclaration": False})
            assert editor.uri("new.md") in [one["uri"] for one in links]
    edit = editor.at("rename", "new.md", 0, 39, newName="Later")
    texts = applied(edit, editor.root, {"new.md": text, "people/Ann Heron.md": heron})
    assert texts["new.md"] == text.replace("Fresh\u2028one", "Later")
    assert texts["people/Ann Heron.md"] == heron.replace("Fresh\u2028one", "Later")


def test_a_carriage_return_alone_ends_the_heading_that_is_renamed(editor):
    text = "# One\rstays 😀\r## Two\rstays\n"
    editor.open("mac.md", text)
    assert editor.at("prepareRename", "mac.md", 2, 4) is None
    (change,) = editor.at("rename", "mac.md", 0, 3, newName="New")["documentChanges"]
    (edit,) = change["edits"]
    assert editor.at("references", "mac.md", 0, 3, context={"includeDeclaration": False}) == []
    assert edit["range"] == {"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 5}}


def test_a_rename_is_refused_where_it_cannot_be_done(editor, editors):
    editor.open("log.md", NOTES["log.md"])
    assert editor.at("prepareRename", "log.md", 2, 1) is None
    place = editor.place("log.md", 2, 8)
    assert "nothing to rename" in editor.refused(
        "textDocument/rename", **editor.place("log.md", 2, 1), newName="x"
    )
    assert "is there already" in editor.refused("textDocument/rename", **place, newName="Bea")
    assert "no name" in editor.refused("textDocument/rename", **place, newName="../../x")
    assert "has no #" in editor.refused("textDocument/rename", **place, newName="Ann #2")
    other = editors(editor.root)
    other.open("log.md", NOTES["log.md"])
    assert "cannot rename files" in other.refused("textDocument/rename", **place, newName="Anna")


HOSTILE = {
    "hub.md": "# Hub\n\n- 😀 [b](box%20%231/50%25%20sure.md#the-%F0%9F%98%80-head)\n"
    "> [c](box%20%231/deep/it's%20\"q\".md)"
    " [[50% sure#The 😀 head|p]]\n> [over\n> lines](box%20%231/Cafe\u0301.md)\n\n"
    "1. [[Cafe\u0301]] [[deep/🐦]] ![i](box%20%231/deep/🐦.md)\n\n"
    "   [n](./box%20%231/deep/%F0%9F%90%A6.md 't')\n\n"
    "[s]: box%20%231/deep/it's%20%22q%22.md#none\n\n[s] [root](/box%20%231/plain.md) [e](box%20%231/plain)\n",
    "box #1/A (x) [y].md": "# Odd\n\n[up](../hub.md) [[hub]] [[#Odd]] [self](#odd)"
    " [me](A%20%28x%29%20%5By%5D.md)\n\n"
    "- 王 [s](plain.md) [e](deep/🐦.md) [[./plain]] [[../hub]]\n",
    "box #1/50% sure.md": "# Sure\n\n## The 😀 head\n\n[up](../hub.md#hub)"
    " ![p](../pic%20%231.png) [f](x.pdf) [o](../../o.md)\n",
    "box #1/Cafe\u0301.md": "---\nrelated: '[[50% sure]]'\n"
    "supersedes: box #1/deep/it's \"q\".md\n---\n# Café\n",
    "box #1/plain.md": "# Plain\n\n| a |\n|---|\n| [x](A%20\\(x\\)%20[y].md) [[🐦\\|bird]] |\n",
    "box #1/deep/it's \"q\".md": "# Q\n\n[up](../../hub.md) [[plain]] [t](🐦.md)\n\n"
    "[z]: ../Cafe%CC%81.md\n\n[z]\n",
    "box #1/deep/🐦.md": "# Bird\r\n\r\n[z](<../A (x) [y].md>)\r\n"
    "> > [r][a b]\r\n\r\n[a B]: ../50%25%20sure.md\r\n",
    "other/plain.md": "# Plain\n\n[[plain]] [[other/plain]] [p](../box%20%231/plain.md?x=1#plain)\n",
}  # fmt: skip


def test_after_a_move_every_link_means_what_it_meant(daemon, editors, tmp_path):
    """Folders and files up, down and into each other; the first note is open with an unsaved link."""
    root = daemon.add_notes(tmp_path / "notes", HOSTILE)
    Path(root, "pic #1.png").touch()
    Path(root, "box #1/x.pdf").touch()
    one = editors(root, "utf-16", able=ABLE)
    texts = HOSTILE | {"hub.md": HOSTILE["hub.md"] + "\n[[🐦]] unsaved\n"}
    one.open("hub.md", texts["hub.md"])
    daemon.call("sync", workspace=root)

    def meant(moves):
        found = {}
        for path, text in texts.items():
            links = daemon.call("outline", workspace=root, path=path, text=text)["links"]
            front = daemon.call("links", workspace=root, path=path, which="out", limit=1000)["links"]
            to = [
                (link["path"], link["line"], link["part"],
                 normpath(join(dirname(path), link["target"])) if link["why"] in {"file", "outside"} else "")
                for link in links
            ] + [(link["to"], 0, "", "") for link in front if link["line"] is None]  # fmt: skip
            found[moved(path, moves)] = [
                (moved(path, moves), line, part, moved(file, moves)) for path, line, part, file in to
            ]
        return found

    def moved(path, moves):
        for old, new in moves.items():
            if path and (path == old or path.startswith(f"{old}/")):
                return new + path.removeprefix(old)
        return path

    for moves in (
        {"box #1": "box #2 é"},
        {"box #2 é/deep": "deep"},
        {"deep/🐦.md": "🐦.md", "box #2 é/plain.md": "deep/plain.md"},
        {"box #2 é": "deep/x%20y"},
        {"deep/x%20y/50% sure.md": "A[1] (2).md"},
        {'deep/it\'s "q".md': "deep/<q>.md", "other": "zz"},
        {"deep/plain.md": "deep/Plain.md", "deep/x%20y/A (x) [y].md": "hub/y.md"},
    ):
        expected = meant(moves)
        files = [{"oldUri": one.uri(old), "newUri": one.uri(new)} for old, new in moves.items()]
        edit = one.ask("workspace/willRenameFiles", files=files)
        texts = {
            moved(path, moves): text for path, text in applied(edit, root, texts.items(), "utf-16").items()
        }
        for old, new in moves.items():
            Path(root, new).parent.mkdir(parents=True, exist_ok=True)
            Path(root, old).rename(Path(root, new))
        for path, text in texts.items():
            Path(root, path).write_bytes(text.encode())
        one.change("hub.md", 2, {"text": texts["hub.md"]})
        daemon.call("sync", workspace=root)
        assert meant({}) == expected


def test_hints_name_broken_links_and_superseded_notes_and_can_be_turned_off(editor):
    editor.open("log.md", NOTES["log.md"])
    (hint,) = editor.hints("log.md")
    assert (hint["code"], hint["severity"], hint["message"]) == ("missing", 4, "Nobody: no such note")
    editor.change("log.md", 2, {"text": "# Log\n\n[[Bea#none]] ./x.md [x](./x.md) [[Bea]]\n"})
    assert [one["message"] for one in editor.hints("log.md")] == [
        "Bea#none: no such heading",
        "./x.md: no such note",
    ]
    editor.open("people/Cai.md", NOTES["people/Cai.md"])
    (hint,) = editor.hints("people/Cai.md")
    assert (hint["code"], hint["message"]) == ("superseded", "superseded by people/Bea.md")
    editor.tell("workspace/didChangeConfiguration", settings={"memd": {"diagnostics": False}})
    assert editor.hints("log.md") == []


def test_what_supersedes_a_note_or_is_nearly_the_same_is_looked_up_when_it_is_saved(
    editor, daemon, monkeypatch
):
    with Recorded(daemon.socket) as recorded:
        monkeypatch.setitem(daemon.environment, "MEMD_SOCKET", str(recorded.path))
        one = Editor(daemon, editor.root)
        one.open("genes.md", NOTES["genes.md"])
        assert one.hints("genes.md") == []
        text = "---\nsupersedes: genes.md\n---\n# New\n"
        one.open("new.md", text)
        assert one.hints("new.md") == []
        for version, words in ((2, "More."), (3, "Still more.")):
            for path, before in (("new.md", text), ("genes.md", NOTES["genes.md"])):
                one.change(path, version, {"text": f"{before}\n{words}\n"})
                assert one.hints(path) == []
        Path(one.root, "new.md").write_text(text)
        daemon.call("sync", workspace=one.root)
        one.tell("textDocument/didSave", textDocument={"uri": one.uri("new.md")})
        assert [hint["message"] for hint in one.hints("genes.md")] == ["superseded by new.md"]
        assert one.hints("new.md") == []
        assert one.end() == 0
    asked = [frame for each in recorded.exchanges for frame in each.asked if frame[2] == "similar"]
    assert [frame[3][0]["path"] for frame in asked] == ["genes.md", "new.md", "new.md"]


def test_an_ambiguous_link_is_a_hint_that_names_where_it_leads(daemon, editors, tmp_path):
    """Also in a workspace whose folder is reached by a symbolic link."""
    notes = {"a/Same.md": "# One\n", "b/Same.md": "# Two\n", "log.md": "[[Same]]\n"}
    root = daemon.add_notes(tmp_path / "notes", notes)
    (tmp_path / "linked").symlink_to(root)
    one = editors(tmp_path / "linked")
    one.open("log.md", notes["log.md"])
    (hint,) = one.hints("log.md")
    assert hint["code"] == "ambiguous"
    assert hint["message"] == "Same: several notes have this name; this link leads to a/Same.md"


def test_an_unknown_setting_is_named(editor):
    editor.tell("workspace/didChangeConfiguration", settings={"memd": {"hints": False, "links": "html"}})
    said = [editor.hear()["params"]["message"] for _ in range(2)]
    assert "there is no setting 'hints'" in said[0]
    assert "links is one of auto, wiki" in said[1]


def test_a_broken_link_offers_the_note_that_is_missing(editor):
    editor.open("log.md", NOTES["log.md"])
    column = NOTES["log.md"].split("\n")[2].index("Nobody")
    action = editor.actions("log.md", 2, column)["Create Nobody.md"]
    assert applied(action["edit"], editor.root)["Nobody.md"] == "# Nobody\n"


def test_names_and_near_notes_become_links(editor):
    text = "# New\n\nAnnie told me.\n\nThe risk of breast cancer by a mutation of a gene.\n"
    editor.open("new.md", text)
    (title,) = (one for one in editor.actions("new.md", 2, 2) if one.startswith("Make"))
    assert title == "Make “Annie” a link to people/Ann Heron.md"
    (edit,) = editor.actions("new.md", 2, 2)[title]["edit"]["changes"][editor.uri("new.md")]
    assert edit["newText"] == "[[Ann Heron|Annie]]"
    near = [one for one in editor.actions("new.md", 4, 4) if one.startswith("Link to")]
    assert near[0] == "Link to Genes (genes.md)"
    (edit,) = editor.actions("new.md", 4, 4, 4, 8)[near[0]]["edit"]["changes"][editor.uri("new.md")]
    assert edit["newText"] == "[[genes|risk]]"


def test_actions_that_no_key_asked_for_are_quick_and_write_nothing(editor, daemon, monkeypatch):
    """An editor asks at each move of the cursor: no model is asked for what is near."""

    def files():
        every = [one for folder in (editor.root, daemon.runtime) for one in Path(folder).rglob("*.md")]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in every}

    options = {"diagnostics": False, "links": "wiki"}  # else the notes are asked how they write links
    text = "# New\n\nAnnie told me of a gene. [[none]]\n"
    with Recorded(daemon.socket) as recorded:
        monkeypatch.setitem(daemon.environment, "MEMD_SOCKET", str(recorded.path))
        one = Editor(daemon, editor.root, able=ABLE, initializationOptions=options)
        one.open("new.md", text)
        before = files()
        mended, missing = (one.actions("new.md", 2, column, triggerKind=2) for column in (2, 28))
        of_selected = [one.actions("new.md", 2, 0, 2, 10, triggerKind=kind) for kind in (2, 1)]
        assert one.end() == 0
    assert files() == before
    assert list(mended) == ["Make “Annie” a link to people/Ann Heron.md"]
    assert list(missing) == ["Create none.md"]
    asked = [frame[2] for each in recorded.exchanges for frame in each.asked if frame[2] != "memd.hello"]
    assert asked == ["names", "outline", "names", "names", "names", "similar"]
    assert [any(name.startswith("Link to") for name in found) for found in of_selected] == [False, True]
    assert {"Search the notes by meaning for the selection"} <= of_selected[0].keys()


def test_a_selection_is_searched_by_meaning_on_a_page_of_links(editor):
    editor.open("new.md", "# New\n\nA mutation of a gene and cancer.\n")
    command = editor.actions("new.md", 2, 0, 2, 31)["Search the notes by meaning for the selection"][
        "command"
    ]
    answer = editor.ask(
        "workspace/executeCommand", command=command["command"], arguments=command["arguments"]
    )
    assert answer["hits"][0]["path"] == "genes.md"
    while not editor.told or editor.told[-1]["method"] != "window/showDocument":
        editor.hear()
    page = Path(urlsplit(answer["page"]).path)
    assert page.stat().st_mode & 0o777 == 0o600
    document = {"uri": answer["page"], "languageId": "markdown", "version": 1, "text": page.read_text()}
    editor.tell("textDocument/didOpen", textDocument=document)
    place = {"textDocument": {"uri": answer["page"]}, "position": {"line": 2, "character": 5}}
    assert editor.ask("textDocument/definition", **place)["uri"] == editor.uri("genes.md")


def test_commands_recall_relate_and_add(editor):
    editor.open("genes.md", NOTES["genes.md"])
    ask = lambda command, **given: editor.ask("workspace/executeCommand", command=command, arguments=[given])  # noqa: E731
    assert "Mutations" in ask("memd.recall", query="gene cancer")["text"]
    position = {"line": 2, "character": 0}
    assert "genes.md" not in [
        one["path"] for one in ask("memd.related", uri=editor.uri("genes.md"), position=position)["hits"]
    ]
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
    added = ask("memd.add", uri=editor.uri("genes.md"), range=whole)
    text = Path(editor.root, added["path"]).read_text()
    assert "title: Genes" in text
    assert "Mutations of a gene" in text
    assert "origin: human" in text
    assert "no text" in editor.refused("workspace/executeCommand", command="memd.add", arguments=[{}])
    assert "no command" in editor.refused("workspace/executeCommand", command="memd.x", arguments=[])
