"""The words of a text, and which of them say something. Pure."""

import re
import unicodedata

# What a question has for its grammar: nobody gives it to grep.
FUNCTION_WORDS = frozenset(
    """
    a about all also an and any are as at be been but by can could did do does don for from had has have
    he her his how i if in into is it its me my no not of on or our she should so some such t s than
    that the their them then there these they this those to us via was we were what when where which who
    whom whose why will with would you your
    """.split()  # noqa: SIM905 (readable as words)
)
# What notes call their parts: a heading of these alone stands above anything.
PART_WORDS = frozenset(
    """
    acknowledgements acknowledgments action actions after agenda appendix background before chapter
    changelog changes conclusion conclusions content contents context contributing daily date day days
    description details diary done down draft entry example examples faq features first further general
    getting here idea ideas info information install installation intro introduction item items journal
    last later learned license licence link links list log logs meeting meetings misc miscellaneous
    month new next note notes old open options other out over overview page part people plan plans
    problem problems progress project question questions read reading reference references related
    requirements resource resources result results review second section see setup solution source
    sources standup start started status step steps story summary table task tasks thing things thoughts
    three til title tldr today todo todos tomorrow topic topics two untitled up update updates usage use
    using vs week weekly weeks work year yesterday monday tuesday wednesday thursday friday saturday
    sunday january february march april may june july august september october november december
    """.split()  # noqa: SIM905 (readable as words)
)
_WORD = re.compile(r"[^\W_]+")
# Scripts that put no spaces between words, and Hangul for its particles: two characters count as a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


def words(text: str) -> tuple[str, ...]:
    """Return the words of *text* as they are compared: NFKC, case folded, punctuation aside."""
    folded = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return tuple(_WORD.findall(folded.casefold()))


def content_words(text: str) -> int:
    """Return how many of its words say something."""
    return sum(map(_weight, words(text)))


def _weight(word: str) -> int:
    if _UNSPACED.search(word):
        return max(1, len(word) // 2)
    return int(len(word) > 1 and not word.isdigit() and word not in FUNCTION_WORDS | PART_WORDS)
