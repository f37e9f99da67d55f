"""Folders that come, go and change their names are followed exactly."""

import asyncio
import ctypes
import os
import shutil

import pytest
from tests_support import many
from watched_folder import armed, can, child, is_back

pytestmark = pytest.mark.usefixtures("impatient")
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def exchange(one, other):
    """Let two folders change their names in one step, renameat2(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        pytest.skip("no RENAME_EXCHANGE on this file system")


def rename(root):
    (root / "old").rename(root / "new")


def move_into_a_new_one(root):
    """So that it is found before its event comes."""
    (root / "new").mkdir()
    (root / "old").rename(root / "new" / "inner")


def leave_a_link(root):
    """The old name still leads to it, but is none of its names."""
    rename(root)
    (root / "old").symlink_to("new")


@pytest.mark.parametrize(
    ("before", "change", "saved", "named"),
    [
        (["old/deep"], rename, ["new/a.md", "new/deep/b.md"], None),
        (["old/deep"], move_into_a_new_one, ["new/inner/deep/a.md"], None),
        # An exchange tells of each folder that it left last, though both are there.
        (
            ["old/old", "new/new"],
            lambda root: exchange(root / "old", root / "new"),
            ["old/new/a.md", "new/old/a.md"],
            None,
        ),
        (["old"], leave_a_link, ["old/a.md"], ["new/a.md"]),
        (["old/deep", "new"], rename, ["new/deep/a.md"], None),  # no event about the end of the empty one
    ],
)
async def test_a_folder_is_watched_under_the_name_that_it_has_now(root, before, change, saved, named):
    for folder in before:
        (root / folder).mkdir(parents=True)
    async with armed(root) as watched:
        change(root)
        await watched.settled()
        assert {str(root / "old"), str(root / "new")} <= watched.named
        await watched.begin()
        for path in saved:
            (root / path).write_text("text")
        await watched.settled()
        assert watched.named == {str(root / path) for path in named or saved}
        assert not any(dirty.trouble for dirty in watched.seen)


async def test_a_folder_that_is_moved_out_is_not_watched_any_more(root, tmp_path):
    (root / "gone" / "deep").mkdir(parents=True)
    async with armed(root) as watched:
        (root / "gone").rename(tmp_path / "outside")
        await watched.begin()
        (tmp_path / "outside" / "a.md").write_text("text")
        (tmp_path / "outside" / "deep" / "a.md").write_text("text")
        await watched.settled()
        assert not watched.named
        (root / "gone" / "deep").mkdir(parents=True)
        await watched.begin()
        (root / "gone" / "deep" / "a.md").write_text("text")
        await watched.settled()
        assert watched.named == {str(root / "gone" / "deep" / "a.md")}


async def test_a_folder_that_is_recreated_at_once_is_watched(root):
    async with armed(root) as watched:
        for _ in range(many(100)):
            (root / "a" / "b").mkdir(parents=True)
            (root / "a" / "b" / "note.md").write_text("text")
            shutil.rmtree(root / "a")
            (root / "a" / "b").mkdir(parents=True)
            await watched.begin()
            (root / "a" / "b" / "note.md").write_text("text")
            await watched.settled()
            assert watched.named == {str(root / "a" / "b" / "note.md")}
            shutil.rmtree(root / "a")
            await watched.begin()


async def test_folders_that_move_all_the_time_are_watched_in_the_end(root):
    for number in range(10):
        (root / str(number) / "deep").mkdir(parents=True)

    def shuffle():
        for turn in range(2_000):
            folder = root / str(turn % 10)
            folder.rename(root / "moving")
            (root / "moving").rename(folder)

    async with armed(root) as watched:
        await asyncio.to_thread(shuffle)
        await watched.begin()
        notes = {root / str(number) / "deep" / "a.md" for number in range(10)}
        for note in notes:
            note.write_text("text")
        await watched.settled()
        assert watched.named == {str(note) for note in notes}


async def test_a_folder_that_becomes_searched_by_its_name_is_entered(root):
    (root / ".hidden" / "deep").mkdir(parents=True)
    async with armed(root, enters=lambda path: "." not in path) as watched:
        (root / ".hidden").rename(root / "shown")
        await watched.settled()
        assert str(root / "shown") in watched.named
        await watched.begin()
        (root / "shown" / "deep" / "a.md").write_text("text")
        await watched.settled()
        assert watched.named == {str(root / "shown" / "deep" / "a.md")}
        (root / "shown").rename(root / ".hidden")
        await watched.begin()
        (root / ".hidden" / "deep" / "a.md").write_text("text")
        await watched.settled()
        assert not watched.named


async def test_a_changed_mode_of_the_root_asks_for_a_rescan(root):
    """What could not be read may be readable now."""
    async with armed(root) as watched:
        root.chmod(0o750)
        await watched.settled()
        assert any(dirty.rescan for dirty in watched.seen)


@pytest.mark.parametrize("mode", [0, 0o400])  # not to be listed, listed but not to be entered
def test_a_folder_that_may_not_be_read_is_passed_over_until_it_may(root, mode):
    """It is no trouble: a scan can't read it either. When its mode changes it is looked at and watched."""
    closed = root / "closed"
    (closed / "deep").mkdir(parents=True)
    closed.chmod(mode)
    mortal = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if mortal and not can(*mortal):
        pytest.skip("no way to give up root's rights here")
    try:
        with child(root, prefix=mortal) as watching:
            watching.until(is_back)
            (root / "a.md").write_text("text")
            watching.until_named(root / "a.md")
            closed.chmod(0o700)
            watching.until_named(closed)
            watching.until_named_again(closed / "deep" / "b.md")
            assert not watching.seen[-1].trouble
    finally:
        closed.chmod(0o700)
