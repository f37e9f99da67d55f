import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.api import params
from memd.api.methods import METHODS
from memd.errors import InvalidError

KINDS = sorted({method.params for method in METHODS.values()}, key=lambda kind: kind.__name__)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(kind=st.sampled_from(KINDS), data=st.data())
def test_whatever_comes_is_converted_or_refused_with_its_place(kind, data):
    keys = st.sampled_from(kind.__struct_fields__) | st.text(max_size=8)
    given_params = data.draw(st.dictionaries(keys, VALUES, max_size=5))
    refused = ""
    try:
        params.convert(given_params, kind)
    except InvalidError as error:
        refused = str(error)
    assert not refused or refused.startswith("$")


def test_an_empty_map_of_lua_is_an_empty_map():
    assert params.convert({"query": "x", "weights": []}, params.SearchParams).weights == params.Weights()


@pytest.mark.parametrize("good", [True, False, 1, 1500])
def test_sync_is_yes_or_no_or_so_many_milliseconds(good):
    """What came is what the method gets: true is not taken for one millisecond."""
    converted = params.convert({"query": "x", "sync": good}, params.SearchParams).sync
    assert converted is good or (type(converted), converted) == (int, good)


@pytest.mark.parametrize("wrong", [0, -5, 1.5, "yes"])
def test_anything_else_is_no_sync(wrong):
    with pytest.raises(InvalidError, match=r"^\$\.sync: expected "):
        params.convert({"query": "x", "sync": wrong}, params.SearchParams)


def test_null_in_a_map_is_as_good_as_nothing():
    """A client with fixed fields sends all of them."""
    converted = params.convert({"query": "x", "weights": {"vector": None, "keyword": 1}}, params.SearchParams)
    assert converted.weights == params.Weights(keyword=1)


def test_what_must_be_given_cannot_be_null():
    with pytest.raises(InvalidError, match=r"^\$\.query: expected str, got null"):
        params.convert({"query": None}, params.SearchParams)


def test_every_method_has_a_limit_or_reports_progress():
    """Only what a caller may wait for as long as it takes has no deadline."""
    unlimited = {name for name, method in METHODS.items() if method.deadline_s is None}
    assert unlimited == {"index", "sync", "check", "forget", "workspace.add"}


@pytest.mark.parametrize("name", ["x" * 256, "\u00e9" * 128, f"a/{'x' * 300}/b.md"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_no_file_can_have_is_refused(kind, name):
    """In each parameter that names files, of each method: else the system's own error would come of it."""
    required = {"query": "x", "content": "x", "text": "x", "link": "x"}
    fields = {one.name: one for one in msgspec.structs.fields(kind)}
    given = {key: value for key, value in required.items() if key in fields}
    given |= {"path": "a.md"} if "path" in fields and fields["path"].required else {}
    paths = {"workspace": name, "update": name, "supersedes": ["a.md", name], "related": [name]}
    if kind not in {params.SearchParams, params.RecallParams}:  # there it is a pattern
        paths["path"] = name
    for key in paths.keys() & fields.keys():
        with pytest.raises(InvalidError, match=rf"^\$\.{key}: a name of more than 255 bytes"):
            params.convert(given | {key: paths[key]}, kind)
    long, accented = "x" * 255, "\u00e9" * 127
    fits = given | {"workspace": f"{long}/{accented}/b.md"}
    assert params.convert(fits, kind).workspace == fits["workspace"]


def test_a_number_out_of_bounds_is_answered_with_the_bound_and_the_number():
    with pytest.raises(InvalidError, match=r"^\$\.limit: expected int <= 1000, got 5000$"):
        params.convert({"query": "x", "limit": 5000}, params.SearchParams)


def test_a_word_that_a_parameter_cannot_be_is_answered_with_those_it_can():
    with pytest.raises(InvalidError, match=r"^\$\.mode: .*; expected hybrid or keyword or vector$"):
        params.convert({"query": "x", "mode": "semantic"}, params.SearchParams)
