import json
import sys

from benchmarks import beir, quality
from benchmarks.beir import Beir, Query
from benchmarks.quality import Ranked, below, score


def test_a_document_ranks_where_its_best_chunk_does():
    data = Beir(
        name="set", documents=[], queries=[Query("q", "text", "")], judgements={"q": {"second": 1}},
        excluded=frozenset({("q", "out")}),
    )  # fmt: skip
    ids = {"first.md": "first", "second.md": "second", "out.md": "out"}
    hits = ["first.md", "first.md", "out.md", "README.md", "second.md", "first.md"]
    [row] = score(data, ids, {"keyword": {"mode": "keyword"}}, lambda _text, _params: (hits, []))
    assert row["mrr@10"] == 0.5


def test_each_language_is_scored_by_itself():
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


def test_a_folder_with_parts_is_one_set_a_kind(tmp_path):
    for part in ("en-a", "en-b"):
        _written(tmp_path / "m" / part, part, ("queries", "queries-history"))
    _written(tmp_path / "c" / "turns", "one/D1", ("queries",))
    found = beir.sets(tmp_path / "m") | beir.sets(tmp_path / "c")
    assert {name: [part.name for part in parts] for name, parts in found.items()} == {
        "m-en": ["en-a", "en-b"],
        "m-en-history": ["en-a", "en-b"],
        "c-turns": ["turns-one"],
    }


def test_hybrid_below_its_better_arm_fails(tmp_path, monkeypatch):
    """Only beyond noise; and the sets together are the folders of one workspace."""
    for name in ("one", "two"):
        _written(tmp_path / name, name, ("queries",))
    command = ["quality", f"{tmp_path}/one", f"{tmp_path}/two", "--never-below", "--hits", "10"]
    monkeypatch.setattr(sys, "argv", [*command, "--arms", "keyword", "vector", "hybrid"])
    quality.main()
    monkeypatch.setattr(sys, "argv", [*command, "--arms", "keyword", "vector", "hybrid", "--together"])
    quality.main()
    queries, judged = [Query(str(n), "", "") for n in range(20)], {str(n): {"d": 1} for n in range(20)}
    parts = [Beir("few", [], queries, judged, frozenset())]
    runs = {arm: {str(n): ["d"] for n in range(20)} for arm in ("keyword", "vector", "hybrid")}
    runs["hybrid"] = {str(n): ["x", "d"] for n in range(20)}
    assert [row["below"] for row in below([Ranked("few", parts, runs)])] == [True, True]
    runs["hybrid"] = runs["keyword"] | {"0": ["x", "d"]}
    assert [row["below"] for row in below([Ranked("few", parts, runs)])] == [False, False]


def _written(folder, name, asked):
    folder.mkdir(parents=True)
    document = {"_id": f"{name}:1", "title": "", "text": f"The trees of {name} are green."}
    (folder / "corpus.jsonl").write_text(json.dumps(document))
    for queries in asked:
        (folder / f"{queries}.jsonl").write_text(json.dumps({"_id": f"q-{name}", "text": "green trees"}))
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\nq-{name}\t{name}:1\t1\n")
