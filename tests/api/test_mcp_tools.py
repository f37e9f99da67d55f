"""The tools of `memctl mcp` take and answer what the protocol's methods take and answer."""

import json

import msgspec
import pytest

from memctl.mcp import tools as served
from memd.api import params
from memd.api.methods import METHODS
from memd.api.results import SearchHit, SearchResult
from memd.errors import InvalidError
from tools import mcp_tools
from tools.generate import structs
from tools.mcp_tools import HIDDEN_KEYS, HIDDEN_PARAMS, TOOLS, Tool, method_of, tools_json


class GainedParams(params.GetParams, frozen=True, kw_only=True):
    """What ``get`` might take one day."""

    colour: str | None = None  # of the ink


TOOL = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
ENTRIES = json.loads(tools_json())
SCHEMAS = {entry["tool"]["name"]: entry["tool"] for entry in ENTRIES}
ANSWERS = {entry["tool"]["name"]: entry["answer"] for entry in ENTRIES}
MAX_TOKENS = 1_800  # that every conversation of an agent pays for the list


def own(tool: Tool) -> type[params.Params]:
    """Return what the method of a tool takes."""
    return METHODS[method_of(tool)].params


@TOOL
def test_a_tool_takes_every_parameter_that_is_not_hidden(tool):
    """What a method gains is the tool's; what is hidden has a reason."""
    taken = SCHEMAS[tool.name]["inputSchema"]["properties"].keys()
    hidden = {name for name in own(tool).__struct_fields__ if name in HIDDEN_PARAMS} | tool.hidden.keys()
    assert taken - tool.schemas.keys() <= set(own(tool).__struct_fields__)
    assert set(own(tool).__struct_fields__) <= taken | hidden
    assert not taken & hidden
    assert all(tool.hidden.values())


@TOOL
def test_what_a_tool_can_change_was_looked_at(tool):
    """A parameter that a writing method gains is described for agents or hidden from them, not handed on."""
    if not tool.hints["readOnlyHint"]:
        assert tool.texts.keys() == SCHEMAS[tool.name]["inputSchema"]["properties"].keys()


@TOOL
def test_no_row_of_the_table_names_what_is_gone(tool):
    """A text or a reason for a parameter that the method lost says nothing any more."""
    fields = set(own(tool).__struct_fields__)
    assert tool.hidden.keys() <= fields
    assert {*tool.required} <= fields
    assert tool.texts.keys() <= SCHEMAS[tool.name]["inputSchema"]["properties"].keys()


def test_every_hidden_key_is_one_of_its_struct():
    known = {kind.__name__: kind.__struct_fields__ for kind in structs() if issubclass(kind, msgspec.Struct)}
    for name, keys in HIDDEN_KEYS.items():
        assert set(keys) <= set(known[name]), name
    common = {name for method in METHODS.values() for name in method.params.__struct_fields__}
    assert HIDDEN_PARAMS.keys() <= common


def test_a_parameter_that_a_method_gains_is_the_tools(monkeypatch):
    """With its comment for the agent, and without a null."""
    monkeypatch.setitem(METHODS, "get", METHODS["get"]._replace(params=GainedParams))
    [entry] = [one for one in json.loads(tools_json()) if one["method"] == "get"]
    gained = entry["tool"]["inputSchema"]["properties"]["colour"]
    assert gained == {"type": "string", "description": "Of the ink"}


@TOOL
def test_the_method_refuses_what_the_schema_refuses(tool):
    """The daemon checks the bounds that an agent is told; the server hands arguments on as they are."""
    schema = SCHEMAS[tool.name]["inputSchema"]
    given = dict.fromkeys([*schema["required"], *tool.optional], "x")
    params.convert(given, own(tool))
    for name in schema["required"]:
        if name not in tool.required:
            with pytest.raises(InvalidError):
                params.convert({key: value for key, value in given.items() if key != name}, own(tool))
    for name, one in schema["properties"].items():
        for bound, step in (("minimum", -1), ("maximum", 1)):
            if bound in one:
                with pytest.raises(InvalidError):
                    params.convert(given | {name: one[bound] + step}, own(tool))


def test_the_list_of_tools_is_cheap():
    """In the estimate of `recall`: four bytes a token."""
    listed = json.dumps([entry["tool"] for entry in ENTRIES], ensure_ascii=False, separators=(",", ":"))
    assert len(listed.encode()) // served.BYTES_PER_TOKEN <= MAX_TOKENS


def test_an_answer_is_cut_to_what_its_schema_promises():
    """Whatever else the daemon says, in lists and in maps as well; what may be null may be null."""
    schema = ANSWERS["search_memory"]
    answer = {"hits": [{"path": "a.md", "arms": {}, "folded": [{"path": "b.md", "id": 1}], "source": None}],
              "corrected": {"a": "b"}, "took_ms": 1.0, "model_id": None}  # fmt: skip
    assert served.shaped(answer, schema) == {
        "hits": [{"path": "a.md", "folded": [{"path": "b.md"}], "source": None}],
        "corrected": {"a": "b"},
    }
    nullable = {"anyOf": [schema["properties"]["hits"], {"type": "null"}]}
    assert served.shaped(None, nullable) is None
    assert served.shaped([{"arms": 1}], nullable) == [{}]


def test_an_agent_is_told_all_of_a_hit_but_what_is_for_people_who_tune():
    hits = ANSWERS["search_memory"]["properties"]["hits"]["items"]["properties"]
    assert hits.keys() == set(SearchHit.__struct_fields__) - set(mcp_tools.HIDDEN_KEYS["SearchHit"])
    assert {"expired", "superseded_by", "entries", "source"} <= hits.keys()
    answers = ANSWERS["search_memory"]["properties"].keys()
    assert {"folders", "without_minus", "corrected"} <= answers
    hidden = set(HIDDEN_KEYS["SearchResult"])
    assert answers == set(SearchResult.__struct_fields__) - hidden | {"note", "complete"}
