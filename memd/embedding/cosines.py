"""The measurement of a model's cosines, which differ from model to model: `CosineScale`.

Unrelated texts have a cosine of about 0 with one model and of 0.77 with another. So two means are mapped on
those of the shipped model: of questions with other questions' notes, and of questions with their own notes.
"""

import json
from collections.abc import Sequence
from operator import mul
from pathlib import Path
from statistics import fmean, pstdev

from memd.embedding import Embedder
from memd.records import PAIR_MEAN, RANDOM_MEAN, UNMEASURED, CosineScale

PAIRS_FILE = Path(__file__).with_name("cosine_pairs.json")  # 32 questions, each with the note that answers it
# A model that does not tell a question's own note from others by this many standard deviations says nothing
# about these texts, such as one for another language. The shipped model has 4.3.
LEAST_SEPARATION = 1.0


def measured(embedder: Embedder) -> CosineScale:
    """Return the cosines of a model, UNMEASURED if it cannot tell the texts apart. Raises EmbedderError."""
    pairs = json.loads(PAIRS_FILE.read_text(encoding="utf-8"))["pairs"]
    questions = embedder.embed_queries([question for question, _ in pairs])
    notes = embedder.embed_documents([note for _, note in pairs])
    return scale_of([_cosines(question, notes) for question in map(_numbers, questions)])


def scale_of(table: Sequence[Sequence[float]]) -> CosineScale:
    """Return the scale by the cosine of each question (row) with each note; its own is in the diagonal."""
    own = fmean(row[place] for place, row in enumerate(table))
    others = [cosine for place, row in enumerate(table) for at, cosine in enumerate(row) if at != place]
    mean, deviation = fmean(others), pstdev(others)
    if not own - mean > LEAST_SEPARATION * deviation:
        return UNMEASURED
    scale = (PAIR_MEAN - RANDOM_MEAN) / (own - mean)
    return CosineScale(mean - RANDOM_MEAN / scale, scale, deviation * scale)


def _cosines(question: Sequence[float], notes: Sequence[bytes]) -> list[float]:
    return [sum(map(mul, question, _numbers(note))) for note in notes]


def _numbers(vector: bytes) -> Sequence[float]:
    return memoryview(vector).cast("f").tolist()
