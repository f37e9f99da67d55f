"""Edits of JSON with comments: what is asked for changes, all else stays to the character."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.agents.json_edit import JsonSyntaxError, append, parse, put, remove

SERVER = {"command": "memctl", "args": ["mcp"]}

COMMENTED = """\
// My settings.
{
    "theme": "dark", // at night
    /* servers */
    "mcpServers": {
        "other": { "command": "x" }, // keep
    },
}
"""


def test_a_member_is_put_behind_the_others_as_they_are_written():
    """Comments, order, indentation and the trailing comma stay."""
    assert put(COMMENTED, ["mcpServers", "memd"], SERVER) == COMMENTED.replace(
        "// keep\n",
        '// keep\n        "memd": {\n            "command": "memctl",\n            "args": [\n'
        '                "mcp"\n            ]\n        },\n',
    )


def test_what_was_put_is_removed_to_the_character():
    """Also with comments beside it."""
    changed = put(COMMENTED, ["mcpServers", "memd"], SERVER)
    assert remove(changed, ["mcpServers", "memd"]) == COMMENTED


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "a": 1\n}\n',
        '{\n  "a": 1 // one\n}',
        '{\r\n\t"a": 1\r\n}\r\n',
        '{"a": 1}',
        '{ "a": [1, 2], }',
        "{a: 'x', // JSON5\n b: +.5, c: 0xFF}",
        '{\n  "m": {}\n}',
        '{\n  "m": {"x": 1}\n}',
        '\ufeff{\n  "a": "\\u00e4\\n//no comment", "b": "/*"\n}',
    ],
)
def test_put_and_remove_are_inverse(text):
    """Whatever the style, in an object that is there and has members."""
    changed = put(text, ["new"], {"x": [1, {"y": "ü"}]})
    assert parse(changed).plain == parse(text).plain | {"new": {"x": [1, {"y": "ü"}]}}
    assert remove(changed, ["new"]) == text


def test_missing_objects_and_arrays_are_made():
    """On the way to what is put."""
    text = append("{}\n", ["hooks", "Stop"], {"x": 1})
    assert json.loads(text) == {"hooks": {"Stop": [{"x": 1}]}}
    assert text.startswith('{\n  "hooks": {\n    "Stop": [\n')
    assert text.endswith("\n}\n")


def test_an_element_is_appended_and_removed():
    """Those before it stay."""
    text = '{\n  "Stop": [\n    {"x": 1}\n  ]\n}\n'
    changed = append(text, ["Stop"], {"y": 2})
    assert json.loads(changed) == {"Stop": [{"x": 1}, {"y": 2}]}
    assert remove(changed, ["Stop", 1]) == text
    assert json.loads(remove(changed, ["Stop", 0])) == {"Stop": [{"y": 2}]}


def test_a_value_is_replaced_in_its_place():
    """Its neighbours stay."""
    assert put('{"a": {"b": 1}, "c": 2}', ["a"], 3) == '{"a": 3, "c": 2}'


def test_of_two_equal_keys_the_last_counts():
    """As it does for those who read the file."""
    assert put('{"a": 1, "a": 2}', ["a"], 3) == '{"a": 1, "a": 3}'


@pytest.mark.parametrize("text", ["[]", '"x"', '{"m": []}', '{"m": null}'])
def test_what_is_no_object_is_not_written_into(text):
    """The error names it."""
    with pytest.raises(TypeError, match="no object"):
        put(text, ["m", "memd"], 1)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a"}', '{"a": }', '{"a": 1 "b": 2}', "{} {}", '{"a": 1,, }', "[1, 2", '{"a": "', "{a: b}",
     '{"a": 01x}', "// only a comment", "/* open", '{"a": "line\nbreak"}', "[" * 1000],
)  # fmt: skip
def test_what_is_no_json_is_refused(text):
    """With line and column."""
    with pytest.raises(JsonSyntaxError, match=r"line \d+ column \d+"):
        parse(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 0, 1, 2, "\t"]), st.booleans())
def test_plain_json_is_read_as_json_reads_it(value, indent, ascii_only):
    """Any value, in any layout."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse(text).plain == value


@given(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    VALUES,
    st.sampled_from([["\u0100new"], ["\u0100new", "deeper"]]),
)
def test_any_edit_changes_one_thing(value, indent, new, path):
    """Its text is JSON with that one thing, and without it the same as before."""
    text = json.dumps(value, indent=indent)
    changed = put(text, path, new)
    wanted = new if len(path) == 1 else {path[1]: new}
    assert json.loads(changed) == value | {path[0]: wanted}
    assert json.loads(remove(changed, path[:1])) == value
    if value:
        assert remove(changed, path[:1]) == text
