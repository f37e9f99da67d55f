"""The methods for links: pages of them, names, what a link means, and a text's outline."""

import json

import pytest

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "birds/heron.md": "---\naliases: [grey bird]\ntags: [bird]\n---\n# Heron\n\n## Food\n\n"
    "It eats fish. ^fish\n\nAt the [weir](../river/weir.md#built-in-1850).\n",
    "river/weir.md": "# Weir\n\n## Built in 1850\n\n"
    "The heron waits, a Grey Bird. ![x](../x.png) [[nobody]]\n",
    "index.md": "# All\n\n- [[birds/heron#Food]]\n- [h](birds/heron.md#nothing)\n- [out](../../etc/x.md)\n"
    "- [pdf](a.pdf) [gone](b.pdf)\n- [[heron#^fish]]\n",
    "alone.md": '# Alone\n\nOf nobody; "quoted" -minus tag:none.\n',
    "hidden.md": "---\nprivate: true\n---\n# Hidden heron\n\n[[heron]] and a heron\n",
}


@pytest.fixture
def vault(daemon, tmp_path):
    """A workspace of notes that link to each other."""
    return daemon.workspace(tmp_path / "vault", NOTES | {"a.pdf": b"%PDF"})


def listed(answer):
    return [(one["path"], one["line"], one["column"], one["to"], one["why"]) for one in answer["links"]]


def test_links_come_in_pages_of_both_directions(vault):
    heron = "birds/heron.md"
    into = vault.call("links", path=heron)
    assert listed(into) == [
        ("hidden.md", 6, 1, heron, ""), ("index.md", 3, 3, heron, ""), ("index.md", 4, 3, heron, ""),
        ("index.md", 7, 3, heron, ""),
    ]  # fmt: skip
    pages = [vault.call("links", path=heron, limit=3, offset=at) for at in (0, 3)]
    assert [one["next"] for one in pages] == [3, None]
    assert [listed(one) for one in pages] == [listed(into)[:3], listed(into)[3:]]
    out = vault.call("links", path="index", which="out")
    assert [one[3:] for one in listed(out)] == [
        *[(heron, "")] * 2, (None, "outside"), (None, "missing"), (heron, "")
    ]  # fmt: skip
    files = vault.call("links", path="index.md", which="files")
    assert [one["target"] for one in files["links"]] == ["a.pdf"]
    files = vault.call("links", path="river/weir.md", which="files")
    assert [one["kind"] for one in files["links"]] == ["image"]


def test_mentions_broken_links_and_orphans(vault):
    said = vault.call("links", path="birds/heron.md", which="mentions", agent=True)
    assert [(*one[:3], link["target"]) for one, link in zip(listed(said), said["links"], strict=True)] == [
        ("river/weir.md", 5, 5, "heron"), ("river/weir.md", 5, 20, "Grey Bird")
    ]  # fmt: skip
    broken = vault.call("links", which="broken")
    assert [(one["path"], one["target"], one["why"]) for one in broken["links"]] == [
        ("index.md", "birds/heron.md", "part"), ("index.md", "../../etc/x.md", "outside"),
        ("index.md", "b.pdf", "missing"), ("river/weir.md", "nobody", "missing"),
    ]  # fmt: skip
    orphans = vault.call("links", which="orphans", agent=True)
    assert [one["path"] for one in orphans["links"]] == ["alone.md", "index.md"]
    with pytest.raises(RpcError, match="broken is about all notes"):
        vault.call("links", which="broken", path="index.md")


def test_names_say_what_changed(vault):
    every = vault.call("names")
    assert every["all"]
    heron = every["notes"][1]
    assert (heron["title"], heron["aliases"], heron["tags"]) == ("Heron", ["grey bird"], ["bird"])
    assert [(one["line"], one["level"], one["title"]) for one in heron["headings"]] == [
        (5, 1, "Heron"), (7, 2, "Food")
    ]  # fmt: skip
    page = vault.call("names", limit=2)
    rest = vault.call("names", after=page["next"])
    assert page["notes"] + rest["notes"] == every["notes"]
    (vault.root / "alone.md").unlink()
    (vault.root / "new.md").write_text("# New\n")
    vault.call("sync")
    changed = vault.call("names", since=every["generation"])
    assert (changed["all"], [one["path"] for one in changed["notes"]], changed["removed"]) == (
        False, ["new.md"], ["alone.md"]
    )  # fmt: skip
    same = vault.call("names", since=changed["generation"])
    assert (same["all"], same["notes"], same["removed"]) == (False, [], [])
    seen = vault.call("names", since=every["generation"], agent=True)
    assert (seen["all"], seen["removed"]) == (True, [])
    assert "hidden.md" not in [one["path"] for one in seen["notes"]]
    assert vault.call("names", since=10**9)["all"]
    vault.call("index", purge=True)
    assert vault.call("names", since=every["generation"])["all"]


AS_WRITTEN = (  # in river/weir.md → path, first and last line, why not
    ("[[heron#Food|it]]", ("birds/heron.md", 7, None, "")),
    ("[x](../birds/heron.md#food)", ("birds/heron.md", 7, None, "")),
    ("heron#^fish", ("birds/heron.md", 9, 9, "")),
    ("Grey Bird", ("birds/heron.md", 1, None, "")),
    ("memory:///birds/heron.md", ("birds/heron.md", 1, None, "")),
    ("memory:///birds/heron.md:7-9", ("birds/heron.md", 7, 9, "")),
    ("birds/heron.md:7-9", ("birds/heron.md", 7, 9, "")),
    ("birds/heron.md:11-99", ("birds/heron.md", 11, 11, "")),
    ("birds/heron.md:9-7", ("birds/heron.md", 1, None, "part")),
    ("birds/heron.md:12", ("birds/heron.md", 1, None, "part")),
    ("[[heron#no]]", ("birds/heron.md", 1, None, "part")),
    ("[x](../../x.md)", (None, 1, None, "outside")),
    ("[[nobody]]", (None, 1, None, "missing")),
    ("[x](https://a.example/weir.md)", (None, 1, None, "outside")),
    ("[x](#built-in-1850)", ("river/weir.md", 3, None, "")),
    ("[x](<../birds/heron.md> 't')", ("birds/heron.md", 1, None, "")),
    ('[x](../birds/heron.md#food "a (t)")', ("birds/heron.md", 7, None, "")),
    (" [a\nb]( ../birds/heron.md?raw=1\n(t) ) ", ("birds/heron.md", 1, None, "")),
    ("[x](v1%20\\(x\\).md)", ("river/v1 (x).md", 1, None, "")),
    ("[x](<v1 (x).md>)", ("river/v1 (x).md", 1, None, "")),
    ("[`]`](<v1 (x).md>)", ("river/v1 (x).md", 1, None, "")),
    ("[x](%E2%80%A8.md)", ("river/\u2028.md", 1, None, "")),
    ("[x](%20y.md)", ("river/ y.md", 1, None, "")),
    ("![[heron]]", ("birds/heron.md", 1, None, "")),
    ("[[heron]] and [[weir]]", (None, 1, None, "missing")),
    ("![x](<HTTP://a.example/weir.md> 't')", (None, 1, None, "outside")),
    ("memory:///../../x.md", (None, 1, None, "outside")),
    ("../../x.md", (None, 1, None, "outside")),
)


def test_a_link_as_written_has_a_meaning(vault):
    for name in ("v1 (x)", "\u2028", " y"):
        (vault.root / f"river/{name}.md").touch()
    vault.call("sync")
    assert vault.call("resolve", link="[x](#built-in-1850)")["why"] == "missing"
    found = []
    for link, _ in AS_WRITTEN:
        one = vault.call("resolve", link=link, path="river/weir.md")
        found.append((link, (one["path"], one["line"], one["end_line"], one["why"])))
    assert found == list(AS_WRITTEN)


def test_a_text_that_is_edited_has_an_outline(vault):
    text = "---\ntitle: T\n---\n# New \U0001f426\n\n[[#new \U0001f426]] [h](../birds/heron.md) [[x]]\n"
    found = vault.call("outline", path="river/weir.md", text=text)
    [heading] = found["headings"]
    assert text[heading["start"] : heading["stop"]] == "# New \U0001f426"
    assert text[found["body"] :].startswith("# New")
    assert [
        (text[one["start"] : one["stop"]], one["path"], one["line"], one["why"]) for one in found["links"]
    ] == [
        ("[[#new \U0001f426]]", "river/weir.md", 4, ""),
        ("[h](../birds/heron.md)", "birds/heron.md", 1, ""),
        ("[[x]]", None, 1, "missing"),
    ]
    with pytest.raises(RpcError, match="outline is for people"):
        vault.call("outline", path="x.md", text=text, agent=True)


def test_a_text_is_compared_as_it_is(vault):
    text = 'Of nobody; "quoted" -minus tag:none.'
    found = vault.call("similar", text=text, min_score=0.0)
    assert (found["hits"][0]["path"], "to" in found) == ("alone.md", False)
    found = vault.call("similar", text=text, path="alone.md", min_score=0.0)
    assert "alone.md" not in [one["path"] for one in found["hits"]]


def test_get_may_leave_out_links(vault):
    assert "links" not in vault.call("get", path="[[heron]]", links=False)


def test_memctl_links_prints_a_line_for_each(vault):
    assert vault.memctl("links", "birds/heron.md").stdout.splitlines() == [
        "out  birds/heron.md:11:8 -> river/weir.md#built-in-1850", "in   hidden.md:6:1", "in   index.md:3:3",
        "in   index.md:4:3", "in   index.md:7:3",
    ]  # fmt: skip
    assert (
        "index.md:4:3: birds/heron.md#nothing  (no such heading)" in vault.memctl("links", "--broken").stdout
    )
    answer = json.loads(vault.memctl("links", "--orphans", "--json").stdout)
    assert [one["path"] for one in answer["links"]] == ["alone.md", "hidden.md", "index.md"]
    for option, said in ([], "no link leads out of alone.md or into it"), (["--mentions"], "no other note"):
        done = vault.memctl("links", "alone.md", *option)
        assert (done.returncode, said in done.stderr) == (exits.NONE, True)
