"""`sources` lists what is indexed, a page at a time."""


def test_pages_hold_every_source_once_in_the_order_of_paths(workspace):
    """A source that came or went between two pages moves no other one out of the list."""
    daemon, root = workspace
    (root / "b.md").write_text("---\ntitle: Second\ntags: [x]\nupdated: 2026-05-01\n---\nText.\n")
    (root / ".hidden.md").write_text("No source.\n")
    daemon.add(root)
    first = daemon.call("sources", workspace=str(root), limit=2)
    assert [one["path"] for one in first["sources"]] == ["0.md", "1.md"]
    (root / "0.md").unlink()
    daemon.add(root)
    second = daemon.call("sources", workspace=str(root), limit=2, after=first["next"])
    assert [one["path"] for one in second["sources"]] == ["2.md", "b.md"]
    assert second["next"] is None
    assert second["sources"][1] == {
        "path": "b.md", "title": "Second", "tags": ["x"], "date": "2026-05-01", "origin": "human",
        "chunks": 1, "vectors": 1, "modified": (root / "b.md").stat().st_mtime, "recalled": None,
    }  # fmt: skip
    assert daemon.call("sources", workspace=str(root), after="zzz")["sources"] == []
