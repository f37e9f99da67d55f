"""Misspelled words: which are corrected, which never are, and the score of a correction."""

from dataclasses import replace

import pytest
from tests_support import Notes

from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.tokenizer import WordPieces
from memd.search.query import parse, unfinished
from memd.search.search import Answer, search
from memd.search.spelling import MAX_WORDS, Spelling, corrected, spelling

MEDICAL = {
    "a.md": "screening for breast cancer finds mutations of the kinase\n",
    "b.md": "the phosphorylation of a kinase in neurodegeneration\n",
    "c.md": "breast feeding and phosphorylation\n",
}


@pytest.fixture(scope="module")
def pieces() -> WordPieces:
    """The shipped tokenizer."""
    return WordPieces(TOKENIZER_FILE)


@pytest.fixture
def spelled(notes, pieces):
    """Return what the words of a query are taken for, given the saved notes."""

    def of(text: str) -> dict[str, str]:
        return dict(looked_up(notes, text, pieces).corrected)

    return of


def looked_up(notes: Notes, text: str, pieces: WordPieces, **changes) -> Spelling:
    with notes.index.view() as view:
        return spelling(view, parse(text), pieces, changes.get("expired", lambda: False))


def asked(notes: Notes, text: str, pieces: WordPieces, **changes) -> Answer:
    """Return the answer of the daemon, which corrects the words first."""
    request = notes.request(text, **changes)
    query = corrected(request.query, looked_up(notes, text, pieces).corrected)
    vector = None if request.query_vec is None else notes.embedder.embed_query(query.text)
    with notes.index.view() as view:
        return search(view, replace(request, query=query, corrected_vec=vector))


@pytest.mark.parametrize(
    "typed",
    [
        "breats", "breasst", "breat", "breaft", "Breats", "(breats)", "breats?", "phosphorlyation",
        "phosporilation",
    ],
)  # fmt: skip
def test_a_word_that_nobody_knows_is_taken_for_the_nearest_term(notes, spelled, typed):
    """One letter missing, too much, another one, two exchanged; in a long word two of them."""
    notes.save(MEDICAL)
    [(word, term)] = spelled(f"about {typed} in there").items()
    assert word == typed.strip("()?")
    assert term == ("breast" if term[0] == "b" else "phosphorylation")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("about the brea", {"brea": "breast"}),
        ("Phosph", {"Phosph": "phosphorylation"}),
        ("k", {"k": "kinase"}),
        ("kinase canc breats", {"breats": "breast"}),  # the last word alone; it begins nothing, and is a slip
        ("breast", {}),  # a word of the notes
        ("kin ", {}),  # a space behind it ends it
        ('"kin', {"kin": "kinase"}),
        ("cancer -kin", {}),
        ("tag:kin", {}),
        ("kin2", {}),
        ("zzz", {}),
    ],
)
def test_the_last_word_of_a_query_that_is_being_typed_is_completed(notes, pieces, text, taken):
    notes.save(MEDICAL)
    with notes.index.view() as view:
        found = spelling(view, unfinished(parse(text), text), pieces, lambda: False)
    assert dict(found.corrected) == taken


@pytest.mark.parametrize(
    "text",
    [
        "breast kinase",  # words of the notes
        "wreath brest tests",  # words of the model: Brest is a town
        '"breats cancer"',  # in quotes
        "cancer -breats",  # excluded
        "BREATS breatS3 breats2 breats_a x.breats breats@home /breats/ #breats tag:breats",  # may be names
        "brEats BReats",  # capitals inside
        "brst kinse",  # one of four letters; kinse is corrected elsewhere
        "zzzzzzzz qqqqqq",  # near to nothing
        "wie lösche ich einen kinasse",  # of another language: more is unknown than known
        "zzzzzzzz kinasse",  # half of it is
        "une kinasse",  # also where the model knows a short word
        "乳房検診 유방암검진 มะเร็งเต้านม",
        "54081 10.4.23.7 3f2c9a1b",
        "",
    ],
)
def test_what_is_known_or_may_be_meant_is_left_alone(notes, spelled, text):
    """Words of the notes or of the model's vocabulary, quoted words, and words that are not plain."""
    notes.save(MEDICAL | {"other.md": "kinse\n"})
    assert spelled(text) == {}


@pytest.mark.parametrize(
    "text", ["cancer zzzzzzzz kinasse", "wreath kinasse", "the kinasse", "zzz-2 kinasse"]
)
def test_a_slip_among_words_that_are_mostly_known_is_corrected(notes, spelled, text):
    """Those of the notes and of the model count as known, names of things and stop words not at all."""
    notes.save(MEDICAL)
    assert spelled(text) == {"kinasse": "kinase"}


def test_of_several_terms_the_nearest_then_the_most_frequent_one_is_taken(notes, spelled):
    notes.save({"a.md": "mitochondrium\n", "b.md": "mitochondria\n", "c.md": "mitochondria again\n"})
    assert spelled("mitochondriax") == {"mitochondriax": "mitochondria"}
    notes.save({f"{number}.md": f"glioma {number}\n" for number in range(3)} | {"d.md": "glioba\n"})
    assert spelled("gliora") == {"gliora": "glioma"}


def test_each_part_of_a_word_with_a_hyphen_is_looked_up(notes, spelled):
    notes.save(MEDICAL)
    found = spelled("breast-kinasse (neurodegeneratoin)!")
    assert found == {"kinasse": "kinase", "neurodegeneratoin": "neurodegeneration"}
    query = corrected(parse('breast-kinasse (neurodegeneratoin)! "a kinasse"'), found)
    assert query.text == "breast-kinase (neurodegeneration)! a kinasse"
    assert query.phrases == ("a kinasse",)


def test_a_pasted_page_is_looked_up_in_part(notes, spelled):
    notes.save({"a.md": " ".join(f"kinase{'abcdefghij'[n % 10]}{'klmnop'[n // 10]}" for n in range(40))})
    text = " ".join(f"kinase{'abcdefghij'[n % 10]}{'klmnop'[n // 10]}q" for n in range(40))
    assert len(spelled(text)) == MAX_WORDS


def test_terms_come_and_go_with_the_notes(notes, spelled):
    notes.save(MEDICAL)
    assert spelled("angiogenisis") == {}
    notes.save({"new.md": "angiogenesis\n"})
    assert spelled("angiogenisis") == {"angiogenisis": "angiogenesis"}
    notes.remove("new.md")
    assert spelled("angiogenisis") == {}
    notes.save({"new.md": "angiogenisis\n"})
    assert spelled("angiogenisis") == {}, "it is a word now"
    notes.reopen()
    assert spelled("breats") == {"breats": "breast"}


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_a_misspelled_query_finds_what_the_right_one_does(notes, pieces, mode):
    notes.save(MEDICAL | {f"filler/{n}.md": f"other matters {n}\n" for n in range(30)})
    right = [hit.source.path for hit in asked(notes, "neurodegeneration kinase", pieces, mode=mode).hits]
    answer = asked(notes, "neurodegeneratoin kinasse", pieces, mode=mode)
    assert right[0] == "b.md"
    assert answer.hits[0].source.path == "b.md"
    assert answer.hits[0].snippet.match_column == 26
    if mode == "keyword":
        assert notes.found("neurodegeneratoin kinasse") == []


def test_a_correction_counts_for_less_than_the_word_itself(notes, pieces):
    """Otherwise a guess would have the confidence of the typed word."""
    notes.save(MEDICAL)
    [right, *_] = asked(notes, "phosphorylation", pieces).hits
    [guessed, *_] = asked(notes, "phosphorilation", pieces).hits
    assert right.candidate.id == guessed.candidate.id
    assert 0.5 * right.candidate.merged < guessed.candidate.merged < right.candidate.merged


def test_the_higher_cosine_of_both_texts_counts(notes, pieces):
    notes.save({"a.md": "kinase\n", "b.md": "unrelated\n"})
    request = notes.request("unrelated", mode="vector", min_score=0.0)
    both = replace(request, corrected_vec=notes.embedder.embed_query("kinase"))
    with notes.index.view() as view:
        scores = {hit.source.path: hit.candidate.vector_score for hit in search(view, both).hits}
    assert scores == {"a.md": pytest.approx(1.0), "b.md": pytest.approx(1.0)}


def test_a_vector_of_another_model_corrects_nothing(notes, pieces):
    """It was made by a model that took the place of the query's in that moment."""
    notes.save({"a.md": "kinase\n"})
    request = replace(notes.request("kinase", mode="vector"), corrected_vec=b"\0" * 8)
    with notes.index.view() as view:
        assert [hit.source.path for hit in search(view, request).hits] == ["a.md"]


def test_a_deadline_ends_the_corrections(notes, pieces):
    notes.save(MEDICAL)
    assert looked_up(notes, "breats", pieces, expired=lambda: True).corrected == {}
