"""The nearest rows are among those that their codes name, whichever rows may be named."""

import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss")

from memd.embedding.onnx import OnnxEmbedder
from memd.index import ann
from memd.index.ann import BLOCK_ROWS, Coder, Codes, Probes, stripes
from memd.index.codes import CANDIDATES
from memd.index.columns import Columns, mask_of

SAMPLE = Path(__file__).parents[1] / "sample"
NEAREST = 10
WINDOW, STEP = 20, 6  # words


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int, dim: int, seed: int = 1) -> np.ndarray:
    """Rows around some hundred centres, as notes are about some hundred things."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(count // 50 + 1, dim))
    return unit(centres[rng.integers(len(centres), size=count)] + rng.normal(size=(count, dim)))


def coded(rows: np.ndarray, slice_rows: int = 4 * BLOCK_ROWS) -> Codes:
    coder, written = Coder(rows), io.BytesIO()
    for first, end in stripes(len(rows)):
        for at in range(first, end, slice_rows):
            coder.add(rows[at : min(at + slice_rows, end)])
        coder.write(written.write)
    written.seek(0)
    return Codes.read(written.read, len(rows), CANDIDATES)


def recall(made: Codes, rows: np.ndarray, queries: np.ndarray, limit: int, mask: np.ndarray) -> float:
    """Return the share of the nearest allowed rows that are among those that the codes name."""
    found = 0
    for query in queries:
        scores = np.where(mask, rows @ query, -2)
        least = np.partition(scores, -NEAREST)[-NEAREST]
        named = made.nearest(query.tobytes(), limit, mask)
        found += min(NEAREST, np.count_nonzero(scores[named] >= least - 1e-6))
    return found / NEAREST / len(queries)


@pytest.fixture(scope="module")
def real():
    """Real vectors of some two thousand stretches of the sample notes, and of the headings as questions."""
    words = [path.read_text(encoding="utf-8").split() for path in sorted(SAMPLE.rglob("*.md"))]
    texts = [" ".join(one[at : at + WINDOW]) for one in words for at in range(0, len(one) - WINDOW, STEP)]
    embedder = OnnxEmbedder()
    rows = np.frombuffer(b"".join(embedder.embed_documents(texts)), np.float32).reshape(len(texts), -1)
    asked = ["how to make bread", "who decided on the database", "backup of the server", "piano practice"]
    asked += [" ".join(one[:8]) for one in words]
    queries = np.frombuffer(b"".join(embedder.embed_queries(asked)), np.float32).reshape(len(asked), -1)
    embedder.close()
    return rows, queries


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_the_nearest_of_real_vectors_are_named(real, share):
    rows, queries = real
    mask = np.random.default_rng(2).random(len(rows)) < share
    assert recall(coded(rows), rows, queries, 100, mask) >= 0.99


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05, 0.001])
def test_the_nearest_of_clustered_vectors_are_named(share):
    rows = clustered(20_000, 64)
    queries = unit(rows[::500] + np.random.default_rng(3).normal(size=(40, 64)) / 2)
    made = coded(rows)
    scattered = np.random.default_rng(4).random(len(rows)) < share
    joined = np.zeros(len(rows), np.bool_)
    joined[7_000 : 7_000 + int(share * len(rows))] = True
    for mask in (scattered, joined):
        assert recall(made, rows, queries, CANDIDATES, mask) >= 0.99


def test_all_are_named_where_few_are_allowed():
    rows = clustered(1_000, 32)
    made = coded(rows)
    for allowed in ([], [999], [0, 31, 32, 500, 998]):
        mask = np.zeros(len(rows), np.bool_)
        mask[allowed] = True
        assert set(allowed) <= set(made.nearest(rows[3].tobytes(), 50, mask).tolist())


def test_a_thin_mask_leaves_as_many_candidates():
    """What is read between the allowed rows takes nobody's place."""
    rows = clustered(20_000, 32)
    made = coded(rows)
    mask = np.random.default_rng(6).random(len(rows)) < 0.02
    named = made.nearest(rows[7].tobytes(), 150, mask)
    assert np.count_nonzero(mask[named]) >= 120


def test_chunks_are_named_of_those_that_the_mask_lets_through():
    """The mask comes before the cut, so a filter costs no recall."""
    rows = clustered(5_000, 32)
    added = [(number, 1, number - 1, 1) for number in range(1, len(rows) + 1)]
    columns = Columns.empty().changed(removed=[], added=added, embedded=[])
    mask = mask_of(columns, None)
    mask[200:] = False
    made = coded(rows)
    named = made.chunks(rows[4_000].tobytes(), 50, columns, mask)
    assert len(named) >= 40
    assert mask[named].all()
    assert len(made.chunks(rows[4_000].tobytes(), 50, columns, mask_of(columns, None))) == 50


@pytest.mark.parametrize("count", [31, 32, 33, 1_000])
def test_the_last_block_may_be_part_full(count):
    rows = clustered(count, 32)
    made = coded(rows)
    for limit in (count // 2, count):
        found = made.nearest(rows[0].tobytes(), limit, np.ones(count, np.bool_))
        assert len(set(found.tolist())) == limit
        assert set(found.tolist()) <= set(range(count))
        assert 0 in found


@pytest.mark.parametrize("dim", [4, 12, 384])
def test_any_multiple_of_four_dimensions_can_be_coded(dim):
    rows = clustered(300, dim)
    assert ann.fits(dim)
    assert not ann.fits(dim + 1)
    made = coded(rows)
    assert made.wrong(rows, 300) == 0
    assert 0 in made.nearest(rows[0].tobytes(), 150, np.ones(300, np.bool_))


def test_the_same_query_names_the_same_rows():
    rows = clustered(5_000, 64)
    one, other = coded(rows), coded(rows, slice_rows=7 * BLOCK_ROWS)
    everything = np.ones(len(rows), np.bool_)
    for query in rows[:20]:
        named = one.nearest(query.tobytes(), 100, everything).tolist()
        assert one.nearest(query.tobytes(), 100, everything).tolist() == named
        assert other.nearest(query.tobytes(), 100, everything).tolist() == named


def test_codes_of_other_rows_are_noticed():
    rows = clustered(2_000, 64)
    made = coded(rows)
    assert made.wrong(rows, 100) == 0
    others = rows.copy()
    others[1_000:] = clustered(1_000, 64, seed=8)
    assert 40 <= made.wrong(others, 100) <= 60


def test_the_measured_recall_is_that_of_the_scan():
    """Probes that see all rows part by part agree with a scan of all, and miss more with few candidates."""
    rows = clustered(3_000, 64)
    made = coded(rows)
    probes = Probes(rows, 50)
    for at in range(0, len(rows), 700):
        probes.look(rows[at : at + 700])
    assert probes.recall(made, len(rows)) == 1.0
    chosen = rows[np.linspace(0, len(rows) - 1, 50).astype(int)]
    everything = np.ones(len(rows), np.bool_)
    hits = 0
    for query in chosen:
        nearest = np.argsort(-(rows @ query))[1 : NEAREST + 1]
        hits += len(set(nearest.tolist()) & set(made.nearest(query.tobytes(), 20, everything).tolist()))
    assert probes.recall(made, 20) == pytest.approx(hits / 500)
    assert probes.recall(made, 20) < 0.99
