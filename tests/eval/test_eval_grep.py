"""The grep arm finds what a person with grep finds, in that order."""

import os
import shutil

import pytest

from memd.eval import grep

pytestmark = pytest.mark.skipif(shutil.which("grep") is None, reason="grep is not installed")


@pytest.fixture
def ranked(tmp_path):
    """Write notes and rank them for a query."""

    def rank(query, **notes):
        for name, text in notes.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return grep.ranked(str(tmp_path), sorted(notes), query)

    return rank


def test_more_of_the_words_go_before_more_lines(ranked):
    assert ranked("kafka queue", a="kafka\n" * 5, b="a queue of kafka\n", c="kafka\n" * 2, d="none\n") == [
        "b", "a", "c",
    ]  # fmt: skip


def test_case_does_not_matter_also_beyond_ascii(ranked):
    """As grep -i in a locale of today."""
    assert ranked("übung Kafka", a="DIE ÜBUNG\n", b="KAFKA\n") == ["a", "b"]


def test_words_are_found_within_words_and_are_no_patterns(ranked):
    assert ranked("test", a="tests\n", b="tes\n") == ["a"]
    assert ranked("20.04", a="20x04\n", b="ubuntu 20.04\n") == ["b"]


def test_a_word_that_looks_like_an_option_is_a_word(ranked):
    assert grep.words_of('"--help"') == ["--help"]
    assert ranked('"--help" me', a="try --help\n") == ["a"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("How do I undo the last commit?", ["undo", "last", "commit"]),
        ("what is it", ["what", "is", "it"]), ("C++ and C", ["c++"]),
        ("kafka -draft tag:work path:daily since:2026-01-01", ["kafka"]),
        ("queue Queue (queue)", ["queue"]), ("会議 の メモ", ["会議", "の", "メモ"]), ("?!", []), ("", []),
        ("a\0b", ["a", "b"]),
    ],
)  # fmt: skip
def test_what_nobody_would_type_is_left_out(query, words):
    assert grep.words_of(query) == words


def test_names_may_have_any_character(tmp_path):
    names = ["-e", "a\nb.md", "c d.md", "e:1.md"]
    for name in names:
        (tmp_path / name).write_text("kafka queue\n")
    assert grep.ranked(str(tmp_path), names, "kafka queue") == sorted(names)


def test_more_files_than_one_command_takes_are_all_searched(tmp_path):
    names = [f"{number}{'x' * 240}.md" for number in range(1_000, 1_700)]
    for name in names:
        (tmp_path / name).write_text("kafka\n")
    assert grep.ranked(str(tmp_path), names, "kafka") == names


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    """As its user would see on stderr; here it does not match."""
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("kafka\n")
    (tmp_path / "a.md").chmod(0)
    assert grep.ranked(str(tmp_path), ["a.md", "b.md", "gone.md"], "kafka") == ["b.md"]


def test_a_file_that_is_gone_does_not_hide_the_others(tmp_path):
    (tmp_path / "b.md").write_text("kafka\n")
    assert grep.ranked(str(tmp_path), ["gone.md", "b.md"], "kafka") == ["b.md"]
