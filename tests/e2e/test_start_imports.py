from daemon_process import until

# What only some daemons need, or only after a start. rich is structlog's, for tracebacks that are not drawn.
LATER = {"rich.console", "http.client", "tomlkit", "email.message"}


def test_a_start_loads_no_library_that_it_can_do_without(daemon, tmp_path):
    """A daemon with a workspace and its model does without those that took a third of its imports."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "note.md").write_text("Sourdough rises overnight.\n")
    daemon.add(root)
    daemon.stop()
    daemon.log_path.unlink()
    daemon.start(PYTHONPROFILEIMPORTTIME="1")
    until(lambda: daemon.found("what makes bread grow", mode="vector") == ["note.md"])
    loaded = {line.rpartition("|")[2].strip() for line in daemon.log().splitlines() if "|" in line}
    assert {"memd.daemon", "onnxruntime"} <= loaded
    assert loaded & LATER == set()
