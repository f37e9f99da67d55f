from memd.workspace.backlog import BULK_PATHS, Backlog


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
