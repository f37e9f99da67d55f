import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.api import params as requests
from memd.api.methods import METHODS
from memd.errors import InvalidError

KINDS = [
    requests.Nothing, requests.Hello, requests.Search, requests.Recall, requests.Why, requests.Get,
    requests.Similar, requests.ExtractMemory, requests.Index, requests.Sync, requests.Check,
    requests.Subscribe, requests.WorkspaceAdd, requests.WorkspaceRemove, requests.WorkspaceConfigure,
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(kind=st.sampled_from(KINDS), params=st.data())
def test_whatever_comes_is_converted_or_refused_with_its_place(kind, params):
    """No other error than MEMD_INVALID, and that names a place."""
    keys = st.sampled_from(kind.__struct_fields__) | st.text(max_size=8)
    given_params = params.draw(st.dictionaries(keys, VALUES, max_size=5))
    refused = ""
    try:
        requests.convert(given_params, kind)
    except InvalidError as error:
        refused = str(error)
    assert not refused or refused.startswith("$")


def test_an_empty_map_of_lua_is_an_empty_map():
    """`{}` arrives as an empty array."""
    assert requests.convert({"query": "x", "weights": []}, requests.Search).weights == requests.Weights()


@pytest.mark.parametrize("good", [True, False, 1, 1500])
def test_sync_is_yes_or_no_or_so_many_milliseconds(good):
    """What came is what the method gets: true is not taken for one millisecond."""
    converted = requests.convert({"query": "x", "sync": good}, requests.Search).sync
    assert converted is good or (type(converted), converted) == (int, good)


@pytest.mark.parametrize("wrong", [0, -5, 1.5, "yes"])
def test_anything_else_is_no_sync(wrong):
    """The error names the parameter."""
    with pytest.raises(InvalidError, match=r"^\$\.sync: expected "):
        requests.convert({"query": "x", "sync": wrong}, requests.Search)


def test_null_in_a_map_is_as_good_as_nothing():
    """A client with fixed fields sends all of them."""
    converted = requests.convert({"query": "x", "weights": {"vector": None, "keyword": 1}}, requests.Search)
    assert converted.weights == requests.Weights(keyword=1)


def test_what_must_be_given_cannot_be_null():
    """The error names it."""
    with pytest.raises(InvalidError, match=r"^\$\.query: expected str, got null"):
        requests.convert({"query": None}, requests.Search)


def test_every_method_has_a_limit_or_reports_progress():
    """Only what a caller may wait for as long as it takes has no deadline."""
    unlimited = {name for name, (_, limit) in METHODS.items() if limit is None}
    assert unlimited == {"index", "sync", "check", "forget", "workspace.add"}
