from memd.search.snippet import SNIPPET_CHARS, snippet


def test_the_snippet_is_around_the_match_and_not_at_the_start():
    """A word far down in the chunk is shown, with its line and byte column."""
    text = "Intro.\n" + "filler words here.\n" * 30 + "The ñandú lives in Patagonia.\n" + "more.\n" * 20
    shown = snippet(text, 10, ("Patagonia",))
    assert "Patagonia" in shown.text
    assert shown.match_line == 10 + 31
    assert shown.match_text == "The ñandú lives in Patagonia."
    assert shown.match_text.encode()[shown.match_column - 1 :].startswith(b"Patagonia")


def test_the_place_with_the_most_words_wins():
    """Both words of the query together beat one of them earlier."""
    text = "red fox.\n" + "nothing to see here at all.\n" * 20 + "a red lantern.\n"
    assert snippet(text, 1, ("red", "lantern")).match_line == 22


def test_without_a_match_the_first_line_with_text_is_named():
    """A hit of meaning alone stands at its chunk's first line."""
    shown = snippet("\n\nBRCA1 mutation analysis\n", 4, ("breast", "cancer"))
    assert (shown.match_line, shown.match_column, shown.match_text) == (6, 1, "BRCA1 mutation analysis")


def test_accents_and_case_do_not_matter():
    """CAFE finds café, composed or not."""
    assert snippet("Le Cafe\u0301 noir", 1, ("CAFÉ",)).match_column == 4


def test_a_run_is_found_inside_of_a_longer_run():
    """会議 is found in 定例会議室, at its byte."""
    assert snippet("定例会議室", 1, ("会議",)).match_column == 7


def test_a_substring_is_found_where_no_word_is():
    """The substring tier's match is shown at its place."""
    assert snippet("call getUserName now", 1, ("username",)).match_column == 9


def test_a_line_without_end_is_cut():
    """A megabyte in one line gives a short snippet."""
    text = "word " * 100_000 + "needle " + "word " * 100_000
    shown = snippet(text, 1, ("needle",))
    assert "needle" in shown.text
    assert len(shown.text) < SNIPPET_CHARS + 10


def test_a_match_in_a_part_of_a_long_line_has_the_column_of_the_file():
    """What stands before the chunk in its line counts."""
    assert snippet("a heron here", 7, ("heron",), start_byte=5000).match_column == 5003
    assert snippet("a weir\nheron", 7, ("heron",), start_byte=5000).match_column == 1
