from memd.service.backlog import Backlog


def test_a_save_overtakes_what_a_scan_found():
    """Hints come first, however long the list of a scan is."""
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
    """Nothing is lost by a slice that ended early, and its age goes on."""
    backlog = Backlog()
    backlog.found(["a.md", "b.md", "c.md"], 5.0)
    backlog.take(3)
    assert (len(backlog), backlog.since) == (3, 5.0)
    backlog.done(1)
    assert "a.md" not in backlog
    assert (len(backlog), backlog.since) == (2, 5.0)


def test_an_empty_backlog_says_so():
    """No paths, no age."""
    backlog = Backlog()
    assert (len(backlog), backlog.since, backlog.take(5)) == (0, None, [])
