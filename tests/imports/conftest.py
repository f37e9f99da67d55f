"""A workspace to import into, and session files made by hand."""

import json
import os
import time
from pathlib import Path

import pytest

from memd.imports import run
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines

FIXTURES = Path(__file__).parent / "fixtures"


class Workspace:
    """A folder with memory/, and imports into it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notes"
        (self.root / "memory").mkdir(parents=True, exist_ok=True)
        self.home = folder

    def imports(self, client, *paths, **options):
        order = run.Order(self.root, client, tuple(paths), **options)
        return run.report(order, run.run(order, run.sources(order), lambda *_: None))

    def pages(self):
        """Return path below memory/archives → text of all that stands there."""
        top = self.root / "memory" / "archives"
        return {
            path.relative_to(top).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(top.rglob("*"))
            if path.is_file() and path.name != ".imported"
        }

    def page(self):
        [text] = self.pages().values()
        return text

    def body(self):
        """Return what stands below the front matter of the only page."""
        return self.page().partition("\n---\n")[2]

    def front(self):
        """Return the front matter of the only page, as memd reads it."""
        return read_front_matter(split_lines(self.page())).values

    def session(self, *records, client="claude-code", name="5e55105e-0000-4000-8000-000000000001.jsonl"):
        """Write a session file of these records, and return its path."""
        path = self.home / client / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (one if isinstance(one, str) else json.dumps(one) for one in records)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "TZ", "Europe/Berlin")
    time.tzset()
    yield Workspace(tmp_path)
    monkeypatch.undo()
    time.tzset()


def typed(text, **more):
    """Return a record of what a person said to Claude Code."""
    record = {"type": "user", "timestamp": "2026-05-01T08:00:00.000Z", "cwd": "/home/ada/project"}
    return record | {"message": {"role": "user", "content": text}} | more


def answered(text, **more):
    """Return a record of what the model said to that."""
    record = {"type": "assistant", "timestamp": "2026-05-01T08:00:05.000Z"}
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    return record | {"message": {"role": "assistant", "model": "m", "content": content}} | more
