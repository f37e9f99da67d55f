import pytest

from memd.sources.scan import Rules
from memd.workspace.watcher import Meaning, meaning

PATTERNS = ("**/*.md",)


@pytest.fixture
def guess(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "a.md").write_text("a")
    rules = Rules.load(tmp_path, PATTERNS, ())

    def guess(path: str) -> Meaning:
        return meaning(str(tmp_path / path), tmp_path, rules, lambda folder: folder == "was-a-folder")

    return guess


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", Meaning.SOURCE),
        ("gone.md", Meaning.SOURCE),
        ("folder/b.md", Meaning.SOURCE),
        ("a.txt", Meaning.NOTHING),
        ("folder", Meaning.FOLDER),
        ("was-a-folder", Meaning.FOLDER),
        ("node_modules", Meaning.NOTHING),
        ("node_modules/p/README.md", Meaning.NOTHING),
        (".git/index.lock", Meaning.NOTHING),
        (".gitignore", Meaning.RULES),
        ("folder/.gitignore", Meaning.RULES),
        ("memory/.memdignore", Meaning.RULES),
        ("memory/config.toml", Meaning.RULES),
        ("folder/memory/config.toml", Meaning.RULES),
        ("folder/config.toml", Meaning.NOTHING),
        ("", Meaning.RULES),
    ],
)
def test_a_changed_path_means_a_look_a_scan_new_rules_or_nothing(guess, path, expected):
    """Sources are looked at, folders scanned, rule files read, machinery ignored."""
    assert guess(path) is expected
