"""The hits of several workspaces, merged by score: those of one model each. Pure."""

import heapq
import itertools
from typing import Any

Answer = dict[str, Any]
Hit = dict[str, Any]


def groups(answers: list[Answer]) -> list[list[Hit]]:
    """Return the hits grouped by model, best first; the model of keyword-only answers is None."""
    found: dict[str | None, list[list[Hit]]] = {}
    for answer in answers:
        about = {"workspace": answer["workspace"], "model_id": answer.get("model_id")}
        found.setdefault(about["model_id"], []).append([{**hit, **about} for hit in answer["hits"]])
    return [_merged(group) for group in found.values()]


def _merged(answers: list[list[Hit]]) -> list[Hit]:
    """Merge answers by score, then date, newest first; the hits of one answer keep their order.

    A note may precede a better note that it supersedes, so each hit counts with the best score from it
    onward.
    """
    ranked = []
    for found in answers:
        best_from_here = itertools.accumulate((hit["score"] for hit in reversed(found)), max)
        ranked.append(zip(list(best_from_here)[::-1], found, strict=True))

    def rank(counted: tuple[float, Hit]) -> tuple[float, tuple[int, ...], str, str]:
        score, hit = counted
        return -score, tuple(-ord(sign) for sign in str(hit.get("date"))), hit["workspace"], hit["path"]

    return [hit for _, hit in heapq.merge(*ranked, key=rank)]
