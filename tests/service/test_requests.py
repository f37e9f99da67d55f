from hypothesis import given
from hypothesis import strategies as st

from memd.errors import InvalidError
from memd.service import requests
from memd.service.handlers import METHODS

KINDS = [
    requests.Nothing, requests.Hello, requests.Search, requests.Recall, requests.ExtractMemory, requests.Get,
    requests.Index, requests.WorkspaceAdd, requests.WorkspaceRemove, requests.WorkspaceConfigure,
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


def test_every_method_has_a_limit_or_reports_progress():
    """Only what a caller may wait for as long as it takes has no deadline."""
    assert {name for name, (_, limit) in METHODS.items() if limit is None} == {"index", "workspace.add"}
