"""The watch gives hints, says when to look through everything, and comes back."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from watched_folder import PATIENCE_S, Watched, armed, can, child, is_back, run

from memd.sources import watch
from memd.sources.watch import LOOK_S, LOST_S, Dirty, Watchers

pytestmark = pytest.mark.usefixtures("impatient")


def mortal() -> list[str]:
    """Return how to start a program that may not read everything."""
    way = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if way and not can(*way):
        pytest.skip("no way to give up root's rights here")
    return way


async def test_the_first_hint_is_to_look_through_everything(root):
    """It comes when the watch is armed: what changes after it is reported."""
    watched = Watched(root)
    await watched.until(lambda seen: seen)
    assert watched.seen == [Dirty(rescan=True)]
    await watched.end()


async def test_half_of_the_instances_of_inotify_are_left_to_other_programs(root, tmp_path, monkeypatch):
    """The root that has none is scanned, and told why, until another is watched no more."""
    monkeypatch.setattr(watch, "most_instances", lambda: 2)
    (tmp_path / "other").mkdir()
    async with armed(root) as first:
        other = Watched(tmp_path / "other", watchers=first.watcher)
        await other.until(lambda seen: seen)
        assert (other.seen[0].polling, "max_user_instances" in other.seen[0].trouble) == (True, True)
    await other.until(lambda seen: not seen[-1].polling)
    await other.end()


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_root_that_comes_back_is_watched_again(root, at_once):
    async with armed(root) as watched:
        shutil.rmtree(root)
        if not at_once:
            await watched.until(lambda seen: any("missing" in dirty.trouble for dirty in seen))
        root.mkdir()
        await watched.until(is_back)
        (root / "a.md").write_text("text")
        await watched.until_named(root / "a.md")


async def test_a_root_that_is_replaced_is_watched_again(root, tmp_path):
    (tmp_path / "other").mkdir()
    (root / "deep").mkdir()
    async with armed(root) as watched:
        root.rename(tmp_path / "old")
        (tmp_path / "other").rename(root)
        await watched.until(is_back)
        (tmp_path / "old" / "a.md").write_text("text")
        (tmp_path / "old" / "deep" / "a.md").write_text("text")
        (root / "b.md").write_text("text")
        await watched.until_named(root / "b.md")
        assert watched.named == {str(root / "b.md")}


async def test_a_root_whose_parent_is_moved_is_missing(tmp_path):
    """No event of the root itself tells that a folder above it has another name now."""
    root = tmp_path / "above" / "root"
    root.mkdir(parents=True)
    watched = Watched(root)
    await watched.until(is_back)
    (tmp_path / "above").rename(tmp_path / "elsewhere")
    await watched.until(lambda seen: "missing" in seen[-1].trouble)
    (tmp_path / "elsewhere").rename(tmp_path / "above")
    await watched.until(is_back)
    (root / "a.md").write_text("text")
    await watched.until_named(root / "a.md")
    await watched.end()


async def test_what_is_not_searched_is_not_named(root):
    (root / "kept").mkdir()
    (root / "skipped" / "deep").mkdir(parents=True)
    async with armed(root, enters=lambda folder: not folder.startswith("skipped/")) as watched:
        (root / "skipped" / "a.md").write_text("text")
        (root / "skipped" / "deep" / "a.md").write_text("text")
        (root / "skipped" / "new").mkdir()
        (root / "skipped" / "deep").rename(root / "skipped" / "other")
        (root / "kept" / "a.md").write_text("text")
        await watched.settled()
        assert watched.named == {str(root / "kept" / "a.md")}


async def test_folders_behind_links_are_not_watched(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "before").symlink_to(outside, target_is_directory=True)
    async with armed(root) as watched:
        (root / "after").symlink_to(outside, target_is_directory=True)
        (root / "loop").symlink_to(root, target_is_directory=True)
        await watched.settled()
        assert {str(root / "after"), str(root / "loop")} <= watched.named
        await watched.begin()
        (outside / "a.md").write_text("text")
        (outside / "deep").mkdir()
        (root / "b.md").write_text("text")
        await watched.settled()
        assert watched.named == {str(root / "b.md")}


async def test_too_many_unread_paths_become_a_rescan(root, monkeypatch):
    """Where single paths cost more than a scan, the scan is asked for, and backing off with it."""
    monkeypatch.setattr(watch, "MAX_WAITING", 500)  # as 32,768, in less time
    names = [str(root / f"{number}.md") for number in range(1_000)]
    script = "import sys; [open(name, 'w').close() for name in sys.stdin.read().split()]"
    async with armed(root) as watched:
        # The loop stands still meanwhile, so nobody reads.
        subprocess.run(  # noqa: ASYNC221
            [sys.executable, "-c", script], input="\n".join(names), text=True, check=True
        )
        time.sleep(1)  # noqa: ASYNC251 - usually all of them are read then
        deadline = time.monotonic() + PATIENCE_S
        while not any(one._dirty and one._dirty.overflow for one in watched.watcher._roots):
            assert time.monotonic() < deadline
            time.sleep(0.01)  # noqa: ASYNC251
        await watched.until(lambda seen: seen)
        assert watched.seen[0].overflow
        assert watched.seen[0].rescan
        assert len(watched.seen[0].paths) < 500
        await watched.settled()
        watched.seen.clear()
        (root / "after.md").write_text("text")
        await watched.until_named(root / "after.md")
        assert not any(dirty.rescan for dirty in watched.seen)


@pytest.mark.parametrize("there", [True, False])
def test_a_watch_ends_when_it_is_told(root, there):
    async def scenario():
        took_s = []
        for _ in range(5):
            watched = Watched(root if there else root / "gone")
            await watched.until(lambda seen: seen)
            assert bool(watched.seen[0].trouble) is not there
            began = time.monotonic()
            await watched.end()
            took_s.append(time.monotonic() - began)
        assert min(took_s) < LOOK_S / 2

    before = threading.active_count()
    run(scenario)
    assert threading.active_count() == before


async def test_a_cancelled_watch_ends_its_thread(root):
    watched = Watched(root)
    await watched.until(lambda seen: seen)
    watched.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watched.task
    assert "memd-watch" not in {thread.name for thread in threading.enumerate()}


async def test_many_roots_are_looked_at_less_often_and_their_changes_are_named(tmp_path, monkeypatch):
    """All day long each look takes a moment of the processor; the first few are looked at as one is."""
    steps = []
    begin = watch._Root.__init__
    monkeypatch.setattr(watch._Root, "__init__", lambda *args: steps.append(args[-1]) or begin(*args))
    (tmp_path / "root").mkdir()
    watchers = Watchers()
    watched = [Watched(tmp_path / "root", watchers=watchers) for _ in range(40)]
    for one in watched:
        await one.until(lambda seen: seen)
    (tmp_path / "root" / "a.md").write_text("text")
    for one in watched:
        await one.until_named(tmp_path / "root" / "a.md")
    for one in watched:
        await one.end()
    assert steps == sorted(steps)
    assert (steps[4], steps[-1]) == (watch.STEP_MS, watch.MOST_STEP_MS)


def test_a_watch_leaves_no_open_file(root):
    async def scenario():
        watched = Watched(root)
        await watched.until(lambda seen: seen)
        await watched.end()

    run(scenario)
    before = len(list(Path("/proc/self/fd").iterdir()))
    run(scenario)
    deadline = time.monotonic() + PATIENCE_S
    while (
        len(list(Path("/proc/self/fd").iterdir())) > before
    ):  # watchfiles closes its own in a thread of its own
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_name_that_is_not_utf8_does_not_end_the_watch(root):
    """What kills watchfiles is trouble that passes: a rescan follows, then events again."""
    async with armed(root) as watched:
        os.close(os.open(os.fsencode(root) + b"/caf\xe9.md", os.O_CREAT | os.O_WRONLY))
        await watched.until(lambda seen: any(dirty.trouble and dirty.polling for dirty in seen))
        await watched.until(is_back)
        (root / "a.md").write_text("text")
        await watched.until_named(root / "a.md")


async def test_what_changes_behind_a_link_inside_of_the_root_is_named_by_its_place(root):
    """Watchfiles goes through the link too, and then knows the folder by one of its two names."""
    (root / "real").mkdir()
    (root / "aaa").symlink_to(root / "real", target_is_directory=True)
    (root / "zzz").symlink_to(root / "real", target_is_directory=True)
    async with armed(root) as watched:
        (root / "real" / "a.md").write_text("text")
        await watched.settled()
        assert watched.named == {str(root / "real" / "a.md")}


async def test_a_folder_keeps_its_watch_when_a_link_to_it_goes(root):
    """The watch is the link's as well, and ends with it: that is noticed, and there is a new one."""
    (root / "real").mkdir()
    (root / "link").symlink_to(root / "real", target_is_directory=True)
    async with armed(root) as watched:
        (root / "link").unlink()
        await watched.settled()
        saved = root / "real" / "a.md"
        saved.write_text("text")
        await watched.until(lambda seen: watched.names(saved) or any(dirty.rescan for dirty in seen))


def test_a_process_that_stood_still_looks_through_everything(root):
    """Time that the thread did not see may have been more than the kernel's queue holds."""
    with child(root) as watching:
        watching.until(is_back)
        watching.seen.clear()
        watching.process.send_signal(signal.SIGSTOP)
        time.sleep(2 * LOST_S)
        watching.process.send_signal(signal.SIGCONT)
        watching.until(lambda seen: any(dirty.rescan and dirty.overflow for dirty in seen))


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
    try:
        with child(root, prefix=mortal()) as watching:
            watching.until(is_back)
            (root / "a.md").write_text("text")
            watching.until_named(root / "a.md")
            closed.chmod(0o700)
            watching.until_named(closed)
            watching.until_named_again(closed / "deep" / "b.md")
            assert not watching.seen[-1].trouble
    finally:
        closed.chmod(0o700)


def test_an_unreadable_folder_hides_no_other(root):
    """Watchfiles gives up the rest of a tree at a folder that it may not read."""
    for number in range(10):
        (root / f"folder-{number}").mkdir()
    (root / "folder-3").chmod(0)
    try:
        with child(root, prefix=mortal()) as watching:
            for number in (0, 1, 2, 4, 5, 6, 7, 8, 9):
                watching.until_named_again(root / f"folder-{number}" / "a.md")
            assert not watching.seen[-1].trouble
    finally:
        (root / "folder-3").chmod(0o700)
