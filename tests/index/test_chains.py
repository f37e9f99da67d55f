"""Who holds in the place of whom, as a graph: chains, branches and circles."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from memd.index.links import NOBODY, Supersession

EDGES = st.sets(st.tuples(st.integers(1, 7), st.integers(1, 7)), max_size=14)


def reachable(edges, start):
    """Return all that *start* supersedes, directly or not, the slow way."""
    found, waiting = set(), [start]
    while waiting:
        one = waiting.pop()
        for newer, older in edges:
            if newer == one and older not in found:
                found.add(older)
                waiting.append(older)
    return found


def really(edges):
    """Return newer → the notes that it supersedes: those it reaches and that do not reach it."""
    under = {one: reachable(edges, one) for one in range(1, 8)}
    return {one: {other for other in under[one] if one not in under[other]} - {one} for one in under}


def test_nobody_supersedes_nobody():
    assert Supersession.of([(1, 1)]) == NOBODY
    assert NOBODY.lifted({1: 0, 2: 1}) == {}


def test_a_circle_demotes_none_of_its_members_but_what_is_older():
    """1 and 2 supersede each other, and 2 supersedes 3: only 3 is superseded, by both."""
    circle = Supersession.of([(1, 2), (2, 1), (2, 3)])
    assert [circle.holders(one) for one in (1, 2, 3)] == [(), (), (1, 2)]
    assert circle.lifted({3: 0, 1: 4, 2: 9}) == {1: 0, 2: 0}
    assert circle.chain(1) == [3, 1, 2]
    assert Supersession.of([(4, 1), (1, 2), (2, 1)]).holders(2) == (4,)


def test_a_chain_that_is_longer_than_the_stack_is_walked():
    last = 10_000
    chain = Supersession.of((one + 1, one) for one in range(1, last))
    assert chain.holders(1) == (last,)
    assert chain.lifted({1: 3, last: 8}) == {last: 3}
    assert chain.chain(5_000) == list(range(1, last + 1))


@given(EDGES, st.permutations(range(1, 8)), st.integers(0, 7))
def test_in_every_order_what_holds_comes_before_what_it_supersedes(edges, order, matching):
    supersession = Supersession.of(edges)
    under = really(edges)
    places = {source: place for place, source in enumerate(order[:matching])}
    lifted = supersession.lifted(places)
    ranked = sorted(
        places, key=lambda one: (lifted.get(one, places[one]), supersession.step(one), places[one])
    )
    for newer, older in itertools.permutations(places, 2):
        if older in under[newer]:
            assert ranked.index(newer) < ranked.index(older)
    for source, place in lifted.items():
        taken = order[place]
        assert taken in under[source]
        assert place == min(places[one] for one in under[source] if one in places) < places[source]
    assert [one for one in ranked if one not in lifted] == [one for one in places if one not in lifted]


@given(EDGES)
def test_who_is_superseded_names_the_ends_of_its_chains(edges):
    supersession = Supersession.of(edges)
    under = really(edges)
    over = {one: {other for other in under if one in under[other]} for one in under}
    for source in range(1, 8):
        holders = set(supersession.holders(source))
        assert bool(holders) == bool(over[source])
        assert holders <= over[source]
        assert not any(over[one] for one in holders)
        assert set(supersession.chain(source)) - {source} >= over[source] | under[source]
