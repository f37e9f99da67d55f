"""The live sources of a snapshot, by id."""

from pathlib import Path

from memd.index.reader import Sources
from memd.records import Source

ROWS = {
    number: (number, f"n{number}.md", f"Title {number}", "[]", "2026-05-01", "name", "human", "", 0, 0)
    for number in range(1, 6)
}


def test_a_row_becomes_its_record_when_it_is_asked_for():
    one, all_at_once = Sources(Path("index.db"), dict(ROWS)), Sources(Path("index.db"), dict(ROWS))
    assert isinstance(one[3], Source)
    assert one[3] == {source.id: source for source in all_at_once.values()}[3] == dict(all_at_once.items())[3]
    assert (list(one), len(one), 3 in one, 9 in one, one.get(9)) == ([1, 2, 3, 4, 5], 5, True, False, None)


def test_a_change_leaves_the_generation_before_as_it_was():
    old = Sources(Path("index.db"), dict(ROWS))
    put = {
        2: Sources(
            Path("index.db"), {2: (2, "b.md", "B", '["x"]', "2026-05-02", "changed", "agent", "", 0, 0)}
        )[2]
    }
    new = old.changed(removed={1, 7}, put=put)
    assert [source.path for source in new.values()] == ["b.md", "n3.md", "n4.md", "n5.md"]
    assert [source.path for source in old.values()] == [f"n{number}.md" for number in range(1, 6)]
    assert new[2].tags == ("x",)
