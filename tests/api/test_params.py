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


@pytest.mark.parametrize(
    ("given_params", "why"),
    [
        *(({"sync": wrong}, "sync: expected ") for wrong in (0, -5, 1.5, "yes")),
        ({"limit": 0}, "limit: expected int >= 1, got 0$"),
        ({"limit": 5000}, "limit: expected int <= 1000, got 5000$"),
        ({"limit": 2.5}, "limit: expected int, got float"),
        ({"mode": "semantic"}, "mode: .*; expected hybrid or keyword or vector$"),
        ({"colour": "red"}, "colour: unknown parameter; allowed are "),
    ],
)
def test_what_cannot_be_is_refused_with_its_place_and_what_can_be(given_params, why):
    with pytest.raises(InvalidError, match=rf"^\$\.{why}"):
        params.convert({"query": "x", **given_params}, params.SearchParams)


def needed(kind):
    """Return what must be given of the parameters of a method."""
    values = {"query": "x", "content": "x", "text": "x", "link": "x", "path": "a.md"}
    return {one.name: values[one.name] for one in msgspec.structs.fields(kind) if one.required}


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_as_good_as_nothing(kind):
    given = needed(kind)
    nothing = dict.fromkeys(set(kind.__struct_fields__) - given.keys())
    assert params.convert(given | nothing, kind) == params.convert(given, kind)


def test_null_in_a_map_is_as_good_as_nothing():
    """A client with fixed fields sends all of them."""
    converted = params.convert({"query": "x", "weights": {"vector": None, "keyword": 1}}, params.SearchParams)
    assert converted.weights == params.Weights(keyword=1)


def test_every_method_has_a_limit_or_reports_progress():
    """Only what a caller may wait for as long as it takes has no deadline."""
    unlimited = {name for name, method in METHODS.items() if method.deadline_s is None}
    assert unlimited == {"index", "sync", "check", "forget", "workspace.add"}


@pytest.mark.parametrize("name", ["x" * 256, "\u00e9" * 128, f"a/{'x' * 300}/b.md"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_no_file_can_have_is_refused(kind, name):
    """In each parameter that names files, of each method: else the system's own error would come of it."""
    given, fields = needed(kind), {one.name for one in msgspec.structs.fields(kind)}
    paths = {"workspace": name, "update": name, "supersedes": ["a.md", name], "related": [name]}
    if kind not in {params.SearchParams, params.RecallParams}:  # there it is a pattern
        paths["path"] = name
    for key in paths.keys() & fields:
        with pytest.raises(InvalidError, match=rf"^\$\.{key}: a name of more than 255 bytes"):
            params.convert(given | {key: paths[key]}, kind)
    long, accented = "x" * 255, "\u00e9" * 127
    fits = given | {"workspace": f"{long}/{accented}/b.md"}
    assert params.convert(fits, kind).workspace == fits["workspace"]
