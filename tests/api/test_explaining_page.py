"""docs/explaining.md names every stage, reason and number that travels."""

import re
from dataclasses import fields
from pathlib import Path

from memctl.codes import NO_VECTOR_ARM
from memd.api.why import _NOT_INDEXED, STAGES
from memd.search import explain
from memd.search.explanation import Word
from memd.sources.scan import WHY_NOT

PAGE = (Path(__file__).parents[2] / "docs" / "explaining.md").read_text(encoding="utf-8")


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^\| `([a-z0-9-]+)` \| (.*) \|$", text))


def test_stages_and_reasons_are_those_of_the_code():
    below = PAGE.partition("\n## Why a note")[2]
    stages, _, reasons = below.partition("\n| fact |")
    assert tuple(rows(stages)) == STAGES
    assert rows(reasons.partition("\n| reason |")[2]) == WHY_NOT
    for code in (*_NOT_INDEXED, *NO_VECTOR_ARM):
        assert f"`{code}`" in PAGE


def test_every_number_of_an_explanation_is_named():
    records = (
        explain.Explained, explain.VectorPart, explain.KeywordPart, explain.TermPart,
        explain.Length, explain.Decay, explain.AnswerExplanation, explain.Stages,
        explain.Filter, explain.NamedPart, Word,
    )  # fmt: skip
    named = {field.name for record in records for field in fields(record)} - {"hits"}
    assert {name for name in named if not re.search(rf"`(\w+\.)?{name}`", PAGE)} == set()
