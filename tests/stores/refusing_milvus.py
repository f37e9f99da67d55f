"""What a Milvus server behind TLS refuses, each shown as one clear line. For `.ci/long milvus`.

No edition of Milvus with TLS and users can be run here. A gRPC server stands in for it: its certificate is of
a CA of its own, it demands the token in the way that Milvus's documentation describes, and refuses another
one with the code and the text of Milvus. It has no collections. What the client of Milvus makes of all this
is real.
"""

import base64
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import grpc
import pytest
from daemon_process import Daemon, until

from memd.config import TeamConfig
from memd.errors import StoreError, StoreRefusedError
from memd.stores.milvus import MilvusStore
from stores.test_wire import made_certificate

TOKEN = "notes-team:A-LONG-ONE"
CALL_S = 10.0
SOON_S = 8.0  # generous: a refusal is no reason to wait for the end of a call


class Refusing(grpc.GenericRpcHandler):
    """Answers every method with an empty message, or refuses the token."""

    def service(self, details):
        given = dict(details.invocation_metadata).get("authorization")
        is_right = given == base64.b64encode(TOKEN.encode()).decode()

        def answer(_request, context):
            if not is_right:
                context.abort(
                    grpc.StatusCode.UNAUTHENTICATED,
                    "auth check failure, please check api key is correct",
                )
            # A status (field 1) with the code "collection not found" (field 3: 100) is what Milvus answers.
            return b"\x0a\x02\x18\x64" if details.method.endswith("DescribeCollection") else b""

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def serving(credentials=None):
    """Yield the port of such a server."""
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Refusing()])
    port = (
        server.add_secure_port("127.0.0.1:0", credentials)
        if credentials
        else server.add_insecure_port("127.0.0.1:0")
    )
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Certificates of two CAs."""
    folder = tmp_path_factory.mktemp("tls")
    return {name: made_certificate(folder, name) for name in ("ours", "theirs")}


@pytest.fixture
def port(files):
    """The port of a server behind TLS."""
    ours = files["ours"]
    pair = (ours["key"].read_bytes(), ours["certificate"].read_bytes())
    with serving(grpc.ssl_server_credentials([pair])) as port:
        yield port


def refused(config: TeamConfig, token: str = TOKEN) -> str:
    """Return the one line of a call that a server refuses, which must come soon."""
    began = time.monotonic()
    with pytest.raises(StoreError) as error:
        MilvusStore(config, token).workspaces(CALL_S)
    assert isinstance(error.value, StoreRefusedError)  # trying again is useless
    assert time.monotonic() - began < SOON_S
    text = str(error.value)
    assert text.startswith((config.uri, "[team] ca"))
    assert "\n" not in text
    assert TOKEN not in text
    return text


def test_the_right_token_and_ca_are_taken(files, port):
    """With the CA of the configuration and the right token, the server answers: it has no workspaces."""
    config = TeamConfig(uri=f"https://127.0.0.1:{port}", ca=str(files["ours"]["ca"]))
    assert MilvusStore(config, TOKEN).workspaces(CALL_S) == ()


def test_a_wrong_or_missing_token_is_named(files, port):
    """A token that the server refuses: a line that names the key of the configuration, and not the token."""
    config = TeamConfig(uri=f"https://127.0.0.1:{port}", ca=str(files["ours"]["ca"]))
    for token in ("notes-team:WRONG", ""):
        assert "refuses the token (auth check failure" in refused(config, token)
    assert "token_file" in refused(config, "")


def test_a_certificate_of_another_ca_is_named(files, port):
    """A certificate that is not of the CA of the configuration, or of none that the system knows."""
    for ca in (str(files["theirs"]["ca"]), ""):
        text = refused(TeamConfig(uri=f"https://127.0.0.1:{port}", ca=ca))
        assert "shows a certificate that is not trusted" in text
        assert "ca in [team]" in text


def test_a_ca_that_cannot_be_read_is_named(files, port, tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for ca in (tmp_path / "missing.pem", wrong):
        text = refused(TeamConfig(uri=f"https://127.0.0.1:{port}", ca=str(ca)))
        assert f"[team] ca = {str(ca)!r} cannot be used" in text


def test_a_server_without_tls_is_named(files):
    """An https address at which a server speaks plain text: a line that says so."""
    with serving() as port:
        config = TeamConfig(uri=f"https://127.0.0.1:{port}", ca=str(files["ours"]["ca"]))
        with pytest.raises(StoreError, match="does not speak TLS") as error:
            MilvusStore(config, TOKEN).workspaces(CALL_S)
        assert "\n" not in str(error.value)


def test_a_refusal_is_shown_and_leaves_local_search_alone(files, port, tmp_path):
    """A daemon whose team refuses its token shows the line in its status, and finds its own notes."""
    home = tmp_path / "home"
    (home / "config" / "memd").mkdir(parents=True)
    token = home / "token"
    token.write_text("notes-team:WRONG")
    token.chmod(0o600)
    (home / "config" / "memd" / "config.toml").write_text(
        f'[team]\nuri = "https://127.0.0.1:{port}"\ntoken_file = "{token}"\nca = "{files["ours"]["ca"]}"\n'
    )
    root = tmp_path / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')
    (root / "a.md").write_text("The heron nests.\n")
    with closing(Daemon(home).start(PYTHONPATH=os.environ.get("PYTHONPATH", ""))) as daemon:
        daemon.add(root)
        daemon.call("team.publish", path=str(root))
        until(lambda: "refuses the token" in str(daemon.call("team.status")), CALL_S * 6)
        assert "WRONG" not in str(daemon.call("team.status"))
        assert daemon.found("heron") == ["a.md"]
