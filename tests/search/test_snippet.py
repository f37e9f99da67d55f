import pytest

from memd.search.query import parse
from memd.search.snippet import MANY_WORDS, SNIPPET_CHARS, Snippet, snippet, wanted


def shown_of(text: str, start_line: int, query: str, *, start_byte: int = 0, **weights: float) -> Snippet:
    return snippet(text, start_line, wanted(parse(query), weights), start_byte=start_byte)


def test_the_snippet_is_around_the_match_and_not_at_the_start():
    text = "Intro.\n" + "filler words here.\n" * 30 + "The ñandú lives in Patagonia.\n" + "more.\n" * 20
    shown = shown_of(text, 10, "Patagonia")
    assert "Patagonia" in shown.text
    assert shown.match_line == 10 + 31
    assert shown.match_text == "The ñandú lives in Patagonia."
    assert shown.match_text.encode()[shown.match_column - 1 :].startswith(b"Patagonia")


def test_a_query_of_many_words_marks_the_same_words():
    """Whole words alone, beside any punctuation."""
    text = "reddened.\n" * 3 + "Red-lantern_\n" + "redden lanterns.\n" * 3
    many = " ".join(f"absent{number}" for number in range(2 * MANY_WORDS))
    assert shown_of(text, 1, f"red lantern {many}") == shown_of(text, 1, "red lantern")
    assert shown_of(text, 1, f"red lantern {many}").match_line == 4


def test_a_line_without_end_is_cut():
    text = "word " * 100_000 + "needle " + "word " * 100_000
    shown = shown_of(text, 1, "needle")
    assert "needle" in shown.text
    assert len(shown.text) < SNIPPET_CHARS + 10


def test_a_match_in_a_part_of_a_long_line_has_the_column_of_the_file():
    assert shown_of("a heron here", 7, "heron", start_byte=5000).match_column == 5003
    assert shown_of("a weir\nheron", 7, "heron", start_byte=5000).match_column == 1


CHART = """# Colours

RAL 6146 is the moss of the gates.
RAL 6147 is the ivy.
RAL 6150 is the reed of the doors.
Ask the painter at the RAL shop.
"""


@pytest.mark.parametrize(
    "query", ['"RAL 6150"', "RAL 6150", '"RAL 6150" painter shop', "which doors have RAL 6150"]
)
def test_a_phrase_names_its_own_line(query):
    shown = shown_of(CHART, 1, query)
    assert (shown.match_line, shown.match_column) == (5, 1)


def test_an_identifier_is_not_named_where_its_parts_are():
    """Its parts side by side win over the same parts in other lines, even if those are more."""
    text = "git has a todo for each rebase.\nEdit the todo of a git rebase.\n\n    vim .git/git-rebase-todo\n"
    shown = shown_of(text, 1, "git-rebase-todo")
    assert shown.match_text[shown.match_column - 1 :] == "git-rebase-todo"
    assert shown_of(text, 1, "who edits the git-rebase-todo each time").match_line == 4


def test_a_rare_word_says_more_than_common_ones():
    text = "notes of the day\n" + "filler\n" * 60 + "gasket\n"
    assert shown_of(text, 1, "notes day gasket", notes=0.5, day=0.5, gasket=6.0).match_line == 62
    assert shown_of(text, 1, "notes day gasket", notes=3.5, day=3.5, gasket=6.0).match_line == 1


@pytest.mark.parametrize(
    ("text", "query", "line", "column"),
    [
        ("red fox.\n" + "nothing to see here at all.\n" * 20 + "a red lantern.\n", "red lantern", 22, 3),
        ("The heron is grey.\nIt flies over the weir.\nA heron at the weir.\n", "heron weir", 3, 3),
        ("\n\nBRCA1 mutation analysis\n", "breast cancer", 3, 1),
        ("Le Cafe\u0301 noir", "CAFÉ", 1, 4),
        ("定例会議室", "会議", 1, 7),
        ("call getUserName now", "username", 1, 9),
        ("Write a query; SQL is what it is in.\nRun it:\n\n    psql < query.sql\n", "query.sql", 4, 12),
        ("Read query.sql.\nA query SQL knows.\n", '"query sql"', 2, 3),
        ("会議の室\n議室\n定例会議室\n", '"会議室"', 3, 7),
        ("café. noir\ncafé of Noir\nÇa: Cafe — Noir!\n", '"ça café noir"', 3, 1),
        ("Nothing here.\n\nOnly this.\n", "what is this", 3, 6),
        ("Nothing here.\n\nOnly this.\n", "nowhere this", 1, 1),
        ("# A rule\n\nNothing here.\n\nOnly this.\n", "nowhere this", 3, 1),
        ("Nothing here.\n\nOnly this gasket.\n", "what is this gasket", 3, 11),
        ("a\nThe heron.\nA heron.\n", "heron", 2, 5),
        ("heron\n" + "filler\n" * 90 + "heron\n", "heron", 1, 1),
        ("heron\n\nweir\n\nheron\n\nheron weir heron\n", "heron weir", 7, 1),
        ("See https://example.org/heron\nThe heron.\n", "heron", 2, 5),
        ("See [it](birds/heron.md) of heron\n", "heron", 1, 29),
        ("![heron](heron.png)\n![[heron.png]]\nA heron\n", "heron", 3, 3),
        ('<img alt="heron">\nheron\n', "heron", 2, 1),
        ("```python\nprint()\n```\nIn python.\n", "python", 4, 4),
        ("See https://example.org/heron\n", "heron", 1, 25),
        ("org example\nSee https://example.org/heron\n", "https://example.org/heron", 2, 5),
        ("---\n\n<br>\n\n![a b](c.png)\n\n```sh\nls -l\n```\n", "absent", 8, 1),
        ("---\n***\n", "absent", 1, 1),
        ("---\n\n# A rule\n", "absent", 3, 1),
        ("A rule\r\n======\r\n\r\nNothing.\r\n", "absent", 4, 1),
        ("- one\n---\ntwo\n", "absent", 1, 1),
        ("# A\n\n```sh\n# a comment\nls\n```\n", "absent", 4, 1),
        ("> # Title\n>\n> Text\n", "absent", 3, 1),
        ("<!-- a > b -->\nText\n", "absent", 2, 1),
        ("<!--\na license\n-->\nText\n", "absent", 4, 1),
        ("%%\nto do\n%%\nText\n", "absent", 4, 1),
        ("%% to do %%\nText\n", "absent", 2, 1),
        ("* * *\n| --- | --- |\n| one | two |\n", "absent", 3, 1),
    ],
)
def test_a_line_is_named_that_a_reader_would_name(text, query, line, column):
    """The first of equal places; no address, picture, tag or rule where there is text."""
    shown = shown_of(text, 1, query)
    assert (shown.match_line, shown.match_column) == (line, column)


@pytest.mark.parametrize(
    ("text", "query", "line"),
    [
        ("Ada: Where is the heron of the weir?\nBen: It went to the lake.\n", "heron weir", 2),
        ("## Ada · 10:01\n\nDid the heron leave?\n\n## Ben · 10:02\n\nYes.\n", "heron leave", 7),
        ("## Does the heron leave?\n\nIn May.\n", "heron leave", 3),
        ("Where is the heron?\nNo idea.\nThe heron of the weir is gone.\n", "heron weir", 3),
        ("Does the heron leave?\n\n## Weir\n\nIt leaks.\n", "heron leave", 1),
        ("*Does the heron leave?*\n", "heron leave", 1),
    ],
)
def test_a_line_that_asks_passes_its_weight_to_the_line_that_may_answer(text, query, line):
    """Not across a heading, but that of the next turn; a line that says more itself wins."""
    assert shown_of(text, 1, query).match_line == line


SETUP = f"To restart the gate:\n\n{'Some history of it. ' * 20}\n\n```sh\na\nb\nc\nd\ne\n```\n"


def test_a_snippet_has_the_first_lines_of_the_code_that_follows():
    assert shown_of(SETUP, 1, "restart gate").text == "To restart the gate: …\n```sh\na\nb\nc\nd\n```"
    assert "```" not in shown_of(SETUP.replace("\n\n```", "\n\n# Other\n\n```"), 1, "restart gate").text
    assert "```" not in shown_of(SETUP.replace("a\n", "a" * 300), 1, "restart gate").text, "no room"
    inside = shown_of(f"```\nrestart gate\n{'x ' * 200}\n```\ntext\n```\nb\n```\n", 1, "restart gate").text
    assert inside.endswith(" …"), "the match is in code itself"
