from memd.workspace.scanner import POLLED_S, STORM_S, TIMER_S, TIMER_SHARE, Schedule

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
