"""A workspace whose vectors come from a server of the OpenAI embeddings API."""

from pathlib import Path

from daemon_process import Daemon, hurried, until
from model_server import ModelServer

KEY = "sk-0123456789abcdef"


def test_search_has_vectors_and_stays_with_words_while_the_server_fails(
    server: ModelServer, daemon: Daemon, tmp_path: Path
):
    root = tmp_path / "notes"
    server.make_workspace(daemon, root, provider="openai")
    (daemon.home / "config/memd/config.toml").write_text(
        f'[openai."{server.address}"]\napi_key = "{KEY}"\ndocument_prefix = "search_document: "\n'
    )
    (root / "memory/a.md").write_text("# Editor\n\nTabs are four spaces wide.\n")
    daemon.add(root)
    found = daemon.call("search", query="tabs", workspace=str(root))
    assert (len(found["hits"]), found["degraded"]) == (1, [])
    assert [text for text in server.documents if "Tabs are" in text]
    server.behaviour = "fail"
    found = daemon.call("search", query="tabs wide", workspace=str(root))
    assert (len(found["hits"]), found["degraded"]) == (1, ["model-failed"])
    status = str(daemon.call("status"))
    assert "openai:nomic-embed-text@" in status
    assert KEY not in status + daemon.log()
    assert set(server.authorizations) == {f"Bearer {KEY}"}


def test_after_a_server_refused_notes_they_are_soon_embedded_and_until_then_it_is_said(
    server: ModelServer, unstarted: Daemon, tmp_path: Path
):
    """Queries are answered, so nothing else tells; however often it failed, the last pause is the longest."""
    daemon = unstarted.start(under=hurried("memd.workspace.sync.EMBED_RETRY_S = 0.1, 0.2, 0.5"))
    root = tmp_path / "notes"
    server.make_workspace(daemon, root, provider="openai")
    (daemon.home / "config/memd/config.toml").write_text(
        f'[openai."{server.address}"]\ndocument_prefix = "search_document: "\n'
    )
    workspace = daemon.add(root)
    server.refuses_documents = True
    (root / "memory/a.md").write_text("# Editor\n\nTabs are four spaces wide.\n")
    until(lambda: daemon.found("tabs", workspace=workspace))

    def degraded() -> list[str]:
        status = daemon.status()
        return status["degraded"]

    until(lambda: degraded() == ["vectors-incomplete"])
    assert daemon.call("search", query="tabs", workspace=workspace)["degraded"] == ["vectors-incomplete"]
    tries = len(server.documents)
    until(lambda: len(server.documents) >= tries + 12, 12)  # of a batch, and of a probe
    server.refuses_documents = False
    until(lambda: not degraded(), 5)
    assert daemon.call("search", query="tabs", workspace=workspace, mode="vector")["hits"]
