"""Unicode scripts: which a text is written in, and what a model reads."""

import pytest

from memd.text import is_readable, scripts_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("breast cancer", True), ("TNF-α levels", True), ("体长有多大", False), ("42", True), ("📅", False),
        ("Patagonia tuckeri 的体长", False),
    ],
)  # fmt: skip
def test_a_latin_model_reads_a_query_of_mostly_latin_letters(text, expected):
    assert is_readable(text, frozenset({"Latin"})) is expected


def test_a_model_without_a_list_reads_everything():
    assert is_readable("会議", None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ""), ("42: 3.14 + 7 = ?", ""), ("breast cancer", "Latin"),
        ("Über die Straße nach Łódź", "Latin"), ("ＦＵＬＬ ｗｉｄｔｈ", "Latin"),
        ("Заметки о двигателе", "Cyrillic"), ("上海火车站的时刻表", "Han"),
        ("おはようございます", "Hiragana"), ("ｺﾝﾋﾟｭｰﾀ", "Katakana"),
        ("来週は木曜日からです", "Han Hiragana"), ("회의록", "Hangul"), ("Σημειώσεις", "Greek"),
        ("ملاحظات", "Arabic"), ("ᏣᎳᎩ", "Cherokee"),
    ],
)  # fmt: skip
def test_a_text_is_in_the_scripts_of_its_letters(text, found):
    assert " ".join(scripts_of(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The engine (发动机) is repaired on Thursday in the garage", ("Latin",)),
        ("发动机修理 engine repair", ("Han", "Latin")),
        ("发动机要在星期四修理好，费用是四百元 (engine)", ("Han",)),
        ("Двигатель починят, says the garage", ("Cyrillic", "Latin")),
    ],
)
def test_a_script_counts_from_two_fifths_of_what_is_said(text, found):
    assert scripts_of(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "패키지 [설치](https://github.com/microsoft/vcpkg/blob/master/docs/examples/installing-packages.md)",
        "`concurrency::wait` 함수는 `Context::Block()` 및 `Context::Yield()` 메서드를 호출합니다.",
        "요구 사항\n\n```cpp\nstatic_cast<int>(size_of(v)); foo_bar(); baz.qux = COOPERATIVE_TIMEOUT;\n```",
        '<a name="improper_scheduler_detach"></a> 개체를 생성합니다.',
    ],
)
def test_code_addresses_and_markup_are_no_latin_prose(text):
    """They are in Latin letters whatever the language is that they stand in."""
    assert scripts_of(text) == ("Hangul",)


def test_code_alone_is_latin():
    assert scripts_of("foo_bar(→) = naïve::é();") == ("Latin",)
    assert scripts_of('print("σ(-99) => ", torch.sigmoid(torch.tensor(-99.0)))') == ("Latin",)
