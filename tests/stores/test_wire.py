"""The client of a store and the server of one, over real sockets, with everything that goes wrong between."""

import os
import socket
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from patience import PATIENCE

from memd.config import TeamConfig
from memd.errors import ConfigError, StoreError, StoreModelError, StoreRefusedError
from memd.stores import remote, wire
from memd.stores.remote import RemoteStore, StoreProgram
from memd.stores.store import PublishedChunk, PublishedSource, PublishedWorkspace, SourceKey, Store, Wanted
from stores.team_support import CALL_S, Server

TREE = os.pathsep.join(map(str, Path(__file__).parents[1:3]))  # where a program finds this one
START_S = 60.0  # of a program on a loaded machine
SOON_S = 0.3  # a deadline that passes


def source(
    workspace: str = "w", path: str = "a.md", *, revision: int = 1, text: str = "heron"
) -> PublishedSource:
    chunk = PublishedChunk(0, 1, 1, 0, "", text, "", text, 1, b"h" * 16, b"s" * 48, "", "", None)
    return PublishedSource(
        SourceKey(workspace, path), revision, b"f" * 16, "A", (), "2026-05-01", "changed", "human", "{}", "",
        False, False, 1, (("file", "a"),), (), (), (chunk,),
    )  # fmt: skip


def workspace(name: str = "w", model_id: str = "") -> PublishedWorkspace:
    return PublishedWorkspace(name, name, "machine", "owner", model_id)


def wanted(*terms: str) -> Wanted:
    return Wanted(terms, (), None, None, (), 10)


@contextmanager
def answering(raw: bytes):
    """Serve *raw* to whoever connects, whatever is asked, and then nothing; give a client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            with suppress(OSError):  # the client has given up
                connection.sendall(raw)

    open_ones = []
    thread = threading.Thread(target=run)
    thread.start()
    client = RemoteStore(TeamConfig(uri=f"store://127.0.0.1:{listener.getsockname()[1]}"), "")
    yield client
    client.close()
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for one in (listener, *open_ones):
        one.close()


def frame(value: object) -> bytes:
    raw = msgspec.msgpack.encode(value)
    return struct.pack(">I", len(raw)) + raw


WELCOME = frame([0, "", "", None])


def test_every_method_of_a_store_is_on_the_wire():
    """The client has each of them, and the server knows its types."""
    names = {name for name in dir(Store) if not name.startswith("_")}
    assert wire.METHODS.keys() == names
    assert all(callable(getattr(RemoteStore, name)) for name in names)


def test_what_is_stored_comes_back(server):
    """Sources travel both ways unchanged."""
    client = server.client()
    client.publish(workspace(), CALL_S)
    client.replace((source(), source(path="b.md")), CALL_S)
    assert client.evidence((SourceKey("w", "a.md"),), CALL_S) == (source(),)
    assert [one.key.path for one in client.sources("w", "", 10, CALL_S)] == ["a.md", "b.md"]
    assert [one.path for one in client.candidates(wanted("heron"), CALL_S).by_words] == ["a.md", "b.md"]
    assert client.statistics(wanted("heron"), CALL_S).frequencies == {"heron": 2}
    assert client.vocabulary("hern", CALL_S, "english").spellings == {"heron": 2}
    client.remove(((SourceKey("w", "a.md"), 1),), CALL_S)
    client.unpublish("w", CALL_S)
    assert client.workspaces(CALL_S) == ()
    client.close()


def test_a_lower_revision_replaces_nothing(server):
    """Nor does it bring back what was removed: a request may arrive long after it was given up."""
    client = server.client()
    client.publish(workspace(), CALL_S)
    client.replace((source(revision=2, text="new"),), CALL_S)
    client.replace((source(revision=1, text="old"),), CALL_S)
    assert client.evidence((SourceKey("w", "a.md"),), CALL_S)[0].chunks[0].text == "new"
    client.remove(((SourceKey("w", "a.md"), 3),), CALL_S)
    client.replace((source(revision=2, text="new"),), CALL_S)
    assert client.sources("w", "", 10, CALL_S) == ()
    client.close()


def test_nobody_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    client = RemoteStore(TeamConfig(uri=f"store://127.0.0.1:{port}"), "")
    with pytest.raises(
        StoreError, match=f"nobody listens at store://127.0.0.1:{port}: Connection refused. Is the"
    ):
        client.workspaces(CALL_S)
    client = RemoteStore(TeamConfig(uri=f"store+unix://{tmp_path}/none"), "")
    with pytest.raises(StoreError, match=r"nobody listens at .*none: No such file"):
        client.workspaces(CALL_S)


def test_a_wrong_token_is_refused(server):
    """Trying again does not help, and the error says so by its kind."""
    client = server.client(token="wrong")
    told = r"this token is not known\. memd sent the token of token_file = '.*/token-wrong': whoever"
    with pytest.raises(StoreRefusedError, match=told):
        client.workspaces(CALL_S)
    client.close()
    client = RemoteStore(TeamConfig(uri=server.uri), "")
    with pytest.raises(StoreRefusedError, match=r"not known\. memd sent no token: name one as token_file in"):
        client.workspaces(CALL_S)
    client.close()


def test_a_token_sees_its_group_and_writes_its_own_workspaces(server):
    """What belongs to another group is in no answer: no list, no text, no word, no count."""
    tokens = {"a": ["red"], "b": ["blue"], "c": ["red"]}
    server.settings["tokens"] = tokens
    server.kill()
    server.start()
    ours, theirs, mate = (server.client(token=token) for token in tokens)
    ours.publish(workspace(), CALL_S)
    ours.replace((source(),), CALL_S)
    assert [one.id for one in mate.workspaces(CALL_S)] == ["w"]
    assert theirs.workspaces(CALL_S) == ()
    assert theirs.evidence((SourceKey("w", "a.md"),), CALL_S) == ()
    assert theirs.candidates(wanted("heron"), CALL_S).by_words == ()
    assert theirs.statistics(wanted("heron"), CALL_S).frequencies == {"heron": 0}
    assert theirs.vocabulary("hern", CALL_S).spellings == {}
    for other in (theirs, mate):
        with pytest.raises(StoreRefusedError, match="belongs to somebody else"):
            other.replace((source(revision=9),), CALL_S)
        other.close()
    ours.close()


def test_a_store_of_another_version_is_refused(server, monkeypatch):
    monkeypatch.setattr(remote, "SCHEMA", wire.SCHEMA + 1)
    client = server.client()
    text = f"the store speaks version {wire.SCHEMA}, the daemon version {wire.SCHEMA + 1}"
    with pytest.raises(StoreRefusedError, match=text):
        client.workspaces(CALL_S)
    client.close()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not a store of memd"),
        (b"\x00\x00\x00\x03abc", "is not a store of memd"),
        (WELCOME + frame([1, "", "", ["not", "a", "workspace"]]), "memd can't read"),
        (WELCOME + frame([99, "", "", []]), "memd can't read"),
        (WELCOME + b"\xff\xff\xff\xff", "memd can't read"),
        (WELCOME + b"\x00\x00\x00\x03abc", "memd can't read"),
    ],
)
def test_an_answer_that_is_none_is_told(raw, text):
    """Whatever listens there instead of a store."""
    with answering(raw) as client, pytest.raises(StoreError, match=text):
        client.workspaces(CALL_S)


def test_a_deadline_holds_while_nothing_comes():
    for raw in (b"", WELCOME, WELCOME + frame([1, "", "", []])[:-1]):
        with answering(raw) as client, pytest.raises(StoreError, match=r"did not answer within \d"):
            client.workspaces(SOON_S)


def test_a_connection_that_ends_inside_of_a_frame_is_told(server):
    """The next call makes another one."""
    client = server.client()
    client.publish(workspace(), CALL_S)
    server.tell(fault="cut")
    with pytest.raises(StoreError, match="ended the connection"):
        client.workspaces(CALL_S)
    server.tell(fault="")
    assert [one.id for one in client.workspaces(CALL_S)] == ["w"]
    assert client.lost >= 1
    client.close()


def test_a_restarted_store_is_asked_again(server):
    """A call whose idle connection was closed meanwhile is sent once more; the loss is counted."""
    client = server.client()
    client.publish(workspace(), CALL_S)
    server.kill()
    server.start()
    assert [one.id for one in client.workspaces(CALL_S)] == ["w"]
    assert client.lost == 1
    client.close()


def test_threads_have_their_own_answers(server):
    """Many at once, more than there are idle connections."""
    client = server.client()
    client.publish(workspace(), CALL_S)
    client.replace(tuple(source(path=f"{n:03}.md", text=f"word{n}") for n in range(50)), CALL_S)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda n: client.candidates(wanted(f"word{n}"), CALL_S), range(50)))
    assert [[one.path for one in each.by_words] for each in found] == [[f"{n:03}.md"] for n in range(50)]
    client.close()


def test_a_close_ends_a_call_that_waits(server):
    """A daemon that stops does not wait for a store that hangs."""
    client = server.client()
    client.publish(workspace(), CALL_S)
    server.tell(fault="hang")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.workspaces, 60.0)
        time.sleep(SOON_S)
        client.close()
        with pytest.raises(StoreError):
            waiting.result(timeout=10 * PATIENCE)
    server.tell(fault="")


def test_vectors_of_another_model_are_refused_by_their_kind(server):
    client = server.client()
    client.publish(workspace("one", "model-a"), CALL_S)
    with pytest.raises(StoreModelError, match="model-a"):
        client.publish(workspace("two", "model-b"), CALL_S)
    client.publish(workspace("two", ""), CALL_S)
    client.close()


def made_certificate(folder, name):
    """Make a CA and a certificate of it for 127.0.0.1."""
    files = {
        kind: folder / f"{name}-{kind}" for kind in ("ca", "ca-key", "key", "request", "certificate", "extra")
    }
    files["extra"].write_text("subjectAltName=IP:127.0.0.1")
    new = [
        "openssl",
        "req",
        "-nodes",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-days",
        "2",
    ]
    ca = [*new, "-x509", "-subj", "/CN=ca", "-keyout", files["ca-key"], "-out", files["ca"]]
    asked = [*new[:-2], "-subj", "/CN=store", "-keyout", files["key"], "-out", files["request"]]
    signed = [
        "openssl",
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        files["request"],
        "-CA",
        files["ca"],
        "-CAcreateserial",
    ]
    signed += ["-CAkey", files["ca-key"], "-extfile", files["extra"], "-out", files["certificate"]]
    for command in (ca, asked, signed):
        subprocess.run(command, check=True, capture_output=True)
    return files


def test_tls_with_an_own_ca(tmp_path):
    """The store's certificate must be of the CA that the configuration names."""
    files = made_certificate(tmp_path, "ours")
    others = made_certificate(tmp_path, "theirs")
    tls = {"certificate": str(files["certificate"]), "key": str(files["key"])}
    with closing(Server(tmp_path / "server", port=0, **tls).start()) as server:
        with closing(server.client(ca=str(files["ca"]))) as client:
            client.publish(workspace(), CALL_S)
            assert [one.id for one in client.workspaces(CALL_S)] == ["w"]
        for ca in (str(others["ca"]), ""):
            text = "certificate that is not trusted.*ca in"
            with closing(server.client(ca=ca)) as client, pytest.raises(StoreRefusedError, match=text):
                client.workspaces(CALL_S)
        text = "ca = .*extra' cannot be used"
        with (
            closing(server.client(ca=str(files["extra"]))) as client,
            pytest.raises(StoreRefusedError, match=text),
        ):
            client.workspaces(CALL_S)


def test_a_store_without_tls_is_told(tmp_path):
    files = made_certificate(tmp_path, "ours")
    with closing(Server(tmp_path / "server", port=0).start()) as server:
        uri = server.uri.replace("store:", "store+tls:")
        with (
            closing(server.client(uri=uri, ca=str(files["ca"]))) as client,
            pytest.raises(StoreError, match="does not speak TLS"),
        ):
            client.workspaces(CALL_S)


def test_a_store_in_a_program_of_its_own(tmp_path, monkeypatch):
    """It is started when it is first asked, in another folder, and ends with whoever started it."""
    monkeypatch.setenv("PYTHONPATH", TREE)
    config = TeamConfig(uri=f"milvus+lite://{tmp_path}/x", database=str(tmp_path))
    program = StoreProgram("stores.other_store", config)
    client = RemoteStore(config, "", program)
    client.publish(workspace(), START_S)
    client.replace((source(),), START_S)
    assert [one.path for one in client.candidates(wanted("heron"), START_S).by_words] == ["a.md"]
    pid = program._process.pid
    folder = Path(f"/proc/{pid}/cwd").readlink()
    assert folder != Path.cwd()
    client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()


def test_a_store_that_is_being_opened_is_told(tmp_path, monkeypatch):
    """A call that gets no answer in the first seconds of its program says so; later ones do not."""
    monkeypatch.setenv("PYTHONPATH", TREE)
    config = TeamConfig(uri=f"milvus+lite://{tmp_path}/x", collection="slow", database=str(tmp_path))
    with closing(RemoteStore(config, "", StoreProgram("stores.other_store", config))) as client:
        with pytest.raises(StoreError, match=r"did not answer .* and may still be opening it$"):
            client.workspaces(0.5)
        monkeypatch.setattr(remote, "STARTING_S", 0.0)
        with pytest.raises(StoreError, match=r"did not answer within \S+ s$"):
            client.workspaces(0.5)


def test_a_program_that_cannot_serve_says_why(tmp_path, monkeypatch):
    """And one that ends is started again by the next call."""
    monkeypatch.setenv("PYTHONPATH", TREE)
    config = TeamConfig(uri=f"milvus+lite://{tmp_path}/x", collection="unusable", database=str(tmp_path))
    client = RemoteStore(config, "", StoreProgram("stores.other_store", config))
    with pytest.raises(StoreError, match="belongs to somebody else"):
        client.workspaces(START_S)
    client.close()
    config = msgspec.structs.replace(config, collection="c")
    client = RemoteStore(config, "", program := StoreProgram("stores.other_store", config))
    client.publish(workspace(), START_S)
    program._process.kill()
    program._process.wait()
    assert [one.id for one in client.workspaces(START_S)] == ["w"]
    client.close()


def test_a_token_file_that_others_can_read_is_not_used(server):
    """Before anything is asked; the error has the command."""
    config = server.config()
    Path(config.token_file).chmod(0o644)
    with pytest.raises(ConfigError, match=r"mode 0644: others may read it\. chmod 600"):
        remote.connect(config)
