"""Word forms: terms with the same stem as a word of the query, used in chunks that lack the word itself.

A chunk that has the word as typed is scored by the word alone; in other chunks its other forms count together
as one term with a little less weight. The index stores no stems: the forms are looked up among its terms for
each query, so a change of languages takes effect at once.

Forms apply only to the languages that the workspace names. A query or a chunk that is recognisably in another
language, by its function words, is matched exactly; so are quoted phrases and possible identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from memd.index.columns import DEAD
from memd.index.postings import Postings, listed, united, up_to
from memd.index.snapshot import View
from memd.languages import FUNCTION_WORDS, Language, spoken
from memd.search.query import Query
from memd.search.spelling import plain_words
from memd.text import prepare

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memd.index.columns import Mask

# A word in more chunks than this gets no forms: its own chunks are enough, and other chunks push right ones
# out of the first ten of hybrid search (recall@10 on manual pages: .9784 without forms and with this limit,
# .9726 with forms of all words). In a small index FEW_CHUNKS is the limit, which is arbitrary.
COMMON_SHARE = 1 / 64
FEW_CHUNKS = 50
MAX_WORDS = 64  # looked up per query; a pasted log has hundreds. Arbitrary
# Function words of a language must occur in this share of the chunks, in total, for chunks to count as
# written in it. In English notes, words of another language occur in one of a hundred ("Los Angeles", "van
# der Waals").
SPOKEN_SHARE = 0.05
SIGNS = 2  # minimum of different function words of another language in a chunk; one may be a name


def with_forms(view: View, query: Query, languages: Sequence[Language]) -> tuple[Query, bool]:
    """Return *query* with the forms of its words, and whether the vocabulary was available to find them.

    Raises:
        DeadlineError: the query's deadline passed while the vocabulary was read.
    """
    if not (languages and query.words):
        return query, True
    words = view.reader.terms(prepare(query.text))
    language = spoken(words, languages)
    if language is None:
        return query, True
    terms = [view.reader.terms(prepare(query.corrected.get(word, word))) for word in plain_words(query)]
    single_terms = dict.fromkeys(its[0] for its in terms if len(its) == 1)
    if not single_terms:
        return query, True
    if not view.vocabulary.read(view.reader, view.snapshot.columns.count, 0.0):
        return query, False
    found = {term: _forms(view, term, language) for term in list(single_terms)[:MAX_WORDS]}
    forms = {term: its for term, its in found.items() if its}
    return replace(query, forms=forms, language=language), True


def languages_of(view: View) -> tuple[Language, ...]:
    """Return the languages that at least SPOKEN_SHARE of the chunks are in, the most frequent first.

    Reads the whole vocabulary, which takes half a second for 100,000 chunks.

    Raises:
        DeadlineError: the view's deadline passed.
    """
    count = view.snapshot.columns.count
    if not len(view.snapshot.columns.source):  # no chunks, or no numpy
        return ()
    view.vocabulary.read(view.reader, count, None)
    candidates = _frequent_languages(view)
    if not candidates:
        return ()
    signs = np.stack([_signs(view, FUNCTION_WORDS[language]) for language in candidates])
    is_told = (signs.max(axis=0) >= SIGNS) & (view.snapshot.columns.source != DEAD)
    chunks = np.bincount(signs.argmax(axis=0)[is_told], minlength=len(candidates))
    ranked = sorted(zip(chunks.tolist(), candidates, strict=True), reverse=True)
    return tuple(language for number, language in ranked if number >= SPOKEN_SHARE * count)


def postings_of_forms(view: View, term: str, forms: tuple[str, ...], language: Language) -> Postings:
    """Return the postings of a term's forms in chunks without the term that are not in another language."""
    kept = view.snapshot.postings.unions
    key = (language, term, forms)
    found = kept.get(key)
    if found is None:
        some = [view.postings(form, prefix=False) for form in forms]
        word = view.postings(term, prefix=False)
        found = united(some, word, _foreign(view, language), view.snapshot.columns)
        kept.put(key, found, found.parts[0].size_bytes)
    return found


def _forms(view: View, term: str, language: Language) -> tuple[str, ...]:
    """Return the forms of a term that occur in some chunk; none for a common term."""
    common = max(FEW_CHUNKS, COMMON_SHARE * view.snapshot.columns.count)
    if view.postings(term, prefix=False).document_frequency > common:
        return ()
    forms = view.vocabulary.forms(term, language)
    return tuple(form for form in forms if view.postings(form, prefix=False).document_frequency)


def _foreign(view: View, language: Language) -> Mask | None:
    """Return the chunks that are recognisably in another language; None if there are hardly any."""
    masks = view.snapshot.postings.masks
    known = masks.get(language)
    if known is not None:
        return known if len(known) else None
    others = [name for name in _frequent_languages(view) if name != language]
    if not others:
        masks.put(language, np.zeros(0, np.bool_))
        return None
    least = np.maximum(_signs(view, FUNCTION_WORDS.get(language, frozenset())) + 1, SIGNS)
    found = np.zeros(len(view.snapshot.columns.source), np.bool_)
    for other in others:
        found |= _signs(view, FUNCTION_WORDS[other]) >= least
    masks.put(language, found)
    return found


def _frequent_languages(view: View) -> list[Language]:
    """Return the languages whose function words occur often enough for SPOKEN_SHARE."""
    least, frequency = SPOKEN_SHARE * view.snapshot.columns.count, view.vocabulary.document_frequency
    # The vocabulary also counts chunks that this view does not have.
    return [
        language
        for language, words in FUNCTION_WORDS.items()
        if frequency(*words) >= least
        and sum(view.postings(word, prefix=False).document_frequency for word in words) >= least
    ]


def _signs(view: View, words: frozenset[str]) -> NDArray[np.uint8]:
    """Return the number of *words* that occur in each chunk."""
    columns = view.snapshot.columns
    found = np.zeros(len(columns.source), np.uint8)
    for word in words:
        for part in view.postings(word, prefix=False).parts:
            found[listed(up_to(part, len(found) - 1))[0]] += 1
    return found
