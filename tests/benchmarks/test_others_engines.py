import json
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.others import contest as contests
from benchmarks.others.contest import contest
from benchmarks.others.corpora import Corpus, Question, clusters, nearest, text_questions, written
from benchmarks.others.engine import ENGINES, Host, Known, missing
from benchmarks.others.remote import Remote, RemoteError

ROWS = 300
# Those that find what the exact scan finds, in a corpus this small.
VECTOR = ["memd", "numpy exact", "faiss flat", "sqlite-vec", "usearch", "chromadb", "lancedb"]
KEYWORD = ["memd", "bm25s", "tantivy", "lancedb"]
HYBRID = ["memd", "sqlite-vec", "lancedb"]
TEXTS = [
    "the gene BRCA1 raises the risk of breast cancer",
    "tabs or spaces for indentation",
    "a backup of the database is made at night",
    "breast stroke is a way to swim",
]


def only_installed(names):
    """Parametrize by engines; what is not installed is skipped, as the benchmarks name it missing."""
    return [
        pytest.param(name, marks=pytest.mark.skipif(missing(ENGINES[name]), reason="not installed"))
        for name in names
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    texts = [TEXTS[number] if number < len(TEXTS) else f"filler {number}" for number in range(ROWS)]
    rows = np.load(clusters(folder / "clusters.npy", ROWS, dim=32))
    rows[: len(TEXTS)] = -rows[200]  # what row 200 finds, it does not find by these
    file = folder / "vectors.npy"
    np.save(file, rows)
    return Corpus(ROWS, vectors=file, texts=written(folder / "texts.txt", texts))


def opened(name, folder, corpus):
    """Build with one host and open with another, as a contest does."""
    Host(ENGINES[name].target, folder).build(corpus)
    host = Host(ENGINES[name].target, folder)
    host.open()
    return host


@pytest.mark.filterwarnings("ignore")  # theirs, not ours
@pytest.mark.parametrize("name", only_installed(VECTOR))
def test_each_engine_finds_the_nearest_rows(name, tmp_path, corpus):
    host = opened(name, tmp_path, Corpus(ROWS, vectors=corpus.vectors))
    question = Question(text="", vector=np.array(corpus.matrix()[7]))
    [truth] = nearest(corpus, [question], 5)
    for way in host.open():
        if way.startswith("vector"):
            [answer] = host.ask(way, [question], 5)
            assert answer.ids[0] == 7, way
            if (name, way) != ("memd", "vector"):  # which counts sources, too
                assert len(set(answer.ids) & set(truth)) >= 4, way
            assert answer.ms > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", only_installed(KEYWORD))
def test_each_engine_finds_texts_by_any_of_the_words(name, tmp_path, corpus):
    host = opened(name, tmp_path, Corpus(ROWS, texts=corpus.texts))
    for way in host.open():
        if way.startswith("keyword"):
            [answer] = host.ask(way, [Question(text="what is the risk of breast cancer?")], 5)
            assert answer.ids == [0, 3], way


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", only_installed(HYBRID))
def test_each_hybrid_answer_uses_both_arms(name, tmp_path, corpus):
    host = opened(name, tmp_path, corpus)
    question = Question(text="indentation", vector=np.array(corpus.matrix()[200]))
    [answer] = host.ask("hybrid", [question], ROWS // 2)  # a third of the rows is of row 200's cluster
    assert {1, 200} <= set(answer.ids)


def test_a_corpus_is_marked_by_what_is_in_it(corpus, tmp_path):
    """An engine that was built from other vectors or more rows is not taken for one that can be kept."""
    other = clusters(tmp_path / "other.npy", ROWS, dim=32, seed=8)
    marks = {
        corpus.mark(), Corpus(ROWS, vectors=corpus.vectors).mark(), Corpus(ROWS, vectors=other).mark(),
        Corpus(ROWS - 1, vectors=corpus.vectors).mark(), Corpus(ROWS, texts=corpus.texts).mark(),
        Corpus(ROWS - 1, texts=corpus.texts).mark(),
    }  # fmt: skip
    assert len(marks) == 6


class Options:
    """What a contest reads of a command line."""

    engines = ("numpy exact", "absent", "broken")
    rounds = 2
    build_only = False
    memd_index = None

    def __init__(self, folder):
        self.folder = folder


def test_a_contest_goes_on_without_engines_that_are_missing_or_fail(tmp_path, corpus, monkeypatch):
    broken = Known("benchmarks.others.engines.numpy_exact:Nothing", "numpy", "numpy")
    engines = {**ENGINES, "absent": Known("x:Y", "no_such_module", "no-such-package"), "broken": broken}
    monkeypatch.setattr(contests, "ENGINES", engines)
    questions = [Question(vector=np.array(row)) for row in corpus.matrix()[:4]]
    given = Corpus(ROWS, vectors=corpus.vectors)
    rows, raw = contest(given, questions, Options(tmp_path), kind="vector")
    assert [(row["engine"], row["state"]) for row in rows] == [
        ("numpy exact", "ok"),
        ("absent", "missing"),
        ("broken", "failed"),
    ]
    assert raw["troubles"]["absent"] == "missing: pip install no-such-package"
    assert [len(one) for one in raw["ms"]["numpy exact"]] == [2, 2]


def test_what_was_built_is_kept(tmp_path, corpus):
    options = Options(tmp_path)
    options.engines = ("numpy exact",)
    given = Corpus(ROWS, vectors=corpus.vectors)
    contest(given, [], options, kind="vector")
    [kept] = tmp_path.rglob("built.json")
    kept.write_text(json.dumps({"seconds": 1234.0}))
    rows, _ = contest(given, [], options, kind="vector")
    assert rows[0]["build s"] == "1234"


def test_a_process_that_dies_is_an_error_of_its_engine_alone():
    remote = Remote("collections:deque")
    remote.call("append", 1)
    with pytest.raises(RemoteError, match="IndexError"):
        [remote.call("pop") for _ in range(2)]
    remote._process.terminate()
    with pytest.raises(RemoteError):
        [remote.call("append", 2) for _ in range(2)]
    remote.close()


def test_an_object_that_cannot_be_made_is_an_error():
    with pytest.raises(RemoteError, match="ModuleNotFoundError"):
        Remote("no_such_module:Thing")


def test_every_adapter_belongs_to_an_engine_that_pip_knows():
    for known in ENGINES.values():
        assert find_spec(known.target.partition(":")[0]) is not None


def test_questions_and_texts_share_their_vocabulary(corpus):
    assert text_questions(5) == text_questions(5)
    assert all(6 <= len(question.text.split()) <= 12 for question in text_questions(5))
