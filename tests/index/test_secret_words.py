"""Secrets of a note: in nothing that an agent is told, whatever it asks; people find and see them."""

import json
import re

import pytest
from test_secrets import SECRETS
from tests_support import Notes

from memd.entries.secrets import find_secrets, mask
from memd.index.visibility import Visibility
from memd.search.explain import explain
from memd.search.fields import counts
from memd.search.keyword import phrase_expression
from memd.search.search import begin, search
from memd.search.similar import similar_to_text
from memd.search.why import why
from memd.sources.ignore import Patterns
from memd.text import pieces_of

ONE_LINE = {name: text for name, text in SECRETS.items() if "\n" not in text and "\r" not in text}
LINES = [text for text in SECRETS.values() if "\n" in text and "\r" not in text]
# What an agent reads, and the forms that it could be read in.
FOLDED = (str, str.casefold, str.upper)


def test_names_links_and_fields_have_no_secret(notes):
    texts = {}
    for number, secret in enumerate(ONE_LINE.values()):
        quoted = json.dumps(secret)
        front = f"title: {quoted}\naliases: [{quoted}]\nsupersedes: {quoted}\nrelated: [{quoted}]\n"
        front += f"{quoted}: key\nmine: {quoted}\n"
        texts[f"{number}.md"] = f"---\n{front}---\nSee [[{secret}]] of the weir.\n"
    notes.save({**texts, "b.md": "# Weir\n\nThe weir.\n"})
    with notes.index.view() as view:
        told = repr(
            [list(view.reader.each(f"SELECT * FROM {table}")) for table in ("names", "links", "fields")]
        )
    for name, secret in ONE_LINE.items():
        for found in find_secrets(secret):
            part = secret[found.start : found.end]
            assert not any(form(part) in told for form in FOLDED), name
    assert notes.found("weir")
    assert len(notes.index.snapshot.sources) == len(texts) + 1


def test_a_password_of_front_matter_is_masked_whatever_it_is(notes):
    front = 'password: abc\ndb: {user: joe, Passwd: "x\\x79z"}\npasswords: [k1, k2]\n'
    front += "pwd: |\n  l1\n  l2\nend: kept\n"
    notes.save({"a.md": f"---\n{front}---\nThe weir.\n"})
    with notes.index.view() as view:
        fields = {key: value for _, key, value in view.reader.each("SELECT * FROM fields")}
    mask = "[masked: password]"
    assert fields == {
        "password": mask, "db.user": "joe", "db.passwd": mask, "passwords": mask, "pwd": mask, "end": "kept",
    }  # fmt: skip


def test_a_password_in_what_is_no_yaml_is_masked_too(notes):
    notes.save({"a.md": "---\ntitle: T\nx: &b\n  password: abc\n  pwd:\n    - k1\n---\nThe weir.\n"})
    with notes.index.view() as view:
        [front] = [json.loads(row[0]) for row in view.reader.each("SELECT front_matter FROM sources")]
    mask = "[masked: password]"
    assert front == {"title": "T", "": f"x: &b\n  password: {mask}\n  pwd:\n{mask}\n"}


TOML = "+++\ntitle = 'Weir'\n{}\n+++\nThe weir, abc of all.\n"
JSON = '{{\n"title": "Weir",\n{}\n}}\nThe weir, abc of all.\n'


@pytest.mark.parametrize(
    ("head", "pair"),
    [
        *((TOML, pair) for pair in ('password = "abc"', 'db.passwd="abc"', "pwd = 'abc'  # mine")),
        *((JSON, pair) for pair in ('"password": "abc"', '"db.passwd":\n "abc"', '"pwd" : "a\\"abc"')),
    ],
)
def test_a_password_of_a_head_in_toml_or_json_is_masked_too(notes, head, pair):
    text = head.format(pair)
    assert mask(text).count("abc") == 1
    assert mask(text).endswith("abc of all.\n")
    notes.save({"a.md": text})
    with notes.index.view() as view:
        assert "abc" not in repr(list(view.reader.each("SELECT * FROM fields")))


def test_a_masked_name_names_no_note(notes):
    """Two notes whose titles have a secret each would have the same one."""
    token = SECRETS["GitHub personal"]
    notes.save({
        "old.md": f"---\ntitle: Key {token}\n---\nThe weir of May.\n",
        "new.md": f"---\nsupersedes: Key {SECRETS['GitHub personal'][::-1]}\n---\nThe weir of June.\n",
        "other.md": f"---\nsupersedes: Key {token}\n---\nThe weir of July.\n",
    })  # fmt: skip
    with notes.index.view() as view:
        assert not view.snapshot.supersession.edges


OTHERS = {f"other{number}.md": f"# Weir {number}\n\nThe weir of Ada, {number}.\n" for number in range(4)}
AGENTS = Visibility(Patterns(()))
# What differs between two indexes of the same text: numbers of chunks, and the time that a step took.
_OWN = re.compile(r"\b(?:id|chunk|line|took_ms|timings_ms)=(?:[\d.]+|\{.*?\})|chunk_ids=\(.*?\)")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Notes with a secret of each shape, and the same notes with what stands for the secrets."""

    def note(number, title, text):
        named = json.dumps(title)
        front = f"title: {named}\naliases: [{named}]\nsupersedes: [{named}]\nrelated: {named}\n"
        link = f"\nSee [[Key {text}]] and [it](https://box.example/{text}).\n" if " " not in text else ""
        return f"---\n{front}---\n# Box {number}\n\n## Key {text}\n\nThe weir has {text}\n{link}"

    texts, instead = {}, {}
    for number, secret in enumerate([*ONE_LINE.values(), *LINES]):
        path = f"{number:02}.md"
        # A mask may be longer with the name of the key, and a quoted text has other signs.
        title = f"Box {secret}" if re.fullmatch(r"\w{,99}", secret) else f"Box {number}"
        texts[path] = note(number, title, secret)
        behind = note(number, "", secret).partition("\n---\n")[2]
        front = note(number, mask(title), "").partition("\n---\n")[0]
        instead[path] = f"{front}\n---\n{mask(behind)}"
    pair = []
    for name, notes in (("secret", texts), ("masked", instead)):
        folder = tmp_path_factory.mktemp(name)
        pair.append(Notes(folder))
        pair[-1].save({**OTHERS, **notes, "last.md": "# Last\n\nThe last weir.\n"})
    yield pair
    for one in pair:
        one.index.close()


def words_of(secret):
    """What an attacker tries who knows everything: each beginning of each word of a secret, and its parts."""
    for word in pieces_of(secret):
        short = word[:10]
        yield from (short[:end] for end in range(3, len(short) + 1))
        yield from (word[start : start + 4] for start in range(1, min(len(word), 24) - 3, 5))


def asked(view, word):
    """All that the lowest layer answers to one word: four calls."""
    sources = view.snapshot.columns.source
    begun = sorted(sources[view.matching("words", phrase_expression(word) + " *")].tolist())
    inside = [(int(sources[chunk]), count) for chunk, count in sorted(view.inside(word, 10_000).items())]
    return (
        begun,
        inside,
        *(view.postings(word.casefold(), prefix=one).document_frequency for one in (False, True)),
    )


def test_the_lowest_layer_tells_an_agent_no_part_of_a_secret(both):
    """Of any shape, in 10,000 calls and more; a person's same calls find them."""
    secret, masked = both
    words = sorted({word for text in ONE_LINE.values() for word in words_of(text)})
    assert 4 * len(words) > 10_000
    with secret.index.view(visible=AGENTS) as agent, masked.index.view(visible=AGENTS) as control:
        told = {word: asked(agent, word) for word in words}
        assert told == {word: asked(control, word) for word in words}
    with secret.index.view() as person:
        some = words[::5]
        assert sum(asked(person, word) != told[word] for word in some) > len(some) / 2


def answers(notes, query, mode):
    """Everything that an agent is told of a query, without numbers of chunks and times."""
    with notes.index.view(visible=AGENTS) as view:
        request, words = begin(view, notes.request(query, mode=mode, min_score=0.0), notes.embedder.tokenizer)
        found = search(view, request, words)
        told = [found.hits, found.confidence, request.query, explain(view, found)]
        told += [why(view, request, source, None) for source in list(view.snapshot.sources.values())[3:7]]
        told += [counts(view, key, view.snapshot.sources) for key in (None, "title")]
        told.append([(one.title, one.tags) for one in view.snapshot.sources.values()])
        told += [view.snapshot.generation, view.snapshot.columns.count, view.snapshot.columns.total_length]
        if mode != "keyword":
            told.append(similar_to_text(view, query, request, None).hits)
    return _OWN.sub("", repr(told))


def test_an_agents_whole_answers_are_those_of_an_index_that_never_had_the_secrets(both):
    some = [text[at : at + 12] for text in list(ONE_LINE.values())[::15] for at in (0, 6)]
    for query in ("weir", "weri", "the bxo leaks", *some, *list(ONE_LINE.values())[::15]):
        for mode in ("keyword", "hybrid"):
            one, other = (answers(notes, query, mode) for notes in both)
            assert one == other, query


def test_people_find_and_see_the_secret_and_the_check_finds_nothing(both):
    for _ in range(2):
        for number, text in enumerate(ONE_LINE.values()):
            if len(text) > 100:
                continue
            found = both[0].search(text, limit=30).hits
            assert any(hit.source.path == f"{number:02}.md" for hit in found), text
        assert any(text in hit.chunk.text for hit in found)
        assert not both[0].findings()
        both[0].reopen()
