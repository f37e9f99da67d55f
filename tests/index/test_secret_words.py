"""Secrets of a note: in nothing that an agent is told, whatever it asks; people find and see them."""

import json

import pytest
from test_secrets import SECRETS

from memd.entries.secrets import find_secrets

ONE_LINE = {name: text for name, text in SECRETS.items() if "\n" not in text and "\r" not in text}
# What an agent reads, and the forms that it could be read in.
FOLDED = (str, str.casefold, str.upper)


@pytest.mark.parametrize("name", ONE_LINE)
def test_names_links_and_fields_have_no_secret(notes, name):
    """Of any shape, in a title, an alias, a link, `supersedes`, a value or a key: nor in small letters."""
    secret = ONE_LINE[name]
    quoted = json.dumps(secret)
    front = f"title: {quoted}\naliases: [{quoted}]\nsupersedes: {quoted}\nrelated: [{quoted}]\n"
    front += f"{quoted}: key\nmine: {quoted}\n"
    notes.save({"a.md": f"---\n{front}---\nSee [[{secret}]] of the weir.\n", "b.md": "# Weir\n\nThe weir.\n"})
    hidden = [secret[found.start : found.end] for found in find_secrets(secret)]
    with notes.index.view() as view:
        for table in ("names", "links", "fields"):
            told = repr(list(view.reader.each(f"SELECT * FROM {table}")))
            for part in hidden:
                for form in FOLDED:
                    assert form(part) not in told, table
    assert notes.found("weir")


def test_a_password_of_front_matter_is_masked_whatever_it_is(notes):
    """Also a short one, one in a list or a map, and one that is written with escapes."""
    front = 'password: abc\ndb: {user: joe, Passwd: "x\\x79z"}\npasswords: [k1, k2]\n'
    front += "pwd: |\n  l1\n  l2\nend: kept\n"
    notes.save({"a.md": f"---\n{front}---\nThe weir.\n"})
    with notes.index.view() as view:
        fields = {key: value for _, key, value in view.reader.each("SELECT * FROM fields")}
    mask = "[masked: password]"
    assert fields == {
        "password": mask, "db.user": "joe", "db.passwd": mask, "passwords": mask, "pwd": mask, "end": "kept",
    }  # fmt: skip


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
