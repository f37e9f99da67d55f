"""A model describes how its cosines become scores, so that thresholds mean the same with every model."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests_support import WordHashEmbedder

from memd.embedding import UnavailableError
from memd.embedding.cosines import PAIRS_FILE, measured, scale_of
from memd.embedding.model_folder import OWN_FILE, read_folder
from memd.embedding.onnx import OnnxEmbedder
from memd.records import PAIR_MEAN, RANDOM_MEAN, SHIPPED_COSINES, UNMEASURED, CosineScale
from memd.search.confidence import NEAR
from memd.search.vector import scored

# Like multilingual-e5-small: unrelated texts have a cosine of .77.
FAR = CosineScale(0.7618, 5.5, 0.16)


class Lifted(OnnxEmbedder):
    """The shipped model with a constant beside each vector, so that all its cosines are high."""

    model_id = "lifted"

    def _embed(self, text: str) -> bytes:
        vector = 0.4 * self._vector(text).astype("<f4")
        return np.append(vector, np.float32(math.sqrt(1 - 0.16))).astype("<f4").tobytes()


def test_the_shipped_model_is_the_scale(shipped: OnnxEmbedder):
    found = measured(shipped)
    assert abs(found.zero) < 1e-3
    assert abs(found.scale - 1) < 1e-3
    assert abs(found.random_sd - SHIPPED_COSINES.random_sd) < 1e-3
    assert shipped.cosines == SHIPPED_COSINES


def test_a_model_with_high_cosines_is_mapped_on_the_shipped_one():
    """Cosines of .84 + .16 c get the scores c."""
    found = measured(Lifted())
    assert abs(found.zero - 0.84) < 1e-3
    assert abs(found.scale - 1 / 0.16) < 0.02
    assert abs(found.score(0.84 + 0.16 * 0.5) - 0.5) < 1e-3


def test_two_means_decide():
    """The mean of other pairs and that of own pairs have the shipped model's scores."""
    found = scale_of([[0.9, 0.7, 0.72], [0.74, 0.92, 0.7], [0.72, 0.74, 0.88]])
    assert math.isclose(found.score(0.72), RANDOM_MEAN)
    assert math.isclose(found.score(0.9), PAIR_MEAN)
    assert math.isclose(found.random_sd, math.sqrt(0.0008 / 3) * found.scale)


def test_a_model_that_tells_nothing_apart_stays_unmeasured():
    """If a question's own note is no nearer than others, no scale is made up."""
    assert scale_of([[0.5, 0.5], [0.5, 0.5]]) == UNMEASURED
    assert scale_of([[0.1, 0.9, 0.2], [0.8, 0.4, 0.1], [0.3, 0.6, 0.5]]) == UNMEASURED
    assert not UNMEASURED.is_measured


@pytest.mark.parametrize("cosines", [FAR, SHIPPED_COSINES, UNMEASURED, CosineScale(-0.1, 0.6, 0.1)])
def test_a_higher_cosine_has_a_higher_score(cosines: CosineScale):
    steps = [place / 200 for place in range(-200, 201)]
    scores = [cosines.score(step) for step in steps]
    assert scores == sorted(set(scores))
    assert scores[-1] <= 1 + 1e-12
    assert all(math.isclose(cosines.cosine(cosines.score(step)), step, abs_tol=1e-9) for step in steps)
    column = scored(np.array(steps, np.float32), cosines)
    assert np.allclose(column, scores, atol=2e-5)


def test_scores_of_the_shipped_model_are_its_cosines():
    """To the last bit: nothing is computed."""
    column = np.linspace(-1, 1, 101, dtype=np.float32)
    assert scored(column, SHIPPED_COSINES) is column
    assert SHIPPED_COSINES.near(NEAR) == NEAR
    assert SHIPPED_COSINES.cosine(0.95) == 0.95


def test_near_is_as_many_deviations_above_chance():
    """The threshold of a model with a wider spread is higher."""
    deviations = (0.25 - RANDOM_MEAN) / SHIPPED_COSINES.random_sd
    assert math.isclose(FAR.near(0.25), RANDOM_MEAN + deviations * FAR.random_sd)


def test_a_folder_states_its_cosines(tmp_path: Path):
    """Its memd.json has them; without the keys they are to be measured."""
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"{}")
    assert read_folder(tmp_path).cosines is None
    stated = {"cosine_zero": 0.7618, "cosine_scale": 5.5, "random_sd": 0.16}
    (tmp_path / OWN_FILE).write_text(json.dumps(stated))
    assert read_folder(tmp_path).cosines == FAR


@pytest.mark.parametrize(
    "stated",
    [
        {"cosine_zero": 0.7},
        {"cosine_zero": 1, "cosine_scale": 5.5, "random_sd": 0.16},
        {"cosine_zero": 0.7, "cosine_scale": 0, "random_sd": 0.16},
        {"cosine_zero": 0.7, "cosine_scale": "5", "random_sd": 0.16},
        {"cosine_zero": 0.7, "cosine_scale": math.inf, "random_sd": 0.16},
    ],
)
def test_impossible_cosines_are_refused(tmp_path: Path, stated: dict[str, object]):
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / OWN_FILE).write_text(json.dumps(stated))
    with pytest.raises(UnavailableError, match=r"memd\.json: .*expected three numbers"):
        read_folder(tmp_path)


def test_the_texts_are_pairs():
    pairs = json.loads(PAIRS_FILE.read_text())["pairs"]
    assert len(pairs) == len(dict(pairs)) == 32
    assert measured(WordHashEmbedder()) != replace(SHIPPED_COSINES)


def test_a_fifo_in_the_folder_of_a_model_is_no_file(tmp_path):
    """Its settings are refused at once; opening it would wait for ever."""
    os.mkfifo(tmp_path / "memd.json")
    with pytest.raises(UnavailableError, match=r"memd\.json cannot be read: .*not a regular file"):
        read_folder(tmp_path)
