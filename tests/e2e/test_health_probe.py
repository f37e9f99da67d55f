"""`health` says that search is broken where only a ranked query shows it."""

import apsw
from daemon_process import until
from patience import PATIENCE


def test_health_ranks_on_the_connections_that_answer(daemon, tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("the heron nests by the weir\n")
    workspace = daemon.add(root)
    assert daemon.call("health", workspace=workspace)["ok"]
    [file] = daemon.state.glob("*/index.db")
    database = apsw.Connection(str(file))
    database.set_busy_timeout(20_000 * PATIENCE)  # the daemon may be writing
    database.execute("UPDATE words_data SET block = zeroblob(3) WHERE id = 1")
    assert database.pragma("integrity_check") == "ok"
    database.close()
    health = daemon.call("health", workspace=workspace)
    assert (health["ok"], health["checks"][0]["ok"]) == (False, False)
    assert "damaged" in health["checks"][0]["detail"]
    until(lambda: daemon.call("health", workspace=workspace)["ok"])
    until(lambda: daemon.found("heron", workspace=workspace) == ["a.md"])
    assert (root / "a.md").read_text() == "the heron nests by the weir\n"
