"""What is a source is decided by gitignore rules, with memd's own on top."""

import os
import random
import time
from datetime import date

import pytest

from memd.errors import ConfigError
from memd.records import Source
from memd.sources.ignore import (
    MAX_PATTERN_BYTES,
    MAX_RULE_BYTES,
    MAX_RULE_LINES,
    Patterns,
    Rules,
    UnusableError,
    diaries,
)

DEFAULT = ("**/*.md", "**/*.markdown")


def rules(root, files=None, patterns=DEFAULT, ignore=()):
    for path, text in (files or {}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Rules.load(root, patterns, ignore)


@pytest.mark.parametrize(
    ("path", "selected"),
    [
        ("a.md", True), ("deep/er/b.markdown", True), ("memory/decisions/build/x.md", True),
        ("memory/build/x.md", True), ("memory/site-packages/x.md", True), ("SCAN.MD", True),
        ("b.Markdown", True), ("a.txt", False), ("a.md.bak", False), (".hidden.md", False),
        (".obsidian/a.md", False), ("memory/.trash/a.md", False), ("node_modules/p/README.md", False),
        ("x/node_modules/README.md", False), ("lib/site-packages/a.md", False), ("build/a.md", True),
        (".git/a.md", False), ("memory/index/vectors/a.md", False), ("memory/config.toml", False),
        ("builds/a.md", True), ("$RECYCLE.BIN/S-1-5/a.md", False), ("share/#recycle/a.md", False),
        ("@Recycle/a.md", False), ("System Volume Information/a.md", False), ("x/@eaDir/a.md", False),
        ("files_trashbin/a.md", False), ("FOUND.000/a.md", False), ("share/trashbox/a.md", False),
        ("Network Trash Folder/a.md", False), ("notebook/vx_recycle_bin/2026/a.md", False),
        ("_v_recycle_bin/a.md", False), ("share/~snapshot/hourly.0/a.md", False), ("recycle/a.md", True),
        ("bak/a.md", True), ("memory/lost+found/a.md", True),
    ],
)  # fmt: skip
def test_default_patterns_select_markdown_outside_of_machinery(tmp_path, path, selected):
    assert rules(tmp_path).selects(path) is selected


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "4913", ".#a.md", "a.md~", ".a.md.swp", "a.md.tmp", "k.pem"]
)
def test_temporary_and_secret_files_are_never_selected(tmp_path, name):
    assert not rules(tmp_path, patterns=["**/*"]).selects(name)
    assert rules(tmp_path, patterns=["**/*"]).selects("notes.txt")


@pytest.mark.parametrize(
    ("project_file", "path"),
    [("pyproject.toml", "build/a.md"), ("x/package.json", "x/dist/a.md"), ("Cargo.toml", "target/doc/a.md"),
     ("build/CACHEDIR.TAG", "build/a.md")],
)  # fmt: skip
def test_build_output_stands_beside_a_projects_file(tmp_path, project_file, path):
    """A chapter called "build" is notes; the same name beside a project's file is what was built."""
    assert rules(tmp_path / "notes").selects(path)
    assert not rules(tmp_path / "project", files={project_file: ""}).selects(path)


# What: its rule files, the settings, what is chosen, and what is not.
CASES = {
    "gitignore files speak for their folder": (
        {".gitignore": "# comment\n\ndrafts/\r\n/top.md\n*.tmp.md\n",
         "a/.gitignore": "!keep.tmp.md\n/only-here.md\n"}, {},
        "a/top.md a/keep.tmp.md a/b/only-here.md",
        "drafts/x.md a/drafts/x.md top.md x.tmp.md a/only-here.md",
    ),
    "memory/ is searched even where gitignore names it": (
        {".gitignore": "memory/\n*.md\n", "memory/.gitignore": "*\n"}, {},
        "memory/tea/green.md memory/green.md", "other.md",
    ),
    "what memd writes below memory/ is found where a workspace narrows its sources": (
        {}, {"patterns": ["docs/**/*.md"]}, "docs/a.md memory/tea/green.md", "a.md",
    ),
    "memdignore and config are relative to the root, hide, bring back, and the config has the last word": (
        {".gitignore": "drafts/\n", "Makefile": "",
         "memory/.memdignore": "/private/\n!drafts/\n!build/\n*.log.md\nmemory/old/\n"},
        {"ignore": ["!b.log.md"]},
        "x/private/a.md drafts/a.md build/a.md b.log.md", "private/a.md a.log.md memory/old/a.md",
    ),
    "source patterns may take back": ({}, {"patterns": ["**/*.md", "!archive/**"]}, "a.md", "archive/a.md"),
    "folders with pyvenv.cfg or a memory/config.toml of their own belong to something else": (
        {"env/pyvenv.cfg": "", "other/memory/config.toml": "", "memory/config.toml": "", "x/memory/a.md": ""},
        {}, "x/memory/a.md memory/a.md", "env/a.md other/a.md other/memory/a.md",
    ),
    "a bad line is passed over, as by git": ({".gitignore": "!\n[z-a]\n[a\n\\\nx.md\n"}, {}, "a.md", "x.md"),
    "copies that Logseq keeps are no sources": (
        {"logseq/config.edn": "{}", "logseq/bak/pages/a.md": "", "bak/a.md": ""}, {},
        "logseq/a.md bak/a.md", "logseq/bak/pages/a.md",
    ),
    "but where the config says so": (
        {"logseq/config.edn": "{}"}, {"ignore": ["!logseq/bak/"]}, "logseq/bak/pages/a.md", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "given", "chosen", "refused"), CASES.values(), ids=CASES)
def test_rules_choose(tmp_path, files, given, chosen, refused):
    """In a root whose own name is hidden, too."""
    found = rules(tmp_path / ".boocode", files, **given)
    assert [path for path in f"{chosen} {refused}".split() if found.selects(path)] == chosen.split()
    assert found.unusable() == []


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
def test_an_ignore_file_that_is_no_file_has_no_lines(tmp_path, kind):
    """A pipe does not block the scan, and a link is not followed out of the workspace."""
    if kind == "fifo":
        os.mkfifo(tmp_path / ".gitignore")
    elif kind == "folder":
        (tmp_path / ".gitignore").mkdir()
    else:
        (tmp_path / "other").write_text("a.md\n")
        (tmp_path / ".gitignore").symlink_to("other")
    assert rules(tmp_path).selects("a.md")


@pytest.mark.parametrize("pattern", ["!", "[z", "*a" * MAX_PATTERN_BYTES])
def test_a_config_pattern_that_cannot_be_used_is_named(tmp_path, pattern):
    with pytest.raises(ConfigError, match="ignore:"):
        rules(tmp_path, ignore=[pattern])
    with pytest.raises(ConfigError, match="sources:"):
        rules(tmp_path, patterns=["**/*.md", pattern])


@pytest.mark.parametrize(
    "lines",
    ["*a*a*a*b\n", "\n".join(f"*a*a*a*b{n}" for n in range(700)), "**/a" * 40 + "\n" + "**/a/" * 20 + "b\n"],
    ids=["one", "700", "deep"],
)
def test_no_pattern_keeps_a_scan_busy(tmp_path, lines):
    """Names that a backtracking engine would need hours for are judged at once."""
    found = rules(tmp_path, {".gitignore": lines})
    started = time.process_time()
    for number in range(50):
        assert found.selects("a/" * 30 + "a" * 200 + f"{number}.md")
    assert time.process_time() - started < 5
    assert found.unusable() == []


UNUSABLE = {
    "too many lines": "x.md\n" * (MAX_RULE_LINES + 1),
    "too many bytes": "#" * MAX_RULE_BYTES + "\nx.md\n",
    "too long a line": "*a" * MAX_PATTERN_BYTES + "\n",
    # Each letter of a name may be the one: RE2 would have to remember 2^20 states of each line.
    "too slow": "\n".join(f"*{char}{'?' * 20}z" for char in "ab" * 1000),
}


@pytest.mark.parametrize("lines", UNUSABLE.values(), ids=UNUSABLE)
def test_nothing_is_read_below_an_ignore_file_that_cannot_be_used(tmp_path, lines):
    """What was to be ignored is never indexed; folders beside it, and memory/, are as they were."""
    name = random.Random(1).choices("ab", k=240)
    found = rules(tmp_path, {"a/.gitignore": lines})
    assert not found.selects("a/" + "".join(name) + ".md")
    assert not found.selects("a/deep/y.md")
    assert found.selects("b/y.md")
    assert found.unusable() == ["a/.gitignore"] == found.unusable("a/")
    assert found.unusable("b/") == []
    refused = found.refusal("a/deep/y.md")
    if lines is not UNUSABLE["too slow"]:  # that is found out by a name
        assert (refused.reason, refused.rule) == ("unruled", "a/.gitignore")
    at_root = rules(tmp_path / "root", {".gitignore": lines})
    assert not at_root.selects("".join(name) + ".md")
    assert at_root.selects("memory/y.md")


def test_nothing_at_all_is_read_with_a_memdignore_that_cannot_be_used(tmp_path):
    """It speaks about the whole workspace, so the whole workspace waits for it."""
    found = rules(tmp_path, {"memory/.memdignore": UNUSABLE["too many lines"]})
    assert not found.selects("a.md")
    assert not found.selects("memory/a.md")
    assert found.unusable() == ["memory/.memdignore"]


def test_what_re2_has_no_memory_for_is_not_taken_for_a_name_that_does_not_match(tmp_path):
    patterns = Patterns([("1", "*a?????b"), ("2", "x.md")], file="f")
    patterns._sets[0]._set = type("NoMemory", (), {"Match": lambda *_: None})()
    with pytest.raises(UnusableError):
        patterns.last_word("a.md")
    assert patterns.is_unusable


VAULT = {
    ".obsidian/templates.json": '{"folder": "Meta/Templates/"}',
    "Meta/Templates/a.md": "",
    "Meta/b.md": "",
}
TEMPLATER = ".obsidian/plugins/templater-obsidian/data.json"


def test_the_folder_of_templates_of_a_vault_is_left_out(tmp_path):
    """As Obsidian's own settings or those of Templater name it, in a vault below the root, too."""
    made = {f"v/{TEMPLATER}": '{"templates_folder": "T", "x": 1}', "v/T/c.md": "", "v/d.md": "", "T/e.md": ""}
    known = rules(tmp_path, VAULT | made)
    chosen = ["Meta/b.md", "v/d.md", "T/e.md"]
    assert [path for path in [*VAULT, *made] if known.selects(path)] == chosen
    refused = known.refusal("v/T/c.md")
    assert (refused.reason, refused.place, refused.rule) == ("template", "v/T/", f"v/{TEMPLATER}")
    assert known.templates() == ["Meta/Templates/", "v/T/"]
    again = rules(tmp_path, ignore=["!v/T/"])
    assert again.selects("v/T/c.md")
    assert (again.refusal("v/T/c.md"), again.templates()) == (None, ["Meta/Templates/"])


@pytest.mark.parametrize(
    "settings",
    ["", "{", "[]", '{"folder": 1}', '{"folder": ""}', '{"folder": "/"}', '{"folder": "."}',
     '{"folder": "../x"}', '{"folder": "Meta/.."}', "[" * 100_000,
     '{"folder": "Meta"}' + " " * MAX_RULE_BYTES],
)  # fmt: skip
def test_settings_of_a_vault_that_name_no_folder_leave_nothing_out(tmp_path, settings):
    assert rules(tmp_path, VAULT | {".obsidian/templates.json": settings}).selects("Meta/b.md")


def test_nothing_else_of_a_vault_is_read(tmp_path):
    rules(tmp_path, VAULT | {".obsidian/app.json": '{"folder": "Meta"}'})
    settings = tmp_path / ".obsidian" / "templates.json"
    settings.unlink()
    settings.symlink_to("app.json")
    assert rules(tmp_path).selects("Meta/b.md")


@pytest.mark.parametrize(
    ("gitdir", "selected"),
    [
        ("{root}/.git/worktrees/old", False), ("../.git/worktrees/old", False),
        ("{root}/inner/.git/worktrees/old", False), ("{above}/.git/worktrees/old", False),
        ("/elsewhere/.git/worktrees/old", True), ("{root}/.git/modules/lib/worktrees/old", False),
        ("{root}/.bare/worktrees/old", True), ("../.git/modules/old", True),
    ],
)  # fmt: skip
def test_a_worktree_of_a_repository_that_is_here_is_no_source(tmp_path, gitdir, selected):
    root = tmp_path / "notes"
    placed = gitdir.format(root=root, above=tmp_path)
    assert rules(root, {"old/.git": f"gitdir: {placed}\n", "old/a.md": ""}).selects("old/a.md") is selected
    assert rules(root, ignore=["!old/"]).selects("old/a.md")


def test_what_fades_is_named_by_the_configuration_and_by_the_vault(tmp_path):
    def why(path, *patterns):
        source = Source(1, path, "", (), date(2026, 5, 1), "name", "human")
        return diaries(tmp_path, patterns).why(source)

    assert why("Log/2026-05-01 Fri.md") is None
    rules(tmp_path, {".obsidian/daily-notes.json": '{"folder": "Log/", "format": "YYYY-MM-DD ddd"}'})
    assert why("Log/2026-05-01 Fri.md") == "daily-notes"
    assert why("Logs/2026-05-01 Fri.md") is None
    assert why("posts/2026-05-01-a.md", "posts/", "!posts/2026-05-01-b.md") == "pattern"
    assert why("posts/2026-05-01-b.md", "posts/", "!posts/2026-05-01-b.md") is None
    with pytest.raises(ConfigError, match="decay"):
        diaries(tmp_path, ["a//"])
