import pytest

from memd.sources.scan import Rules
from memd.workspace.watcher import HintKind, meaning

PATTERNS = ("**/*.md",)


@pytest.fixture
def guess(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "a.md").write_text("a")
    rules = Rules.load(tmp_path, PATTERNS, ())

    def guess(path: str) -> HintKind:
        return meaning(str(tmp_path / path), tmp_path, rules, lambda folder: folder == "was-a-folder")

    return guess


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", HintKind.SOURCE), ("gone.md", HintKind.SOURCE), ("folder/b.md", HintKind.SOURCE),
        ("a.txt", HintKind.NOTHING), ("folder", HintKind.FOLDER), ("was-a-folder", HintKind.FOLDER),
        ("node_modules", HintKind.NOTHING), ("node_modules/p/README.md", HintKind.NOTHING),
        (".git/index.lock", HintKind.NOTHING), (".gitignore", HintKind.RULES),
        ("folder/.gitignore", HintKind.RULES), ("memory/.memdignore", HintKind.RULES),
        ("memory/config.toml", HintKind.RULES), ("folder/memory/config.toml", HintKind.RULES),
        ("folder/config.toml", HintKind.NOTHING), ("", HintKind.RULES),
    ],
)  # fmt: skip
def test_a_changed_path_means_a_look_a_scan_new_rules_or_nothing(guess, path, expected):
    assert guess(path) is expected
