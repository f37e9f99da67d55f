"""A sentence from memory: the longest run of the query's words that stands in a chunk without a gap. Pure.

Words in a row are evidence that neither the count of words nor the meaning has: of half-sentences that were
read a day ago, a quarter had another note first.
"""

from collections.abc import Sequence

LEAST = 4  # words of a run; a shorter one is a phrase that many notes have
# Added to the sort key of a chunk with the whole query in a row, and less by the share of a shorter run. The
# result is the same with .4; .8 costs .005 of nDCG@10 on abstracts.
SHARE = 0.2
FIRST = 50  # best candidates whose texts may be read: a constant, so that no answer depends on its limit


def least(asked: Sequence[str]) -> int:
    """Return how many words of *asked* a run has at least."""
    return max(LEAST, -(-len(asked) // 2))


def longest_run(asked: Sequence[str], words: Sequence[str]) -> int:
    """Return the most words of *asked* that follow each other in *words*; 0 below `LEAST` or half of them."""
    if len(asked) < least(asked):
        return 0
    # A run of half of the words has one of those in the middle.
    middle = {len(asked) // 2, (len(asked) - 1) // 2}
    runs = (
        _around(asked, words, place, at)
        for place in middle
        for at, word in enumerate(words)
        if word == asked[place]
    )
    longest = max(runs, default=0)
    return longest if longest >= least(asked) else 0


def _around(asked: Sequence[str], words: Sequence[str], place: int, at: int) -> int:
    first = last = 0
    while first < min(place, at) and asked[place - first - 1] == words[at - first - 1]:
        first += 1
    most = min(len(asked) - place, len(words) - at)
    while last < most and asked[place + last] == words[at + last]:
        last += 1
    return first + last
