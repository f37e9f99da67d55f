"""A folder that Obsidian keeps: what is a note is found by tags and aliases, what is none is passed by."""

import re
from pathlib import Path

import pytest
from daemon_process import Daemon, Workspace, folder_of, until

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

REPOSITORY = Path(exits.__file__).parents[1]
FILES = {
    "Herons.md": "---\naliases: [Ardea cinerea, Grey Bird]\n---\nIt waits. #project/alpha #Wetland\n",
    "Weir.md": "The weir was mended. #project\n",
    "Other.md": "Nothing here is of that. `#project` #projects\n",
    "Board.canvas": '{"nodes":[{"id":"1","type":"text","text":"heron #project"}],"edges":[]}',
    "attachments/heron.png": b"\x89PNG\r\n\x1a\n\0\0",
    "attachments/heron.pdf": b"%PDF-1.7\n\xff\xfe",
    ".obsidian/app.json": '{"heron": true}',
    ".obsidian/plugins/x/README.md": "A heron of a plugin. #project\n",
    ".trash/Deleted.md": "A heron that was thrown away. #project\n",
}


@pytest.fixture
def vault(daemon: Daemon, tmp_path: Path) -> Workspace:
    """A daemon with a vault."""
    return daemon.workspace(tmp_path / "vault", FILES)


def test_what_is_no_note_is_passed_by_in_peace(vault):
    known = vault.status()
    assert (known["sources"], known["skipped"], known["warnings"]) == (3, [], [])
    assert set(vault.found("heron", limit=99)) <= {"Herons.md", "Weir.md", "Other.md"}


def test_other_kinds_of_text_are_sources_where_the_settings_say_so(vault):
    """With the line that docs/daemon.md shows; each is found by its words and named by its lines."""
    [line] = re.findall(
        r"^sources = .*$", (REPOSITORY / "docs/daemon.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    texts = {
        "notes.txt": "Plain egrets stand here.\n",
        "todo.org": "* Egrets\n** TODO count them\n   DEADLINE: <2026-05-01>\n",
        "manual.rst": "Egrets\n======\n\n.. note:: they are white\n",
    }
    folder_of(Path(vault.root), texts | {"memory/config.toml": f"{line}\n"})
    until(lambda: set(vault.found("egrets", mode="keyword")) == set(texts))
    known = vault.status()
    assert (known["sources"], known["skipped"], known["warnings"]) == (6, [], [])


def test_templates_and_conflict_copies_are_named(vault):
    copy = "Weir (conflicted copy 2026-05-01).md"
    texts = {
        copy: "The weir was mended. The weir. #project\n",
        "Templates/Daily.md": "A template of the weir.\n",
    }
    folder_of(Path(vault.root), texts)
    vault.call("sync")
    assert "Templates/Daily.md" in vault.found("template")
    (Path(vault.root) / ".obsidian" / "templates.json").write_text('{"folder": "Templates"}')
    vault.call("index")
    assert "Templates/Daily.md" not in vault.found("template")
    why = vault.call("why", path="Templates/Daily.md", query="weir")
    assert (why["stage"], why["facts"]["reason"]) == ("not-a-source", "template")
    assert "by .obsidian/templates.json" in why["text"]
    assert vault.found("the weir was mended")[:2] == ["Weir.md", copy]
    page = vault.memctl("status").stdout
    assert "Templates/ (templates)" in page
    assert f"{copy} (of a sync conflict)" in page


def test_a_diary_of_the_vault_fades_and_what_else_is_named(vault):
    texts = {
        "Log/2020-01-02 Thursday.md": "An egret was seen.\n",
        "posts/2020-01-02-herons.md": "Why we call it an egret, and never a heron.\n",
    }
    folder_of(Path(vault.root), texts | {".obsidian/daily-notes.json": '{"folder": "Log"}'})
    vault.call("workspace.configure", settings={"decay": ["posts/"]})
    vault.call("sync")
    hits = vault.call("search", query="egret", explain=True)["hits"]
    reasons = {hit["path"]: hit["explanation"]["decay"]["fades"] for hit in hits}
    assert reasons == {"Log/2020-01-02 Thursday.md": "daily-notes", "posts/2020-01-02-herons.md": "pattern"}
    with pytest.raises(RpcError, match="decay"):
        vault.call("workspace.configure", settings={"decay": ["a//"]})
