"""When a workspace works: its turns, its backlog, its pauses and its restarts."""

import asyncio
import threading
import time
from itertools import pairwise

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE

from memd.errors import StorageError
from memd.sources.scan import Rules
from memd.workspace.backlog import BULK_PATHS, Backlog, Count, Throughput
from memd.workspace.scanner import POLLED_S, STORM_S, TIMER_S, TIMER_SHARE, Schedule
from memd.workspace.sync import again_and_again
from memd.workspace.threads import TURN_S, Threads
from memd.workspace.watcher import AGAIN_S, MOVING_S, STILL_S, Debounce, HintKind, meaning

START = 1000.0
PACE_S = 600.0


def scanned(schedule: Schedule, now: float, took_s: float = 0.1) -> float | None:
    """Let one scan happen; return since when it was owed."""
    owed = schedule.begin(now)
    schedule.end(now, now + took_s, cost_s=took_s)
    return owed


SCHEDULE_STEPS = {  # times are after START
    "ask": lambda schedule, at, *how: schedule.ask(START + float(at), **dict.fromkeys(how, True)),
    "begin": lambda schedule, at: schedule.begin(START + float(at)),
    "end": lambda schedule, begun, at: schedule.end(
        START + float(begun), START + float(at), cost_s=float(at) - float(begun)
    ),
    "scan": lambda schedule, at, took="0.1": scanned(schedule, START + float(at), float(took)),
    "due": lambda schedule, at: schedule.due(pace_s=PACE_S) <= START + float(at),
    "since": lambda schedule: schedule.since,
}
SCHEDULES = {
    "the first is due at once, and owed since the start: nobody knows what changed before":
        "due 0 = True; scan 1 = 1000.0",
    "without events the next is the timer's, and nobody waits for it":
        "scan 0 0.5; due 600.4 = False; due 600.5 = True; since = None; scan 700 = None",
    "one that somebody waits for is due at once": "ask 0 storm; scan 0; ask 1 urgent; due 1 = True",
    "one that somebody asks for during another follows it at once, and its cost keeps nobody waiting":
        "begin 0; ask 1 urgent; end 0 2; due 2 = True; begin 2; ask 3; due 3 = False",
    "after a quiet while a storm begins with the short pause again: one bad day makes nothing slow for ever":
        "ask 0 storm; scan 0; ask 10 storm; scan 10; ask 30 storm; scan 30; ask 3600 storm; due 3600 = True; "
        "scan 3600; ask 3601 storm; due 3609.9 = False; due 3610 = True",
    "a rule file that is rewritten in a loop costs a twentieth of a core":
        "scan 0 1; ask 1.1; due 20.9 = False; due 21 = True",
}  # fmt: skip


def follow(steps, subject, story):
    """Do what a story tells; what stands behind "=" is what a step returns."""
    for step in story.split("; "):
        asked, _, expected = step.partition(" = ")
        name, *given = asked.split()
        answer = steps[name](subject, *given)
        assert not expected or str(answer) == expected, step


@pytest.mark.parametrize("story", SCHEDULES.values(), ids=SCHEDULES)
def test_a_scan_is_due(story):
    follow(SCHEDULE_STEPS, Schedule(START), story)


def test_scans_of_a_storm_keep_ten_seconds_apart_and_double_while_it_lasts():
    schedule = Schedule(START)
    now, gaps = START, []
    for _ in range(8):
        schedule.ask(now, storm=True)
        due = max(schedule.due(pace_s=PACE_S), now)
        gaps.append(due - now)
        now = due
        scanned(schedule, now)
    assert gaps[0] == 0
    least, most = STORM_S
    assert gaps[1:4] == [least, 2 * least, 4 * least]
    assert gaps[-1] == most


def test_without_events_the_folder_is_asked_as_often_as_a_hundredth_of_a_core_allows():
    schedule = Schedule(START)
    for took_s, expected in ((0.001, POLLED_S[0]), (0.1, 10.0), (5.0, POLLED_S[1])):
        scanned(schedule, START, took_s)
        assert abs(schedule.pace_s(polling=True) - expected) < 1e-6


def test_with_events_the_folder_is_asked_as_often_as_a_thousandth_of_a_core_allows():
    schedule = Schedule(START)
    least, most = TIMER_S
    for cost_s, roots, expected in ((0.01, 1, least), (0.1, 1, 100.0), (0.1, 10, 1_000.0), (10.0, 1, most)):
        scanned(schedule, START, cost_s)
        assert abs(schedule.pace_s(polling=False, roots=roots) - expected) < 1e-6
        if least < expected < most:
            assert abs(roots * cost_s / expected - TIMER_SHARE) < 1e-9


def test_waiting_for_a_core_makes_no_scan_rarer():
    """What counts is what it takes of a core, not how long it takes beside others."""
    schedule = Schedule(START)
    schedule.begin(START)
    schedule.end(START, START + 500, cost_s=0.1)
    assert abs(schedule.pace_s(polling=False) - 100.0) < 1e-6


STEPS = {
    "hint": lambda backlog, at, *paths: backlog.hint(paths, float(at)),
    "found": lambda backlog, at, *paths: backlog.found(paths, float(at)),
    "put_off": lambda backlog, at, *paths: backlog.put_off(paths, float(at)),
    "take": lambda backlog, limit: " ".join(backlog.take(int(limit))) or "nothing",
    "done": lambda backlog, handled: backlog.done(int(handled)),
    "large": lambda backlog, *last: backlog.take_large(last),
    "large_done": lambda backlog, how: backlog.done_large(through=how == "through"),
    "since": lambda backlog: backlog.since,
    "urgent": lambda backlog: backlog.urgent,
    "length": len,
    "has": lambda backlog, path: path in backlog,
}
BULK = " ".join(map(str, range(BULK_PATHS + 1)))  # as of a checkout
FOUR = "hint 0 0; hint 1 1; hint 2 2; hint 3 3"
STORIES = {
    "nothing waits": "length = 0; since = None; take 5 = nothing",
    "a save overtakes what a scan found": "found 1 a b; hint 2 new; take 10 = new; done 1; take 10 = a b",
    "a path that is saved while it is in hand comes again: that save may be newer than what was read":
        "hint 1 a; take 10 = a; hint 2 a; done 1; take 10 = a",
    "what was not handled waits again with its age":
        "found 5 a b c; take 3; length = 3; since = 5.0; done 1; has a = False; length = 2; since = 5.0",
    "its age is that of the oldest that is left":
        "found 3 a; found 2 b; hint 4 c; since = 2.0; take 10 = c; since = 2.0; done 1; take 10 = a b; "
        "since = 2.0; hint 5 d; done 2; since = 5.0",
    "what a scan finds is as old as the first scan that was owed":
        "found 9 a; found 3 a; since = 3.0; found 9 a; hint 9 b; take 1 = b; done 1; since = 3.0",
    "of the saves the newest is first": "hint 1 old; hint 2 new; take 1 = new; done 1; take 1 = old",
    "a note that is saved during a checkout does not wait for its thousands of files":
        f"hint 1 {BULK}; hint 2 new; take 10 = new; urgent = True; done 1; take 2 = 0 1; urgent = False",
    "hints that were not handled stay in their order": f"{FOUR}; take 4 = 3 2 1 0; done 1; take 4 = 2 1 0",
    "what was saved meanwhile goes before what waits again":
        f"{FOUR}; take 3; hint 9 new; done 1; take 10 = new 2 1 0",
    "what a slice did not reach is next; where something is wrong with one of them, the others go on":
        "found 1 0 1 2 3 4 5; take 4 = 0 1 2 3; done 1; take 4 = 1 2 3 4; done 0; take 4 = 5 1 2 3",
    "large files wait apart and count":
        "found 1 a b; take 10 = a b; put_off 9 b; done 2; take 10 = nothing; length = 1; since = 1.0; "
        "has b = True; large = b; length = 1; since = 1.0; large_done again; large = b; large_done through; "
        "length = 0; since = None; large = None",
    "a large file that is saved while it is in hand comes again":
        "put_off 1 a; large = a; hint 2 a; take 10 = a; put_off 3 a; done 1; large_done through; large = a; "
        "since = 2.0",
    "suspects come last":
        "put_off 1 x a b; large x = a; large_done through; large x = b; large_done through; large x = x",
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_what_waits_is_taken_in_its_order(story):
    follow(STEPS, Backlog(), story)


def test_a_save_is_read_at_once():
    debounce = Debounce()
    assert debounce.named(["a.md", "b.md"], START) == ["a.md", "b.md"]
    assert debounce.named(["c.md"], START + 0.01) == ["c.md"]
    assert debounce.next_due() is None


def test_a_file_that_moves_is_read_when_it_is_still():
    debounce = Debounce()
    debounce.named(["a.md"], START)
    for number in range(1, 11):
        assert debounce.named(["a.md"], START + number / 10) == []
    last = START + 1.0
    assert debounce.next_due() == last + STILL_S
    assert debounce.due(last + STILL_S - 0.01) == []
    assert debounce.due(last + STILL_S) == ["a.md"]
    assert debounce.next_due() is None


def test_a_file_that_never_stands_still_is_read_now_and_then():
    """A log that grows all the time does not wait for ever, and is not read all the time."""
    debounce = Debounce()
    ticks = [START + tick / 10 for tick in range(1000)]
    read = [now for now in ticks if debounce.named(["log.md"], now) or debounce.due(now)]
    assert len(read) == 10
    assert all(later - earlier <= MOVING_S + 0.2 for earlier, later in pairwise(read[1:]))


def test_after_a_while_a_save_is_read_at_once_again():
    debounce = Debounce()
    debounce.named(["a.md"], START)
    assert debounce.named(["a.md"], START + AGAIN_S) == ["a.md"]


@pytest.mark.parametrize("error", [StorageError("disk"), OSError("disk"), ValueError("a bug of ours")])
def test_a_loop_that_fails_is_noted_and_started_again(monkeypatch, error):
    monkeypatch.setattr("memd.workspace.sync.log", structlog.wrap_logger(None, processors=[_drop]))
    noted = []
    stop = asyncio.Event()

    async def loop() -> None:
        if len(noted) == 3:
            stop.set()
            return
        raise error

    asyncio.run(again(loop, stop, asyncio.Event(), noted, pauses_s=(0.001, 0.002)))
    assert noted == [error] * 3


def again(loop, stop, at_once, noted, pauses_s):
    return again_and_again(loop, stop=stop, at_once=at_once, note=noted.append, pauses_s=pauses_s)


async def test_who_waits_can_have_it_tried_at_once():
    noted = []
    stop, at_once = asyncio.Event(), asyncio.Event()

    async def loop() -> None:
        if noted:
            stop.set()
            return
        raise StorageError("disk")

    at_once.set()
    async with asyncio.timeout(10 * PATIENCE):
        await again(loop, stop, at_once, noted, pauses_s=(60.0,))
    assert len(noted) == 1


def _drop(*_):
    raise structlog.DropEvent


PATIENCE_S = 40


def test_a_search_waits_for_its_turn_but_not_long():
    """Whoever has the turn may keep it; the next one goes on all the same."""
    held = Threads()
    with held.turn():
        waited = threading.Event()

        def other() -> None:
            with held.turn():
                waited.set()

        began = time.monotonic()
        thread = threading.Thread(target=other)
        thread.start()
        assert waited.wait(PATIENCE_S)
        assert time.monotonic() - began >= TURN_S
        thread.join()
    held.close()


@given(st.lists(st.integers(0, 50)))
def test_a_count_and_its_total_only_grow(left):
    count, seen = Count(), [(0, 0)]
    for one in [*left, 0]:
        total = count.note(one)
        seen.append((count.done, total))
        assert total - count.done == one
    assert seen == sorted(seen)
    assert [total for _, total in seen] == sorted(total for _, total in seen)


def test_what_is_left_is_estimated_by_what_was_done_lately():
    throughput = Throughput()
    assert (throughput.left_s(10), throughput.left_s(0)) == (None, 0.0)
    throughput.note(100, 1.0)
    assert throughput.left_s(50) == 0.5
    for _ in range(100):
        throughput.note(10, 1.0)
    assert throughput.left_s(50) == 5.0


def test_nothing_done_is_no_pace():
    throughput = Throughput()
    throughput.note(0, 1.0)
    assert throughput.left_s(10) is None


PATTERNS = ("**/*.md",)


@pytest.fixture
def guess(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "a.md").write_text("a")
    rules = Rules.load(tmp_path, PATTERNS, ())

    def guess(path: str) -> HintKind:
        return meaning(str(tmp_path / path), tmp_path, rules, lambda folder: folder == "was-a-folder")

    return guess


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", HintKind.SOURCE), ("gone.md", HintKind.SOURCE), ("folder/b.md", HintKind.SOURCE),
        ("a.txt", HintKind.NOTHING), ("folder", HintKind.FOLDER), ("was-a-folder", HintKind.FOLDER),
        ("node_modules", HintKind.NOTHING), ("node_modules/p/README.md", HintKind.NOTHING),
        (".git/index.lock", HintKind.NOTHING), (".gitignore", HintKind.RULES),
        ("folder/.gitignore", HintKind.RULES), ("memory/.memdignore", HintKind.RULES),
        ("memory/config.toml", HintKind.RULES), ("folder/memory/config.toml", HintKind.RULES),
        ("folder/config.toml", HintKind.NOTHING), ("", HintKind.RULES),
    ],
)  # fmt: skip
def test_a_changed_path_means_a_look_a_scan_new_rules_or_nothing(guess, path, expected):
    assert guess(path) is expected
