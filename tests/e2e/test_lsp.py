"""`memctl lsp` with a plain client: each answer parses into the types of lsprotocol."""

import signal
from pathlib import Path

import pytest
from lsp_editor import Editor, places
from recorded_socket import Recorded

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "log.md": "# Log\n\nSee [[Ann Heron]] and [genes](sub/genes.md#the-plan).\n\n"
    "No [[Nobody]] 😀 [[genes]]\n",
    "Ann Heron.md": "---\naliases: [Annie]\ntags: [people]\n---\n# Profile\n\nShe likes waders.\n",
    "sub/genes.md": "# Genes\n\nMutations of a gene raise the risk of cancer.\n\n## The plan\n\nSequence.\n",
    "old.md": "# Old plan\n\nAbout [[genes#The plan]].\n",
}  # fmt: skip


@pytest.fixture
def editor(daemon, tmp_path):
    root = daemon.add_notes(tmp_path / "notes", NOTES)
    daemon.call("index", workspace=root)
    one = Editor(daemon, root)
    yield one
    assert one.end() == 0


def test_a_column_behind_an_emoji_counts_as_utf_16_without_agreement(editor):
    editor.open("log.md", NOTES["log.md"])
    assert editor.start["capabilities"]["positionEncoding"] == "utf-16"
    assert places([editor.at("definition", "log.md", 4, 26)]) == [("sub/genes.md", 0)]
    assert editor.at("definition", "log.md", 4, 16) is None


def test_backlinks_are_those_of_the_index_and_of_open_documents(editor):
    editor.open("log.md", "# Log\n\nNothing here yet but [[genes]].\n")
    editor.open("sub/genes.md", NOTES["sub/genes.md"])
    asked = {"context": {"includeDeclaration": False}}
    assert places(editor.at("references", "sub/genes.md", 0, 0, **asked)) == [("old.md", 2), ("log.md", 2)]
    assert places(editor.at("references", "sub/genes.md", 4, 4, **asked)) == [("old.md", 2)]
    found = editor.at("references", "sub/genes.md", 4, 4, **asked)[0]["range"]
    assert (found["start"]["character"], found["end"]["character"]) == (6, 24)


def test_an_answer_asks_the_daemon_for_each_thing_once(daemon, tmp_path, monkeypatch):
    root = daemon.add_notes(tmp_path / "notes", NOTES)
    with Recorded(daemon.socket) as recorded:
        monkeypatch.setitem(daemon.environment, "MEMD_SOCKET", str(recorded.path))
        editor = Editor(daemon, root, initializationOptions={"diagnostics": False})
        editor.open("log.md", NOTES["log.md"])
        editor.open("sub/genes.md", NOTES["sub/genes.md"])
        assert editor.at("references", "sub/genes.md", 0, 0, context={"includeDeclaration": False})
        assert editor.at("hover", "log.md", 2, 8)
        assert editor.end() == 0
    asked = [frame[2] for one in recorded.exchanges for frame in one.asked if frame[2] != "memd.hello"]
    assert asked == ["names", "outline", "links", "outline", "names", "get"]


def test_a_name_is_completed_and_closed_once(editor):
    editor.open("new.md", "See [[hero\nand [[annie]]\n")
    found = editor.items("new.md", 0, 10)
    assert found[0]["textEdit"] == {
        "range": {"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 10}},
        "newText": "Ann Heron]]",
    }
    assert found[0]["filterText"] == "hero"
    assert editor.at("completion", "new.md", 0, 10)["isIncomplete"]
    assert editor.start["capabilities"]["completionProvider"]["triggerCharacters"] == ["[", "(", "#", " "]
    assert [one["sortText"] for one in found] == sorted(one["sortText"] for one in found)
    assert editor.items("new.md", 1, 11)[0]["textEdit"]["newText"] == "Ann Heron|Annie"
    documented = editor.ask("completionItem/resolve", **found[0])
    assert "waders" in documented["documentation"]["value"]


def test_paths_headings_tags_keys_and_values_are_completed(editor):
    editor.open("sub/new.md", "---\ntags: [peo\nali\n---\n[a](Ann\n[[genes#pl\n#peo\n")
    assert [one["textEdit"]["newText"] for one in editor.items("sub/new.md", 4, 7)] == ["../Ann%20Heron.md)"]
    assert [one["textEdit"]["newText"] for one in editor.items("sub/new.md", 5, 10)] == ["The plan]]"]
    assert [one["label"] for one in editor.items("sub/new.md", 6, 4)] == ["people"]
    assert [one["label"] for one in editor.items("sub/new.md", 1, 10)] == ["people"]
    assert [one["textEdit"]["newText"] for one in editor.items("sub/new.md", 2, 3)] == ["aliases: "]


@pytest.mark.parametrize(
    ("line", "typed", "first"),
    [
        ("[[her|", "her", "Ann Heron]]"),
        ("[[her|]] x", "her", "Ann Heron"),
        ("[[annie |", "annie ", "Ann Heron|Annie]]"),
        ("😀 [[risk of cancer|", "risk of cancer", "genes]]"),
        ("[a](|", "", "Ann%20Heron.md)"),
        ("[a](gen|) x", "gen", "sub/genes.md"),
        ("[[genes#|]]", "", "Genes"),
        ("[a](sub/genes.md#the|)", "the", "The%20plan"),
        ("#peo|", "peo", "people"),
    ],
)
def test_what_editors_need_of_each_item_is_there(editor, line, typed, first):
    """Else they drop what is near in meaning, sort anew, ask no more, or write behind the cursor."""
    before, _, after = line.partition("|")
    editor.open("new.md", before + after + "\n")
    column = len(before.encode("utf-16-le")) // 2
    found = editor.at("completion", "new.md", 0, column)
    assert found["isIncomplete"] is True
    items = found["items"]
    assert items[0]["textEdit"]["newText"] == first
    start, end = ({"line": 0, "character": column - back} for back in (len(typed), 0))
    assert all(one["textEdit"]["range"] == {"start": start, "end": end} for one in items)
    assert {one["filterText"] for one in items} == {typed}
    assert [one["sortText"] for one in items] == [f"{rank:04}" for rank in range(len(items))]


def test_each_answer_is_the_same_after_a_restart_of_the_daemon(editor, daemon):
    """Each of them may be the first that the new daemon is asked for."""
    editor.open("log.md", NOTES["log.md"])
    editor.open("new.md", "[[ann\n")
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    for method, path, line, column, more in (
        ("definition", "log.md", 2, 8, {}),
        ("references", "log.md", 2, 28, {"context": {"includeDeclaration": False}}),
        ("completion", "new.md", 0, 5, {}),
        ("inlayHint", "log.md", 0, 0, {"range": whole}),
        ("rename", "log.md", 0, 3, {"newName": "Diary"}),
        ("symbol", "log.md", 0, 0, {"query": "waders"}),
    ):
        asked = f"{'workspace' if method == 'symbol' else 'textDocument'}/{method}"
        before = editor.ask(asked, **editor.place(path, line, column), **more)
        daemon.stop()
        daemon.start()
        assert before
        assert editor.ask(asked, **editor.place(path, line, column), **more) == before


@pytest.mark.parametrize("is_anew", [False, True])
def test_what_changes_while_no_daemon_runs_is_known_to_the_next_one(editor, daemon, is_anew):
    """Also if its index is another one, which counts its changes from the begin."""
    editor.open("log.md", NOTES["log.md"])
    editor.open("new.md", "[[bri\n[[genes\n")
    assert editor.hints("log.md")
    daemon.stop()
    Path(editor.root, "Brigid.md").write_text("# Brigid\n\n[[log]]\n")
    Path(editor.root, "sub/genes.md").unlink()
    for index in daemon.state.glob("*/index.db*") if is_anew else ():
        index.unlink()
    daemon.start()
    daemon.call("index", workspace=editor.root)
    assert places(editor.at("references", "log.md", 0, 0, context={"includeDeclaration": False})) == [
        ("Brigid.md", 2)
    ]
    assert [one["label"] for one in editor.items("new.md", 0, 5)] == ["Brigid"]
    assert editor.at("definition", "log.md", 2, 28) is None
    editor.tell("textDocument/didSave", textDocument={"uri": editor.uri("log.md")})
    said = [hint["message"] for hint in editor.hints("log.md")]
    assert "genes: no such note" in said


def test_a_file_outside_of_any_workspace_has_no_answers(editor, tmp_path):
    uri = f"file://{tmp_path}/other.md"
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": "[[genes]]"}
    editor.tell("textDocument/didOpen", textDocument=document)
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 4}}
    assert editor.ask("textDocument/definition", **place) is None
    assert editor.ask("textDocument/completion", **place) is None


def test_an_unknown_method_and_one_before_the_start_are_refused(editor):
    editor.send(id=900, method="textDocument/foldingRange", params={})
    assert editor.reply()["error"]["code"] == -32601
    editor.send(id=901, method="initialize", params={})
    assert editor.reply()["error"]["code"] == -32600


def test_ctrl_c_ends_a_server_that_waits_for_its_editor(editor, daemon):
    other = Editor(daemon, editor.root)
    other.process.send_signal(signal.SIGINT)
    assert other.process.wait() == 130
    other.process.stdin.close()
    other.process.stdout.close()
