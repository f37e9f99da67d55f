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
from memd.workspace import supervisor
from memd.workspace.backlog import BULK_PATHS, Backlog, Count, Throughput
from memd.workspace.scanner import POLLED_S, STORM_S, TIMER_S, TIMER_SHARE, Schedule
from memd.workspace.threads import TURN_S, Threads
from memd.workspace.watcher import AGAIN_S, MOVING_S, STILL_S, Debounce, HintKind, meaning

START = 1000.0
PACE_S = 600.0


def scanned(schedule: Schedule, now: float, took_s: float = 0.1) -> float | None:
    """Let one scan happen; return since when it was owed."""
    owed = schedule.begin(now)
    schedule.end(now, now + took_s, cost_s=took_s)
    return owed


def test_the_first_scan_is_due_at_once_and_owed_since_the_start():
    """What changed while the daemon was away is not known before it."""
    schedule = Schedule(START)
    assert schedule.due(pace_s=PACE_S) <= START
    assert scanned(schedule, START + 1) == START


def test_without_events_the_next_scan_is_the_timer_s_and_nobody_waits_for_it():
    schedule = Schedule(START)
    scanned(schedule, START, took_s=0.5)
    assert schedule.due(pace_s=PACE_S) == START + 0.5 + PACE_S
    assert schedule.since is None
    assert scanned(schedule, START + 700) is None


def test_a_scan_that_somebody_waits_for_is_due_at_once():
    schedule = Schedule(START)
    schedule.ask(START, storm=True)
    scanned(schedule, START)
    schedule.ask(START + 1, urgent=True)
    assert schedule.due(pace_s=PACE_S) <= START + 1


def test_a_scan_that_somebody_asks_for_during_another_one_follows_it_at_once():
    """The one that runs may have passed the file that they wait for, and its cost keeps nobody waiting."""
    schedule = Schedule(START)
    schedule.begin(START)
    schedule.ask(START + 1, urgent=True)
    schedule.end(START, START + 2, cost_s=2.0)
    assert schedule.due(pace_s=PACE_S) <= START + 2
    schedule.begin(START + 2)
    schedule.ask(START + 3)
    assert schedule.due(pace_s=PACE_S) > START + 3


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


def test_after_a_quiet_while_a_storm_begins_with_the_short_pause_again():
    """One bad day does not make the daemon slow for ever."""
    schedule = Schedule(START)
    for now in (START, START + 10, START + 30):
        schedule.ask(now, storm=True)
        scanned(schedule, now)
    later = START + 3600
    schedule.ask(later, storm=True)
    assert schedule.due(pace_s=PACE_S) <= later
    scanned(schedule, later)
    schedule.ask(later + 1, storm=True)
    assert schedule.due(pace_s=PACE_S) == later + STORM_S[0]


def test_scans_that_events_ask_for_leave_most_of_the_time_to_others():
    """A rule file that is rewritten in a loop costs a twentieth of a core."""
    schedule = Schedule(START)
    scanned(schedule, START, took_s=1.0)
    schedule.ask(START + 1.1)
    assert schedule.due(pace_s=PACE_S) == START + 1 + 20


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


def test_a_save_overtakes_what_a_scan_found():
    backlog = Backlog()
    backlog.found(["a.md", "b.md"], 1.0)
    backlog.hint(["saved.md"], 2.0)
    assert backlog.take(10) == ["saved.md"]
    backlog.done(1)
    assert backlog.take(10) == ["a.md", "b.md"]


def test_a_path_that_is_saved_while_it_is_in_hand_comes_again():
    """The second save may be newer than what was read."""
    backlog = Backlog()
    backlog.hint(["a.md"], 1.0)
    assert backlog.take(10) == ["a.md"]
    backlog.hint(["a.md"], 2.0)
    backlog.done(1)
    assert backlog.take(10) == ["a.md"]


def test_what_was_not_handled_waits_again_with_its_age():
    backlog = Backlog()
    backlog.found(["a.md", "b.md", "c.md"], 5.0)
    backlog.take(3)
    assert (len(backlog), backlog.since) == (3, 5.0)
    backlog.done(1)
    assert "a.md" not in backlog
    assert (len(backlog), backlog.since) == (2, 5.0)


def test_its_age_is_that_of_the_oldest_that_is_left():
    backlog = Backlog()
    backlog.found(["a.md"], 3.0)
    backlog.found(["b.md"], 2.0)
    backlog.hint(["c.md"], 4.0)
    assert backlog.since == 2.0
    assert backlog.take(10) == ["c.md"]
    assert backlog.since == 2.0
    backlog.done(1)
    assert (backlog.take(10), backlog.since) == (["a.md", "b.md"], 2.0)
    backlog.hint(["d.md"], 5.0)
    backlog.done(2)
    assert backlog.since == 5.0


def test_an_empty_backlog_says_so():
    backlog = Backlog()
    assert (len(backlog), backlog.since, backlog.take(5)) == (0, None, [])


def test_of_the_saves_the_newest_is_first():
    backlog = Backlog()
    backlog.hint(["old.md"], 1.0)
    backlog.hint(["new.md"], 2.0)
    assert backlog.take(1) == ["new.md"]
    backlog.done(1)
    assert backlog.take(1) == ["old.md"]


def test_a_bulk_of_hints_waits_behind_a_save():
    """A checkout names thousands of files; a note saved during it does not wait for them."""
    backlog = Backlog()
    backlog.hint([f"{number}.md" for number in range(BULK_PATHS + 1)], 1.0)
    backlog.hint(["saved.md"], 2.0)
    assert backlog.take(10) == ["saved.md"]
    assert backlog.urgent
    backlog.done(1)
    assert backlog.take(2) == ["0.md", "1.md"]
    assert not backlog.urgent


def test_hints_that_were_not_handled_stay_in_their_order():
    backlog = Backlog()
    for number in range(4):
        backlog.hint([f"{number}.md"], float(number))
    assert backlog.take(4) == ["3.md", "2.md", "1.md", "0.md"]
    backlog.done(1)
    assert backlog.take(4) == ["2.md", "1.md", "0.md"]


def test_what_a_scan_finds_is_as_old_as_the_scan_that_was_owed():
    backlog = Backlog()
    backlog.found(["a.md"], 9.0)
    backlog.found(["a.md"], 3.0)
    assert backlog.since == 3.0


def test_what_was_saved_meanwhile_goes_before_what_waits_again():
    backlog = Backlog()
    for number in range(4):
        backlog.hint([f"{number}.md"], float(number))
    backlog.take(3)
    backlog.hint(["saved.md"], 9.0)
    backlog.done(1)
    assert backlog.take(10) == ["saved.md", "2.md", "1.md", "0.md"]


def test_what_a_slice_did_not_reach_is_next():
    """The order is that of the last change, and what is indexed last is embedded first."""
    backlog = Backlog()
    backlog.found([f"{number}.md" for number in range(6)], 1.0)
    assert backlog.take(4) == ["0.md", "1.md", "2.md", "3.md"]
    backlog.done(1)
    assert backlog.take(4) == ["1.md", "2.md", "3.md", "4.md"]
    backlog.done(0)  # something is wrong with one of them: the others go on
    assert backlog.take(4) == ["5.md", "1.md", "2.md", "3.md"]


def test_large_files_wait_apart_and_count():
    backlog = Backlog()
    backlog.found(["a.md", "large.md"], 1.0)
    assert backlog.take(10) == ["a.md", "large.md"]
    backlog.put_off(["large.md"], 9.0)
    backlog.done(2)
    assert (backlog.take(10), len(backlog), backlog.since, "large.md" in backlog) == ([], 1, 1.0, True)
    assert backlog.take_large() == "large.md"
    assert (len(backlog), backlog.since) == (1, 1.0)
    backlog.done_large(through=False)
    assert backlog.take_large() == "large.md"
    backlog.done_large(through=True)
    assert (len(backlog), backlog.since, backlog.take_large()) == (0, None, None)


def test_a_large_file_that_is_saved_while_it_is_in_hand_comes_again():
    backlog = Backlog()
    backlog.put_off(["a.md"], 1.0)
    assert backlog.take_large() == "a.md"
    backlog.hint(["a.md"], 2.0)
    assert backlog.take(10) == ["a.md"]
    backlog.put_off(["a.md"], 3.0)
    backlog.done(1)
    backlog.done_large(through=True)
    assert backlog.take_large() == "a.md"
    assert backlog.since == 2.0


def test_suspects_come_last():
    backlog = Backlog()
    backlog.put_off(["suspect.md", "a.md", "b.md"], 1.0)
    taken = []
    while path := backlog.take_large({"suspect.md"}):
        backlog.done_large(through=True)
        taken.append(path)
    assert taken == ["a.md", "b.md", "suspect.md"]


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
    monkeypatch.setattr(supervisor, "log", structlog.wrap_logger(None, processors=[_drop]))
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
    return supervisor.again_and_again(loop, stop=stop, at_once=at_once, note=noted.append, pauses_s=pauses_s)


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
