from benchmarks.beir import Beir, Query
from benchmarks.quality import score


def test_a_document_ranks_where_its_best_chunk_does():
    """Further chunks of a document, files that are none of the set, and excluded pairs take no rank."""
    data = Beir(
        name="set",
        documents=[],
        queries=[Query("q", "text", "")],
        judgements={"q": {"second": 1}},
        excluded=frozenset({("q", "out")}),
    )
    ids = {"first.md": "first", "second.md": "second", "out.md": "out"}
    hits = ["first.md", "first.md", "out.md", "README.md", "second.md", "first.md"]
    [row] = score(data, ids, {"keyword": {"mode": "keyword"}}, lambda _text, _params: (hits, []))
    assert row["mrr@10"] == 0.5


def test_each_language_is_scored_by_itself():
    """Where queries name a language, each language gets a row below that of all."""
    data = Beir(
        name="set",
        documents=[],
        queries=[Query("q1", "good", "ja"), Query("q2", "bad", "ko")],
        judgements={"q1": {"d": 1}, "q2": {"d": 1}},
        excluded=frozenset(),
    )

    def search(text, _params):
        return (["d.md"] if text == "good" else []), []

    rows = score(data, {"d.md": "d"}, {"keyword": {"mode": "keyword"}}, search)
    assert [(row["lang"], row["recall@10"]) for row in rows] == [("all", 0.5), ("ja", 1.0), ("ko", 0.0)]


def test_degraded_answers_are_reported(capsys):
    """Figures of an arm that answered without its vectors do not pass for its own."""
    data = Beir("set", [], [Query("q", "text", "")], {"q": {"d": 1}}, frozenset())
    score(data, {}, {"vector": {"mode": "vector"}}, lambda _text, _params: ([], ["model-loading"]))
    assert "model-loading" in capsys.readouterr().err
