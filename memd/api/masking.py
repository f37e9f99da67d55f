"""Masking of secrets in answers to agents: once, over every text that may come from a note.

Text that is masked already does not change. Run it in a reading thread: an answer may hold megabytes.
"""

from typing import Any

from memctl import protocol
from memd.entries.secrets import find_secrets, mask
from memd.rpc.context import Packed

# The keys whose texts are not masked: names of files and folders, which an agent uses in later requests (a
# token in a file's name stays), and values that memd makes itself. Texts under any other key are masked.
PASSES = frozenset({
    "path", "root", "workspace", "workspaces", "within", "config", "close", "place", "not_utf8",
    "superseded_by", "supersedes", "next", "paths", "removed", "to", "id", "entry", "hash", "keys",
    "model_id", "conversation",
    "degraded", "state", "date", "created", "updated", "time", "kind", "origin", "estimator", "stage",
    "tier", "entries", "expired", "recalled", "day", "first", "last", "newest",
})  # fmt: skip


def masked_answer(answer: Packed) -> Packed:
    """Return an answer, which is a map, with its secrets masked."""
    fields = protocol.unpack_value(answer.result)
    # One search over all texts: it takes the time of a single text, and usually finds no secret.
    if not find_secrets("\n".join(_texts(fields))):
        return answer
    return Packed(protocol.pack_value(_masked(fields)))


def _texts(value: Any) -> list[str]:
    """Return the texts that may come from a note."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() if not _passes(key, item) for text in _texts(item)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def _passes(key: str, value: Any) -> bool:
    """Return whether a value is a text, or a list of texts, under a key that passes: no map."""
    some = value if isinstance(value, list) else [value]
    return key in PASSES and not any(isinstance(one, dict | list) for one in some)


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: item if _passes(key, item) else _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value
