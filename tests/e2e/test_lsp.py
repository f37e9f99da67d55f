"""`memctl lsp` with a plain client: single answers, each way to write a link, a session against a model."""

import random
import re
import signal
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from daemon_process import folder_of
from lsp_editor import Editor, places
from patience import PATIENCE
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
def editor(daemon, editors, tmp_path):
    return editors(daemon.add_notes(tmp_path / "notes", NOTES))


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


def test_a_name_that_is_offered_is_documented(editor):
    assert editor.start["capabilities"]["completionProvider"]["triggerCharacters"] == ["[", "(", "#", " "]
    editor.open("new.md", "See [[hero\n")
    documented = editor.ask("completionItem/resolve", **editor.items("new.md", 0, 10)[0])
    assert "waders" in documented["documentation"]["value"]


@pytest.mark.parametrize(
    ("text", "typed", "first"),
    [
        ("[[her|", "her", "Ann Heron]]"), ("[[her|]] x", "her", "Ann Heron"),
        ("[[annie |", "annie ", "Ann Heron|Annie]]"), ("😀 [[risk of cancer|", "risk of cancer", "genes]]"),
        ("[a](|", "", "Ann%20Heron.md)"), ("[a](gen|) x", "gen", "sub/genes.md"),
        ("[[genes#|]]", "", "Genes"), ("[a](sub/genes.md#the|)", "the", "The%20plan"),
        ("#peo|", "peo", "people"), ("See\n[[annie|]] x", "annie", "Ann Heron|Annie"),
        ("[[genes#pl|", "pl", "The plan]]"), ("---\ntags: [peo|\n---\n", "peo", "people"),
        ("---\nali|\n---\n", "ali", "aliases: "),
    ],
)  # fmt: skip
def test_what_editors_need_of_each_item_is_there(editor, text, typed, first):
    """Else they drop what is near in meaning, sort anew, ask no more, or write behind the cursor."""
    before, _, after = text.partition("|")
    editor.open("new.md", before + after + "\n")
    line, column = before.count("\n"), utf_16(before.rpartition("\n")[2])
    found = editor.at("completion", "new.md", line, column)
    assert found["isIncomplete"] is True
    items = found["items"]
    assert items[0]["textEdit"]["newText"] == first
    start, end = ({"line": line, "character": column - back} for back in (len(typed), 0))
    assert all(one["textEdit"]["range"] == {"start": start, "end": end} for one in items)
    assert {one["filterText"] for one in items} == {typed}
    assert [one["sortText"] for one in items] == [f"{rank:04}" for rank in range(len(items))]


@pytest.mark.parametrize(
    ("text", "is_code"),
    [
        ("```\n[[her|", True), ("~~~sh\nif [[ her| ]]; then\n~~~\n", True), ("`if [[ her|` 😀", True),
        ("    [[her|", True), ("- a\n\n      [[her|", True), ("```c\nx[a](gen|\n```", True),
        ("```\n#peo|\n```", True), ("<!-- [[her| -->", True), ("---\nb: '[[her|'\n---\n", False),
        ("```\n```\n[[her|", False), ("> - [[her|]]", False), ("😀 ![](gen|", False), ("> #peo|", False),
    ],
)  # fmt: skip
def test_nothing_is_completed_in_code(editor, text, is_code):
    """No link is read there: `[[ -f x ]]` is a shell's."""
    before, _, after = text.partition("|")
    editor.open("new.md", before + after)
    found = editor.items("new.md", before.count("\n"), utf_16(before.rpartition("\n")[2]))
    assert bool(found) != is_code


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


@pytest.mark.parametrize("path", ["other.md", "notes/not%FFutf-8.md"])
def test_a_file_outside_of_any_workspace_has_no_answers(editor, tmp_path, path):
    uri = f"file://{tmp_path}/{path}"
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": "[[genes]]"}
    editor.tell("textDocument/didOpen", textDocument=document)
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 4}}
    assert editor.ask("textDocument/definition", **place) is None
    assert editor.ask("textDocument/completion", **place) is None


def test_an_unknown_method_malformed_params_and_a_second_start_are_refused(editor):
    editor.send(id=900, method="textDocument/foldingRange", params={})
    assert editor.reply()["error"]["code"] == -32601
    editor.send(id=901, method="initialize", params={})
    assert editor.reply()["error"]["code"] == -32600
    editor.send(id=902, method="textDocument/hover", params={})
    assert editor.reply()["error"]["code"] == -32602


def test_ctrl_c_ends_a_server_that_waits_for_its_editor(editor, daemon):
    other = Editor(daemon, editor.root)
    other.process.send_signal(signal.SIGINT)
    assert other.process.wait() == 130
    other.process.stdin.close()
    other.process.stdout.close()


LSP_LINKS_NOTES = {
    "top.md": "---\ndate: 2024-03-05\n---\n# Top\n\nFirst words.\n\n## The plan\n\nSequence. ^blk\n",
    "a/here.md": "# Here\n",
    "a/Ann Heron.md": "---\naliases: [Annie]\n---\n# Profile\n\nShe likes waders.\n",
    "a/v1.2 (x).md": "+++\r\na = 1\r\n+++\r\n# Version\r\n",
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
    ("[t](v1.2%20\\(x\\).md)", "a/v1.2 (x).md:0", "---\n\n# Version", ""),
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
def started(daemon, editors, tmp_path):
    """Return a function that starts an editor in the folder of the notes."""
    root = daemon.add_notes(tmp_path / "notes", LSP_LINKS_NOTES)
    (tmp_path / "notes/a/pic.png").touch()
    (tmp_path / "out.md").write_text("# Out\n\nsecret\n")
    daemon.call("sync", workspace=root)
    return partial(editors, root)


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


def test_all_links_to_a_hub_come_each_once(daemon, editors, tmp_path):
    notes = {f"{number}.md": "[[hub]] 😀 [h](hub.md)\n" * 100 for number in range(11)}
    root = daemon.add_notes(tmp_path / "notes", {"hub.md": "# Hub\n", **notes})
    one = editors(root, initializationOptions={"inlayHints": True})
    one.open("hub.md", "# Hub\n")
    one.open("3.md", notes["3.md"] + "[[hub]]\n")
    found = one.at("references", "hub.md", 0, 0, context={"includeDeclaration": False})
    starts = [(place["uri"], *place["range"]["start"].values()) for place in found]
    every = [(one.uri(path), line, at) for path in notes for line in range(100) for at in (0, 11)]
    assert sorted(starts) == sorted([*every, (one.uri("3.md"), 100, 0)])
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    (hint,) = one.ask("textDocument/inlayHint", textDocument={"uri": one.uri("hub.md")}, range=span)
    assert hint["label"].startswith("2201 backlinks · ")


def test_no_link_is_broken_before_the_first_index_has_ended(daemon, editors, tmp_path):
    count = 500
    notes = {f"{n % 20}/n{n}.md": f"# N{n}\n\nwords {n}\n" for n in range(count)}
    root = folder_of(tmp_path / "notes", notes | {"memory/config.toml": 'provider = "none"\n'})
    one = editors(root)
    daemon.call("workspace.add", path=str(root))
    one.open("log.md", "".join(f"[[n{number}]]\n" for number in range(0, count, 20)) + "[[none]]\n")
    assert [hint["message"] for hint in one.hints("log.md")] == ["none: no such note"]


NAMES = ("a #1 100%25?.md", "50% sure?.md", "🐦 王.md", "e\u0301.md", 'it\'s "q" & <b>.md', "a\u2028\fb.md")


def test_a_hostile_folder_is_served(daemon, editors, tmp_path):
    """Odd names and line ends, a hub, an unreadable file, a way out, and files that vanish unseen."""
    notes = {name: f"# T{number}\n\nquay [[hub]]\n" for number, name in enumerate(NAMES)}
    to_all = [f"😀 [x]({quote(name)}) [[way]]\n" for name in NAMES]
    links = "".join(to_all[number % len(NAMES)] for number in range(1_200))
    notes["hub.md"] = f"# Hub\n\n{links}"
    notes["ends.md"] = "# Ends\n\none\u2028two\fthree\x85four [[hub]]\n\n## Last\n\nThe pier.\n"
    notes["gone.md"] = "# Gone\n\nThe lighthouse. [[hub]]\n"
    notes["shut.md"] = "# Shut\n\n[[hub]]\n"
    root = daemon.add_notes(tmp_path / "notes", notes)
    (tmp_path / "secret.md").write_text("# Secret\n\nlighthouse\n")
    Path(root, "way.md").symlink_to(tmp_path / "secret.md")
    daemon.call("sync", workspace=root)
    one = editors(root, "utf-32", initializationOptions={"inlayHints": True})
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
        *((name, notes[name], 0, 201) for name in NAMES),
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
    assert len(linked) >= 1_200  # more than one answer of memd has
    one.change("hub.md", 2, {"text": notes["hub.md"]})
    assert {hint["message"] for hint in one.hints("hub.md")} == {"way: no such note"}
    Path(root, "shut.md").chmod(0o600)


PATHS = ["n0.md", "n1.md", "n2.md", "sub/n3.md", "sub/n4 é.md"]
STEPS = 250
LINES = (
    "", "plain words 😀 here", "王 [[{stem}]] end", "e\u0301 😀 [x]({url}) [[{stem}]]", "`[[{stem}]]` code",
)  # fmt: skip


class Folder:
    """What the files and the editor's buffers have."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.disk = {path: "\n".join([f"# {path}", *self.lines(path, 6)]) for path in PATHS}
        self.buffers: dict[str, str] = {}
        self.version = 1

    def line(self, path: str) -> str:
        to = self.chance.choice(PATHS)
        up = "../" if path.startswith("sub/") else ""
        stem = to.rpartition("/")[2].removesuffix(".md")
        return self.chance.choice(LINES).format(stem=stem, url=f"{up}{to}".replace(" ", "%20"))

    def lines(self, path: str, count: int) -> list[str]:
        return [self.line(path) for _ in range(count)]

    def links(self, path: str, text: str) -> list[tuple[int, int, str]]:
        """Return line, column in characters and target of each link of a text."""
        found = []
        for number, line in enumerate(text.split("\n")):
            for to in PATHS:
                stem = to.rpartition("/")[2].removesuffix(".md")
                up = "../" if path.startswith("sub/") else ""
                for written in (f"[[{stem}]]", f"[x]({up}{to.replace(' ', '%20')})"):
                    at = line.find(written)
                    if at >= 0 and not line.startswith("`"):
                        found.append((number, at, to))
        return sorted(found)

    def backlinks(self, to: str) -> list[tuple[str, int]]:
        """Return path and line of each link from another note, as the editor has it."""
        texts = self.disk | self.buffers
        return sorted(
            (path, line)
            for path, text in texts.items()
            for line, _, target in self.links(path, text)
            if target == to and path != to
        )


def utf_16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_session_answers_as_its_model(daemon, editors, tmp_path, seed):
    chance = random.Random(seed)
    folder = Folder(chance)
    root = daemon.add_notes(tmp_path / "notes", folder.disk)
    editor = editors(root)

    def sync() -> None:
        with daemon.client() as client:
            client.call("sync", {"workspace": root}, timeout_s=60 * PATIENCE)

    def edit(path: str) -> None:
        lines = folder.buffers[path].split("\n")
        first = chance.randrange(1, len(lines))
        last = min(len(lines) - 1, first + chance.randrange(2))
        new = "\n".join(folder.lines(path, chance.randrange(3)))
        folder.buffers[path] = "\n".join([*lines[:first], *new.split("\n"), *lines[last + 1 :]])
        end = {"line": last, "character": utf_16(lines[last])}
        change = {"range": {"start": {"line": first, "character": 0}, "end": end}, "text": new}
        folder.version += 1
        editor.change(path, folder.version, change)

    for _ in range(STEPS):
        path = chance.choice(PATHS)
        step = chance.choice(
            ["open", "edit", "edit", "edit", "save", "close", "backlinks", "follow", "follow"]
        )
        if step == "open" and path not in folder.buffers:
            folder.buffers[path] = folder.disk[path]
            editor.open(path, folder.disk[path])
        elif path not in folder.buffers:
            continue
        elif step == "edit":
            edit(path)
        elif step == "save":
            folder.disk[path] = folder.buffers[path]
            Path(root, path).write_text(folder.disk[path])
            editor.tell("textDocument/didSave", textDocument={"uri": editor.uri(path)})
            sync()
        elif step == "close":
            del folder.buffers[path]
            editor.tell("textDocument/didClose", textDocument={"uri": editor.uri(path)})
        elif step == "backlinks":
            asked = {"context": {"includeDeclaration": False}}
            found = editor.at("references", path, 0, 0, **asked)
            expected = [
                (editor.uri(one).rpartition("/notes/")[2], line) for one, line in folder.backlinks(path)
            ]
            assert sorted(places(found)) == sorted(expected)
        elif links := folder.links(path, folder.buffers[path]):
            line, column, to = chance.choice(links)
            before = folder.buffers[path].split("\n")[line][: column + 2]
            found = editor.at("definition", path, line, utf_16(before))
            assert found["uri"] == editor.uri(to)
