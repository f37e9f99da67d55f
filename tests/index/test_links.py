"""The meaning of links: targets are resolved among the notes that exist at the time of the request."""

import time

import pytest

from memd.index.links import links_in, links_out


def found(notes, path):
    """Return each link of a note with the path of whom it names."""
    with notes.index.view() as view:
        source = view.snapshot.source_at(path)
        paths = {number: one.path for number, one in view.snapshot.sources.items()}
        return [
            (one, paths.get(one.to)) for one in links_out(view.reader.each, source.id, path, view.resolver())
        ]


def out(notes, path):
    """Return target → path of whom it names, of a note's links."""
    return {link.target: to for link, to in found(notes, path)}


def into(notes, path):
    """Return path, kind and line of each link to a note."""
    with notes.index.view() as view:
        sources = view.snapshot.sources
        source = view.snapshot.source_at(path)
        links = links_in(view.reader.each, source.id, sources.__contains__, view.resolver())
        return [(sources[link.source].path, link.kind, link.line) for link in links]


FOLDERS = {
    "202405011230 Sluice.md": "sluice",
    "heron.md": "root", "birds/heron.md": "birds",
    "birds/stork.md": "---\naliases: [Adebar, weir]\nid: 3f2a915b7c80d1e4\n---\nstork",
    "river/weir.md": "weir", "river/lower/weir.md": "lower weir", "Über.md": "umlaut", "a.b.md": "dots",
    "river/2024.md": "---\ntitle: The Old Weir\n---\ntext", "Mist.md": "fog",
    "fog.md": "---\ntitle: Mist\n---\nfog",
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "target", "means", "why"),
    [
        ("x.md", "birds/heron.md", "birds/heron.md", ""),
        ("birds/x.md", "heron.md", "birds/heron.md", ""),
        ("birds/x.md", "./stork.md#part", "birds/stork.md", ""),
        ("birds/x.md", "../heron.md", "heron.md", ""),
        ("birds/x.md", "/heron.md", "heron.md", ""),
        ("birds/x.md", "river/weir.md", "river/weir.md", ""),  # from the root, as Obsidian may write it
        ("birds/x.md", "../%C3%9Cber.md", "Über.md", ""),
        ("x.md", "birds/heron", "birds/heron.md", ""),  # without the suffix
        ("x.md", "stork.md", None, "missing"),  # a path, no name
        ("x.md", "../stork.md", None, "outside"),
        ("birds/x.md", "../../birds/stork.md", None, "outside"),
    ],
)
def test_the_target_of_a_markdown_link_is_a_path(notes, path, target, means, why):
    """From the folder of its note, and never out of the workspace."""
    notes.save({**FOLDERS, path: f"See [it]({target})."}, embed=False)
    [(link, to)] = found(notes, path)
    assert (to, link.why) == (means, why)


def test_what_is_not_clear_says_why(notes):
    notes.save({**FOLDERS, "x.md": "[[weir]] [[map.PNG]] [[v1.2]] [[stork]]"}, embed=False)
    assert [link.why for link, _ in found(notes, "x.md")] == ["ambiguous", "file", "missing", ""]


def test_a_link_in_the_file_system_makes_no_alias_unclear(notes):
    notes.write("a/stork.md", "---\naliases: [Adebar]\n---\nA stork.\n")
    (notes.root / "z.md").symlink_to("a/stork.md")
    notes.indexer.apply(["a/stork.md", "z.md"], budget_s=60)
    notes.save({"x.md": "---\nrelated: [adebar]\n---\n[[Adebar]]"}, embed=False)
    assert [(link.why, to is not None) for link, to in found(notes, "x.md")] == [("", True), ("", True)]


@pytest.mark.parametrize(
    ("path", "target", "means"),
    [
        ("x.md", "heron", "heron.md"),  # from the root
        ("x.md", "birds/heron", "birds/heron.md"),
        ("x.md", "heron.md", "heron.md"),
        ("x.md", "HERON", "heron.md"),
        ("x.md", "/birds/heron", "birds/heron.md"),
        ("river/x.md", "./weir", "river/weir.md"),
        ("river/lower/x.md", "../weir", "river/weir.md"),
        ("river/lower/x.md", "weir", "river/lower/weir.md"),  # the folder of the note itself
        ("x.md", "weir", "river/weir.md"),  # the shortest path; a file's name before an alias
        ("x.md", "lower/weir", "river/lower/weir.md"),  # the end of a path
        ("x.md", "ower/weir", None),
        ("x.md", "adebar", "birds/stork.md"),
        ("x.md", "birds/adebar", None),
        ("x.md", "the old weir", "river/2024.md"),  # the title in the front matter, whatever the file's name
        ("x.md", "Mist", "Mist.md"),  # a file's name before it
        ("x.md", "3f2a915b7c80d1e4", "birds/stork.md"),
        ("x.md", "202405011230", "202405011230 Sluice.md"),  # a note of a Zettelkasten, by its minute
        ("x.md", "20240501", None),
        ("x.md", "U\u0308ber", "Über.md"),
        ("x.md", "a.b", "a.b.md"),
        ("x.md", "a", None),
        ("x.md", "../heron", None),
        ("x.md", "nobody", None),
    ],
)
def test_a_target_is_resolved_as_obsidian_does(notes, path, target, means):
    """By path, by the note's own folder, by the end of a path, by alias, by id; in any case of letters."""
    notes.save({**FOLDERS, path: f"See [[{target}]]."}, embed=False)
    assert out(notes, path) == {target: means}


def test_a_key_of_the_front_matter_names_one_alone(notes):
    """If several notes have the name, `related` and `supersedes` name none; a path is unambiguous."""
    front = "---\nrelated: [weir, river/weir.md, stork]\n---\nSee [[weir]]."
    notes.save({**FOLDERS, "x.md": front}, embed=False)
    assert [(link.kind, link.target, to) for link, to in found(notes, "x.md")] == [
        ("related", "weir", None), ("related", "river/weir.md", "river/weir.md"),
        ("related", "stork", "birds/stork.md"), ("text", "weir", "river/weir.md"),
    ]  # fmt: skip


def test_links_come_in_with_path_and_line(notes):
    """Links of the text have a line, those of the front matter none; links to itself are left out.

    Each occurrence counts.
    """
    notes.save(
        {
            **FOLDERS, "a.md": "one\n\n[[stork]] and [[adebar|the stork]]",
            "b.md": "---\nrelated: [birds/stork.md]\n---\n[[weir]]", "birds/c.md": "[[birds/heron]]",
            "birds/d.md": "[[heron]]",
        },
        embed=False,
    )  # fmt: skip
    assert into(notes, "birds/stork.md") == [
        ("a.md", "text", 3),
        ("a.md", "text", 3),
        ("b.md", "related", None),
    ]
    assert into(notes, "birds/heron.md") == [("birds/c.md", "text", 1)]
    assert into(notes, "heron.md") == [("birds/d.md", "text", 1)]
    notes.save({"birds/stork.md": "[[stork]]"}, embed=False)
    assert into(notes, "birds/stork.md") == [("a.md", "text", 3), ("b.md", "related", None)]


def test_a_link_follows_the_files(notes):
    notes.save({"x.md": "See [[weir]]."}, embed=False)
    assert out(notes, "x.md") == {"weir": None}
    notes.save({"river/weir.md": "weir"}, embed=False)
    assert out(notes, "x.md") == {"weir": "river/weir.md"}
    notes.write("old/weir.md", "weir")
    notes.remove("river/weir.md")
    notes.indexer.apply(["old/weir.md"], budget_s=60)
    assert out(notes, "x.md") == {"weir": "old/weir.md"}
    notes.save({"x.md": "See nothing."}, embed=False)
    assert (out(notes, "x.md"), into(notes, "old/weir.md")) == ({}, [])


def test_very_many_notes_of_one_name_are_told_apart(notes):
    """Each links to its neighbour by a name that all share, and none is compared with all others."""
    last = 1_500
    texts = {f"d{one}/README.md": f"[[readme]] [[d{last - one}/readme]]" for one in range(last)}
    notes.save({**texts, "z.md": "[[README]]"}, embed=False)
    began = time.monotonic()
    assert into(notes, "d7/README.md") == [(f"d{last - 7}/README.md", "text", 1)]
    assert into(notes, "d1/README.md") == [(f"d{last - 1}/README.md", "text", 1)]
    assert into(notes, "d0/README.md") == [("z.md", "text", 1)]
    assert out(notes, "d7/README.md") == {
        "readme": "d7/README.md",
        f"d{last - 7}/readme": f"d{last - 7}/README.md",
    }
    assert time.monotonic() - began < 20
