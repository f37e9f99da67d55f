"""The text of explanations: how one hit was scored, and how the whole answer was made.

Each line is a sum or product that a reader can check; results are computed before rounding.
"""

from collections.abc import Iterable
from typing import Any

from memctl.codes import MEANING
from memctl.output.caveats import corrected
from memctl.output.marker import FAINT, HEADING, Marker
from memctl.text import one_line, width_of

Fields = dict[str, Any]

LABEL_WIDTH = 9  # the longest label and a space
WORDS_SHOWN = 20  # arbitrary; a query may be a page long
TERM_COLUMNS = 24  # a wider term would push its numbers off the screen

_UNSEEN = {
    "no-vector-yet": "it is not embedded yet: only words count",
    "script": "the model does not read its script: only words count",
    "long": "it is beyond the first parts of a long note: only words count",
    "vector-arm-did-not-run": "the search by meaning did not run: only words count",
    "keyword-arm-did-not-run": "the search by words did not run: only meaning counts",
}
_FADES = {
    "name": "its name is a day",
    "memory": "it is below memory/",
    "journals": "it is in a folder of journals",
    "daily-notes": "it is in the folder of daily notes",
    "pattern": "decay in memory/config.toml names it",
}
_DROPPED = {
    "filtered": "filtered out",
    "outside_pools": "not among either arm's candidates",
    "below_floor": "below the floor",
    "gone": "gone from the disk",
    "folded": "folded into better ones",
    "joined": "joined with a better chunk next to them",
    "per_source": "more than one file may have",
    "limit": "beyond the limit",
    "hits": "returned",
}


def score_lines(explanation: Fields, marker: Marker) -> list[str]:
    """Return how one chunk was scored: the sum, then each arm, then each term."""
    vector, keyword = explanation["vector"], explanation["keyword"]
    parts = [arm["part"] for arm in (vector, keyword) if arm is not None]
    merged, decay = explanation["merged"], explanation["decay"]
    text = " + ".join(f"{part:.4f}" for part in parts)
    text += f" = {sum(parts):.4f}" if len(parts) > 1 else ""
    if sum(parts) < merged and explanation["named"] is not None:
        text += f", named: {merged:.4f}"
    if decay["factor"] < 1:
        why = _FADES.get(decay.get("fades"), "")  # a newer daemon may know other reasons
        text += f", · {decay['factor']:.4f} at {decay['age_days']} days{f' ({why})' if why else ''}"
        text += f" = {merged * decay['factor']:.4f}"
    facts = [("score", text)]
    if vector is not None:
        facts.append(("meaning", _product(vector)))
        own, source, share = vector["cosine"], vector["source_cosine"], vector["source_share"]
        if own != source:
            facts.append(("", f"{own:.4f} · {1 - share:g} here + {source:.4f} · {share:g} in its file"))
    if keyword is not None:
        more = f", tier {one_line(keyword['tier'])}" if keyword["bm25"] else "; none of them is in this chunk"
        facts.append(("words", f"{_product(keyword)}{more}"))
        facts += [("", line) for line in _term_lines(keyword)]
    if (named := explanation["named"]) is not None:
        more = f"comes first; {named['score']:.4f} by what is named alone"
        facts.append(("named", f"{listed(named['words'])}: {more}"))
    if ahead_of := explanation.get("ahead_of"):
        facts.append(("newer", f"takes the place of {one_line(ahead_of)}, which it supersedes"))
    if older := explanation.get("newest"):
        facts.append(("newest", f"takes the place of {one_line(older)}, as the question asks for now"))
    if newer := explanation.get("superseded_by"):
        facts.append(("older", f"ranked below what supersedes it: {listed(newer)}"))
    if run := explanation.get("run"):
        more = f"{run['words']} of {run['asked']} words: ranked as if it scored {run['added']:.2f} more"
        facts.append(("in a row", more))
    if named := explanation.get("day_named"):
        time = f"{named['first']} to {named['last']}" if named["first"] != named["last"] else named["first"]
        facts.append(("day", f"{one_line(time)}: ranked as if it scored {named['added']:.2f} more"))
    if said := explanation.get("said"):
        text = f"{said['assistant']:.0%} of its lines: ranked as if it scored {-said['added']:.2f} less"
        facts.append(("assistant", text))
    if last := explanation.get("expired"):
        facts.append(("expired", f"was valid until {one_line(last)}: ranked as if its score were half"))
    facts += [("", _UNSEEN.get(code, one_line(code))) for code in explanation["unseen"]]
    return [labelled(label, text, marker) for label, text in facts]


def summary(answer: Fields, marker: Marker) -> str:
    """Return how the whole answer was made, one fact a line."""
    made = answer["explanation"]
    weights, matched, per_file = made["weights"], made.get("matched"), made["per_source"]
    by = "" if matched is None else f", {matched:g} words matched"
    words = listed(
        _term(term["text"], prefix=term["prefix"]) for term in made["terms"] if not term.get("forms")
    )
    left_out = listed(made["left_out"])
    forms = (f"{one_line(word)} ({listed(some)})" for word, some in (answer.get("forms") or {}).items())
    stages = made["stages"]
    dropped = (f"{stages[key]:,} {text}" for key, text in _DROPPED.items() if stages[key] or key == "hits")
    facts = [
        ("for", f"{words or 'no words'}{f'; not for {left_out}' if left_out else ''}"),
        ("also for", corrected(answer.get("corrected") or {})),
        ("forms", ", ".join(forms)),
        ("filters", ", ".join(map(filter_text, made["filters"]))),
        ("meaning", _arm(made, "vector_pool", f"model {one_line(made['model_id'] or '')}")),
        ("words", _arm(made, "keyword_pool", f"tier {one_line(made['tier'] or '')}")),
        ("weights", f"{weights['vector']:.2f} meaning, {weights['keyword']:.2f} words{by}; {made['fusion']}"),
        ("reading", _reading(made)),
        ("age", _age(made)),
        ("chunks", f"{stages['chunks']:,} = {' + '.join(dropped)}"),
        ("limits", f"score {made['floor']:g} or more, at most {made['limit']} returned, {per_file} a file"),
    ]
    lines = [labelled(label, text, marker) for label, text in facts if text]
    title = marker.paint("how this answer was made", HEADING)
    return "".join(f"{line}\n" for line in [title, *(f"    {line}" for line in lines)])


def off(code: str) -> str:
    """Return why the vector arm did not run."""
    return MEANING.get(code) or one_line(code)


def listed(words: Iterable[str]) -> str:
    """Return words separated by commas; of many, the first and the number of the others."""
    names = list(words)
    more = len(names) - WORDS_SHOWN
    shown = ", ".join(_term(word, prefix=False) for word in names[:WORDS_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def filter_text(wanted: Fields) -> str:
    """Return a filter in the syntax of a query."""
    key, value = wanted["filter"], one_line(wanted["value"])
    return {"phrase": f'"{value}"', "excluded": f"-{value}"}.get(key, f"{key}:{value}")


def _age(made: Fields) -> str:
    """Return how a score decays with the age of its note."""
    floor = made["decay_floor"]
    half_life = f"{made['half_life_days']:g} days"
    if not floor:
        return f"half of a diary's score is left after {half_life}"
    return f"a diary keeps {floor:.0%} of its score; half of the rest is left after {half_life}"


def _reading(made: Fields) -> str:
    """Return which terms of the query the model cannot read; "" if it reads all of them."""
    if made["read"] == 1:
        return ""
    spelled = (word["text"] for word in made["spelled"] if not word["is_read"])
    unread = listed([*spelled, *made.get("unread", ())])  # an older daemon does not send these
    return f"the model reads {made['read']:.0%} of the query, not {unread}: so meaning counts less"


def _arm(made: Fields, pool: str, note: str) -> str:
    if made[pool] is not None:
        return f"{made[pool]} candidate{'' if made[pool] == 1 else 's'} (at most {made['pool']}); {note}"
    return f"not looked for: {off(made['vector_arm'] or 'mode') if pool == 'vector_pool' else 'mode vector'}"


def _product(arm: Fields) -> str:
    rank = f", rank {arm['rank']:,}{'' if arm['in_pool'] else ' and not a candidate'}" if arm["score"] else ""
    return f"{arm['score']:.4f} · {arm['weight']:.2f} = {arm['part']:.4f}{rank}"


def _term_lines(keyword: Fields) -> list[str]:
    """Return a table of the terms that the file holds, and how the score is made of their parts."""
    found = keyword["terms"]
    if not found:
        return []
    shares = keyword["shares"]
    # Of an older daemon terms have no forms.
    names = [_term(", ".join(term.get("forms") or [term["term"]]), prefix=term["prefix"]) for term in found]
    width = max([6, *map(width_of, names)])  # "counts" is six wide
    parts = (("chunk", "part"), ("first", "first_part"), ("file", "file_part"))  # of what a term adds
    rows = [
        f"{name}{' ' * (width - width_of(name))}  {term['idf']:5.2f}  {term['document_frequency']:>6,}"
        f"  {term['times']:>5}  {term['count']:>4}  {term['first_count']:>8}  {term['file_count']:>7}"
        f"  {sum(shares[share] * term[part] for share, part in parts):6.3f}"
        for name, term in zip(names, found, strict=True)
    ]
    lengths = [keyword[length]["terms"] for length in ("length", "first_length", "file_length")]
    counting = [shares[share] for share in ("chunk", "first", "file")]
    return [
        f"{'term':<{width}}    idf  chunks  asked  here  in first  in file    adds",
        *rows,
        *([f"not in the file: {listed(keyword['lacking'])}"] if keyword["lacking"] else []),
        f"{'long':<{width}}{lengths[0]:>28,}  {lengths[1]:>8,}  {lengths[2]:>7,}",
        f"{'counts':<{width}}{counting[0]:>28g}  {counting[1]:>8g}  {counting[2]:>7g}",
        f"tanh(2 · {keyword['evidence']:.3f} / {keyword['reachable']:.3f}) = {keyword['score']:.4f}",
    ]


def _term(text: str, *, prefix: bool) -> str:
    shown = one_line(text)
    while width_of(shown) > TERM_COLUMNS:
        shown = f"{shown.rstrip('…')[:-1]}…"
    return f"{shown}*" if prefix else shown


def labelled(label: str, text: str, marker: Marker) -> str:
    """Return a fact after its label, in two columns."""
    return f"{marker.paint(label, FAINT)}{' ' * (LABEL_WIDTH - len(label))}{text}"
