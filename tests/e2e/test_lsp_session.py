"""A long session of a plain client of `memctl lsp`, held against a model of the folder."""

import random
from pathlib import Path

import pytest
from lsp_editor import Editor, places
from patience import PATIENCE

pytestmark = pytest.mark.usefixtures("shared_daemon")

PATHS = ["n0.md", "n1.md", "n2.md", "sub/n3.md", "sub/n4 é.md"]
STEPS = 250
LINES = (
    "",
    "plain words 😀 here",
    "王 [[{stem}]] end",
    "e\u0301 😀 [x]({url}) [[{stem}]]",
    "`[[{stem}]]` code",
)


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
def test_a_long_session_answers_as_its_model(daemon, tmp_path, seed):
    chance = random.Random(seed)
    folder = Folder(chance)
    root = daemon.add_notes(tmp_path / "notes", folder.disk)
    editor = Editor(daemon, root)

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
    assert editor.end() == 0
