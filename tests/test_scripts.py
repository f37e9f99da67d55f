"""Unicode scripts: which a text is written in, and what a model reads."""

import pytest

from memd import scripts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("breast cancer", True),
        ("TNF-α levels", True),
        ("体长有多大", False),
        ("42", True),
        ("Patagonia tuckeri 的体长", False),
    ],
)
def test_a_latin_model_reads_a_query_of_mostly_latin_letters(text, expected):
    """A query whose letters are mostly of another script is not embedded."""
    assert scripts.readable(text, frozenset({"Latin"})) is expected


def test_a_model_without_a_list_reads_everything():
    """None stands for every script."""
    assert scripts.readable("会議", None)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", ""),
        ("42: 3.14 + 7 = ?", ""),
        ("breast cancer", "Latin"),
        ("Über die Straße nach Łódź", "Latin"),
        ("ＦＵＬＬ ｗｉｄｔｈ", "Latin"),
        ("Заметки о двигателе", "Cyrillic"),
        ("来週は金閣寺へ行きます", "Han"),
        ("おはようございます", "Hiragana"),
        ("ｺﾝﾋﾟｭｰﾀ", "Katakana"),
        ("회의록", "Hangul"),
        ("Σημειώσεις", "Greek"),
        ("ملاحظات", "Arabic"),
        ("ᏣᎳᎩ", "Cherokee"),
        ("The café 来 opened", "Latin"),
        ("Python の例外処理", "Han"),
    ],
)
def test_a_text_is_in_the_script_of_most_of_its_letters(text, script):
    """Digits and signs are in none; forms of a letter are that letter."""
    assert scripts.script_of(text) == script


def test_a_character_of_chinese_counts_as_several_letters():
    """Four of its words say more than two English ones, though these have more letters."""
    assert scripts.script_of("会议记录 about it") == "Han"
    assert scripts.script_of("会议 about the quarterly meeting") == "Latin"


def test_han_and_kana_count_together():
    """A Japanese text is not Latin because neither of them alone has most of its letters."""
    text = "漢字かなかな Latin words"
    assert scripts.script_of("漢字 Latin words") == scripts.script_of("かなかな Latin words") == "Latin"
    assert scripts.script_of(text) in scripts.JAPANESE
