import numpy as np
import pytest

from benchmarks import made_index
from benchmarks.others.corpora import Corpus, Question, clusters, nearest, recall, texts, vectors


def test_clusters_are_the_same_for_a_seed(tmp_path):
    first = np.load(clusters(tmp_path / "a.npy", 500, dim=16))
    second = np.load(clusters(tmp_path / "b.npy", 500, dim=16))
    other = np.load(clusters(tmp_path / "c.npy", 500, dim=16, seed=8))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_clusters_are_unit_vectors_with_neighbours(tmp_path):
    rows = np.load(clusters(tmp_path / "a.npy", 1000, dim=384))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, 0)
    assert np.median(cosines.max(axis=1)) > 0.4  # of 1,000 random ones the nearest is at 0.17


def test_texts_are_those_of_the_made_index(tmp_path):
    """Line by line what `made_index` puts into its chunks, so that an index it made can be compared."""
    path = texts(tmp_path, 7)
    words = made_index.Words()
    made = [one.chunk.text for number in (0, 1) for one in made_index.source(words, number).chunks]
    assert list(Corpus(7, texts=path).lines()) == made[:7]
    assert all(len(line.split()) == made_index.WORDS_A_CHUNK for line in made)


def test_frequent_words_are_frequent(tmp_path):
    words = " ".join(Corpus(200, texts=texts(tmp_path, 200)).lines()).split()
    first, second, tenth = (words.count(made_index.word(number)) for number in (0, 1, 9))
    assert first / second == pytest.approx(2, rel=0.2)
    assert first / tenth == pytest.approx(10, rel=0.3)


def test_questions_are_rows_behind_those_that_are_indexed(tmp_path):
    """A question is no row of the corpus: else every engine would find it at distance 0."""
    made = clusters(tmp_path / "real.npy", 60, dim=16)
    path, questions = vectors(tmp_path, made, 50, 10)
    assert path == made
    assert np.array_equal(np.stack([q.vector for q in questions]), np.load(made)[50:])


def test_rows_that_are_not_written_yet_are_refused(tmp_path):
    """A matrix that another process still fills ends in rows of zeros; recall on them means nothing."""
    rows = np.load(clusters(tmp_path / "a.npy", 60, dim=16))
    rows[40:] = 0
    np.save(tmp_path / "half.npy", rows)
    with pytest.raises(SystemExit, match="row 40 has length 0"):
        vectors(tmp_path, tmp_path / "half.npy", 50, 10)


def test_too_few_rows_are_refused(tmp_path):
    made = clusters(tmp_path / "a.npy", 30, dim=16)
    with pytest.raises(SystemExit, match="has 30 rows"):
        vectors(tmp_path, made, 30, 1)


def test_the_nearest_rows_are_exact_over_all_slabs(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.others.corpora.SLAB_ROWS", 64)
    corpus = Corpus(300, vectors=clusters(tmp_path / "a.npy", 310, dim=16))
    questions = [Question(vector=row) for row in np.load(tmp_path / "a.npy")[300:]]
    scores = np.stack([q.vector for q in questions]) @ corpus.matrix().T
    assert nearest(corpus, questions, 5) == np.argsort(-scores, axis=1)[:, :5].tolist()


def test_recall_counts_true_neighbours_whatever_their_order():
    """Three of four true neighbours are 0.75; what is no neighbour, or comes twice, adds nothing."""
    assert recall([[2, 1, 9], [4, 4]], [[1, 2], [3, 4]]) == 0.75
    assert recall([], []) == 0.0
