"""Every answer has the keys and the types that its struct names."""

from typing import Any

import msgspec
from every_call import calls
from patience import PATIENCE

from memctl.client import RpcError
from memd.api.methods import METHODS


def test_every_answer_is_its_struct(daemon, tmp_path):
    for name in ("notes.md", "2026-05-01.md", "memory/facts/one.md"):
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("---\ntags: [shared]\n---\n# Herons\n\nThe same sentence, then a heron.\n")
    root = daemon.add(tmp_path / "notes")
    answered: set[str] = set()
    for method, params in calls(root, "heron"):
        try:
            with daemon.client() as client:
                answer: dict[str, Any] = client.call(
                    method, {"workspace": root, **params}, timeout_s=60 * PATIENCE
                )
        except RpcError:
            continue  # it has no answer
        answered.add(method)
        known = msgspec.convert(answer, METHODS[method].result)
        assert msgspec.json.decode(msgspec.json.encode(known)) == answer, (method, params)
    unanswered = {"forget"} | {method for method in METHODS if method.startswith("team.")}
    assert answered == METHODS.keys() - unanswered  # what it asks to forget is no entry, and there is no team
