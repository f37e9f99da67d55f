"""Which texts of an answer are looked through for secrets before an agent gets them."""

import dataclasses
import typing

import msgspec

from memctl import protocol
from memd.api.masking import PASSES, masked_answer
from memd.api.methods import METHODS
from memd.rpc.context import Packed

TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3  # put together here, so that no scanner takes it for a leak
MASKED = {
    *("collection", "last_error", "refused", "words_only"),
    *("aliases", "as_words", "part", "state_dir"),
    "address", "advice", "agents_ignore", "ahead_of", "checked", "client", "core", "copies", "corrected",
    "decay", "detail",
    "error", "errors", "features", "filter", "folders", "forms", "fusion",
    "has", "heading", "held", "ignore", "ignored",
    "instance_id", "key", "lacking", "lacks", "left_out", "machine", "match_text", "method", "model", "name",
    "onnxruntime", "owner", "packages", "provider", "python", "reason", "rule", "server_version", "set_aside",
    "snippet", "sources", "sqlite", "system", "tags", "target", "term", "templates", "text",
    "threads", "timings_ms", "unmatched", "unread",
    "title", "trouble", "unresolved", "value", "vector_arm", "version", "warning", "watching", "without",
    "words", "written",
}  # fmt: skip


def keys_of_texts(kind, seen) -> set[str]:
    """Return the keys, at any depth of an answer, that have a text or a list of texts."""
    if kind in seen:
        return set()
    seen.add(kind)
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)):
        hints = typing.get_type_hints(kind)
        return {key for key, hint in hints.items() if has_text(hint)}.union(
            *(keys_of_texts(hint, seen) for hint in hints.values())
        )
    return set().union(*(keys_of_texts(one, seen) for one in typing.get_args(kind)))


def has_text(hint) -> bool:
    return hint in (str, typing.Any) or any(has_text(one) for one in typing.get_args(hint) if one is not hint)


def test_every_text_of_every_answer_passes_or_is_masked():
    """A new key is on neither list: decide whether a note can have written what it has."""
    keys = set().union(*(keys_of_texts(method.result, set()) for method in METHODS.values()))
    assert keys - PASSES - MASKED == set(), "new"
    assert MASKED - keys == set(), "gone"
    assert PASSES - keys == set(), "gone"
    assert set() == MASKED & PASSES


def test_texts_are_masked_at_any_depth_and_what_names_a_file_is_not():
    link = {"target": TOKEN, "path": f"{TOKEN}.md", "line": None}
    told = {"links": {"outgoing": [link]}, "tags": [TOKEN, "a"], "corrected": {"a": TOKEN}, "hits": []}
    answer = masked_answer(Packed(protocol.pack_value(told)))
    assert msgspec.msgpack.decode(answer.result) == {
        "links": {"outgoing": [link | {"target": "[masked: github-pat]"}]},
        "tags": ["[masked: github-pat]", "a"],
        "corrected": {"a": "[masked: github-pat]"},
        "hits": [],
    }


def test_a_path_passes_under_each_of_its_names_and_a_part_of_an_answer_under_none():
    """`to` of a link is a path, and of `similar` a chunk with its texts."""
    told = {"to": f"{TOKEN}.md", "removed": [f"{TOKEN}.md"], "superseded_by": [f"{TOKEN}.md"]}
    answer = masked_answer(Packed(protocol.pack_value(told | {"text": TOKEN})))
    assert msgspec.msgpack.decode(answer.result) == told | {"text": "[masked: github-pat]"}
    answer = masked_answer(Packed(protocol.pack_value({"to": {"path": f"{TOKEN}.md", "heading": TOKEN}})))
    assert msgspec.msgpack.decode(answer.result) == {
        "to": {"path": f"{TOKEN}.md", "heading": "[masked: github-pat]"}
    }


def test_an_answer_without_secrets_is_the_same_bytes():
    for told in ({"text": "no secret", "path": TOKEN}, {"text": "none", "path": "\udcff.md"}):
        answer = Packed(protocol.pack_value(told))
        assert masked_answer(answer) is answer
