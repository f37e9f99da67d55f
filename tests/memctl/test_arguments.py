"""What the user types is understood, or refused with words."""

import argparse
import os
from importlib import import_module

import pytest

from memctl.arguments import TOPICS, filters_of, named_parameter, overview, parse, parser_of
from memctl.commands import COMMANDS
from memctl.commands.init import arguments as init_arguments
from memctl.commands.recall import arguments as recall_arguments
from memctl.commands.search import arguments as search_arguments
from memctl.commands.why import arguments as why_arguments
from memctl.commands.workspaces import arguments as workspaces_arguments
from memctl.commands.workspaces import settings_of
from memctl.exits import CommandError


def searched(*argv):
    """Return the parsed arguments of `memctl search`."""
    return parse(parser_of("search", search_arguments), argv)


def test_options_stand_anywhere_among_the_words():
    args = searched("breast", "--json", "cancer", "-n", "3", "gene")
    assert (args.words, args.json, args.limit) == (["breast", "cancer", "gene"], True, 3)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--", "--json", "-x"], ["--json", "-x"]), (["a", "--", "b", "--", "c"], ["a", "b", "--", "c"]),
        (["--json", "--"], []), (["-"], ["-"]), (["-5"], ["-5"]), (["a b", "-c d"], ["a b", "-c d"]),
        ([""], [""]),
    ],
)  # fmt: skip
def test_after_two_dashes_all_are_words(argv, words):
    assert searched(*argv).words == words


def test_after_two_dashes_a_path_may_begin_with_one():
    args = parse(parser_of("why", why_arguments), ["-n", "3", "--", "-a.md", "-b", "c"])
    assert (args.source, args.words, args.limit) == ("-a.md", ["-b", "c"], 3)


@pytest.mark.parametrize(
    ("argv", "sync", "words"),
    [
        (["--sync", "x"], True, ["x"]), (["x", "--sync"], True, ["x"]), (["--sync", "60", "x"], 60.0, ["x"]),
        (["--sync=2.5", "x"], 2.5, ["x"]), (["--sync", "--", "60"], True, ["60"]),
        (["60", "x"], False, ["60", "x"]),
    ],
)  # fmt: skip
def test_a_wait_for_saves_may_have_its_seconds(argv, sync, words):
    args = searched(*argv)
    assert (args.sync, args.words) == (sync, words)


@pytest.mark.parametrize("option", ["--tag", "--field"])
@pytest.mark.parametrize("command", ["search", "ls", "fields"])
def test_an_empty_filter_is_refused_in_every_command(command, option, capsys):
    module = import_module(f"memctl.commands.{command}")
    with pytest.raises(SystemExit):
        parse(parser_of(command, module.arguments), [option, " "])
    assert f"argument {option}: it is empty" in capsys.readouterr().err


def test_any_bytes_are_words():
    args = searched(os.fsdecode(b"caf\xe9"), "--", os.fsdecode(b"\xff"))
    assert args.words == ["caf\ufffd", "\ufffd"]


def test_only_what_was_given_is_sent():
    """Defaults are the daemon's: nothing that was not typed becomes a parameter."""
    assert filters_of(searched("x")) == {}


def test_every_filter_reaches_its_parameter():
    args = searched(
        *["x", "--mode", "vector", "--fusion", "rrf", "--path", "daily/*.md", "--tag", "a", "--tag", "b"],
        *[
            "--since", "last week", "--until", "2026-05-31", "--min-score", "0.25", "--limit", "7",
            "--no-wait",
        ],
    )  # fmt: skip
    assert args.no_wait
    assert filters_of(args) == {
        "mode": "vector", "fusion": "rrf", "path": ["daily/*.md"], "tag": ["a", "b"], "since": "last week",
        "until": "2026-05-31", "min_score": 0.25, "limit": 7, "wait": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "argv",
    [
        ["--limit", "0"], ["--limit", "-1"], ["--limit", "1.5"], ["--limit", "٣"], ["--limit", "9" * 19],
        ["--min-score", "1.1"], ["--min-score", "nan"], ["--min-score", "half"], ["--mode", "fuzzy"],
        ["--fusion", "sum"], ["--color", "blue"], ["--json", "--files"], ["--js"],
        ["--unknown"], ["--tag"], ["--lines", "-1"],
    ],
)  # fmt: skip
def test_impossible_values_and_abbreviations_are_refused(argv, capsys):
    with pytest.raises(SystemExit) as leaving:
        searched("x", *argv)
    assert leaving.value.code == 2
    assert argv[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "argv", "meant"),
    [
        (search_arguments, ["x", "--limt", "3"], "--limit"),
        (search_arguments, ["x", "--limt=3"], "--limit"),
        (search_arguments, ["--expain", "--sinse", "x"], "--explain and --since"),
        (search_arguments, ["x", "--js"], "--json"),
        (workspaces_arguments, ["list", "--jsn"], "--json"),
        (workspaces_arguments, ["list", "--yes"], None),
        (search_arguments, ["x", "--frobnicate"], None),
    ],
)
def test_a_mistyped_option_is_told_with_the_one_that_may_be_meant(command, argv, meant, capsys):
    with pytest.raises(SystemExit):
        parse(parser_of("search", command), argv)
    error = capsys.readouterr().err
    assert (f"; did you mean {meant}?\n" in error) == (meant is not None)
    assert ("did you mean" in error) == (meant is not None)


def test_a_word_that_looks_like_an_option_is_told_to_come_after_two_dashes(capsys):
    """Where words are taken; "memctl search -v" is a question about a flag."""
    for command, told in ((search_arguments, True), (workspaces_arguments, False)):
        with pytest.raises(SystemExit):
            parse(parser_of("search", command), ["-v"])
        assert ("words that begin with - come after --" in capsys.readouterr().err) == told


def test_a_parameter_of_memd_is_told_as_the_option_that_set_it():
    parser = parser_of("search", search_arguments)
    assert named_parameter("$.limit: expected int <= 1000", parser) == "--limit: expected int <= 1000"
    assert named_parameter("$.scope: no team is configured", parser) == "--team: no team is configured"


@pytest.mark.parametrize("argv", [["claude-code", ""], ["claude-code", "--project", ""]])
def test_an_empty_path_of_a_file_is_not_the_current_folder(argv, capsys):
    with pytest.raises(SystemExit):
        parse(parser_of("import", import_module("memctl.commands.import").arguments), argv)
    assert "it is empty" in capsys.readouterr().err


def test_recall_has_a_budget_and_the_same_filters():
    args = parse(parser_of("recall", recall_arguments), ["x", "--budget", "800", "--tag", "t"])
    assert (args.budget, args.tag) == (800, ["t"])


def test_init_takes_one_folder_the_current_one_without():
    parser = parser_of("init", init_arguments)
    assert parse(parser, []).folder == "."
    with pytest.raises(SystemExit):
        parse(parser, ["a", "b"])


def test_workspaces_has_its_actions():
    parser = parser_of("workspaces", workspaces_arguments)
    assert parse(parser, []).action is None
    assert parse(parser, ["remove", "x"]).folder == "x"
    assert parse(parser, ["configure", "-w", "d", "a=1", "b=2"]).settings == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("min_score=0.2", 0.2), ("per=3", 3), ("sidecars=true", True), ('ignore=["a/", "b"]', ["a/", "b"]),
        ('model="a b"', "a b"), ("fusion=rrf", "rrf"),
        ("weights={vector=0.5, keyword=0.5}", {"vector": 0.5, "keyword": 0.5}),
        ("since=2026-05-01", "2026-05-01"), ("x = 1 ", 1), ("a=b=c", None), ("empty=", None),
        ("plain", None), ("=1", None), ("x=1\ny=2", None), ("x=two words", None),
    ],
)  # fmt: skip
def test_settings_are_toml_values_or_bare_words(pair, value):
    key = pair.partition("=")[0].strip()
    if value is None:
        with pytest.raises(CommandError):
            settings_of([pair])
    else:
        assert settings_of([pair]) == {key: value}


def test_the_overview_names_every_command():
    page = overview()
    assert set(COMMANDS) <= set(page.split())
    assert len(page.splitlines()) <= 40
    assert all(topic in page for topic in TOPICS)
    assert "MEMD_WORKSPACE" in TOPICS["environment"]


@pytest.mark.parametrize("columns", ["60", "200", "", "wide", "-5", "9" * 5000])
def test_a_help_page_is_as_wide_as_argparse_would_have_it(monkeypatch, columns):
    """The width that is found without shutil is the one that argparse finds with it."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.__stdout__", None)  # whatever terminal runs the tests
    parser = parser_of("search", search_arguments)
    page = parser.format_help()
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    assert page == parser.format_help()
