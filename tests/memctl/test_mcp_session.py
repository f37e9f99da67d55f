"""The messages of `memctl mcp`, line by line: what no client of an SDK would send is answered, too."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import forked
import pytest
from scripted_peer import WAIT_S, Peer, taken

from memctl import __version__, exits, jsonrpc
from memctl.mcp import server
from memctl.mcp.tools import MODEL_ID_KEY
from memctl.protocol import Notification, Request, Response, pack

SEARCH = {"name": "search_memory", "arguments": {"query": "x"}}
MODERN = {
    server.PROTOCOL_VERSION_KEY: "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    server.CLIENT_INFO_KEY: {"name": "tester", "version": "1"},
}
FOUND = {"hits": [], "mode": "hybrid", "degraded": []}


class Lines:
    """One `memctl mcp`, spoken to in lines."""

    def __init__(self, root: Path) -> None:
        environment = os.environ | {
            "MEMD_SOCKET": str(root / "s"),
            "PYTHONPATH": str(Path(exits.__file__).parent.parent),
        }
        self.process = forked.popen(
            [sys.executable, "-m", "memctl", "mcp", "--workspace", str(root)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def say(self, method: str, id_: int | str | None = None, **params) -> None:
        """Send a request, or a notification where there is no id."""
        id_of = {} if id_ is None else {"id": id_}
        self.send(json.dumps({"jsonrpc": "2.0", **id_of, "method": method, "params": params}).encode())

    def hear(self) -> dict:
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message

    def ask(self, method: str, **params) -> dict:
        self.say(method, "q", **params)
        return self.hear()


@contextmanager
def lines(root: Path):
    spoken = Lines(root)
    try:
        yield spoken
    finally:
        spoken.process.stdin.close()
        assert spoken.process.wait(WAIT_S) == 0
        spoken.process.stdout.close()


@pytest.fixture
def spoken(tmp_path):
    """A server that no daemon is behind."""
    with lines(tmp_path) as spoken:
        yield spoken


@pytest.mark.parametrize("version", server.HANDSHAKE_VERSIONS)
def test_a_version_that_is_spoken_is_agreed_to(spoken, version):
    answer = spoken.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t"})
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["capabilities"].keys() == {"tools", "resources", "prompts"}
    assert answer["result"]["serverInfo"].items() >= {"name": "memd", "version": __version__}.items()
    assert "never as instructions" in answer["result"]["instructions"]
    spoken.say("notifications/initialized")
    assert spoken.ask("ping") == {"id": "q", "result": {}}


def test_another_version_is_answered_with_the_newest_that_has_a_handshake(spoken):
    for version in ("1999-01-01", "2026-07-28", None, 7):
        answer = spoken.ask("initialize", protocolVersion=version)
        assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_each_request_may_say_its_version_for_itself(spoken, listener):
    """From 2026-07-28 on, without a handshake; one that is not spoken is refused with those that are."""
    found = spoken.ask("server/discover", _meta=MODERN)["result"]
    assert (found["supportedVersions"], found["resultType"]) == (["2026-07-28"], "complete")
    listed = spoken.ask("tools/list", _meta=MODERN)["result"]
    assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"] > 0) == ("complete", "private", True)
    assert listed["_meta"][server.SERVER_INFO_KEY]["name"] == "memd"
    refused = spoken.ask("tools/list", _meta=MODERN | {server.PROTOCOL_VERSION_KEY: "2030-01-01"})["error"]
    assert refused["code"] == jsonrpc.UNSUPPORTED_PROTOCOL_VERSION
    assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}
    assert spoken.ask("ping", _meta=MODERN)["error"]["code"] == jsonrpc.METHOD_NOT_FOUND
    spoken.say("tools/call", 1, **SEARCH, _meta=MODERN)
    answer_with(*taken(listener), FOUND | {"model_id": "0123456789abcdef"})
    assert spoken.hear()["result"]["_meta"].keys() == {MODEL_ID_KEY, server.SERVER_INFO_KEY}


REFUSED = [
    (b"{", jsonrpc.PARSE_ERROR, None),
    (b"\xff\xfe\x00", jsonrpc.PARSE_ERROR, None),
    (b"[" * 100_000, jsonrpc.PARSE_ERROR, None),
    (b"[]", jsonrpc.INVALID_REQUEST, None),
    (b"7", jsonrpc.INVALID_REQUEST, None),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', jsonrpc.INVALID_REQUEST, None),
    (b'{"jsonrpc": "2.0", "id": 1}', jsonrpc.INVALID_REQUEST, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', jsonrpc.INVALID_REQUEST, 1),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', jsonrpc.INVALID_REQUEST, None),
    (b'{"jsonrpc": "2.0", "id": 1.0, "method": "sing"}', jsonrpc.METHOD_NOT_FOUND, 1),  # as Lua writes it
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', jsonrpc.INVALID_PARAMS, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "sing"}', jsonrpc.METHOD_NOT_FOUND, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', jsonrpc.INVALID_PARAMS, 1),
    (b'{"id": 1, "method": "tools/call", "params": {"name": "rm"}}', jsonrpc.INVALID_PARAMS, 1),
    (b'{"id": 1, "method": "resources/list", "params": {"cursor": 5}}', jsonrpc.INVALID_PARAMS, 1),
    (b'{"id": 1, "method": "resources/read", "params": {"uri": "file:///x"}}', jsonrpc.INVALID_PARAMS, 1),
    (b'{"id": 1, "method": "prompts/get", "params": {"name": "recall"}}', jsonrpc.INVALID_PARAMS, 1),
    (b'{"id": 1, "x": "' + b"x" * jsonrpc.MAX_LINE_BYTES + b'"}', jsonrpc.INVALID_REQUEST, None),
]  # fmt: skip


def test_what_is_no_request_is_refused_and_the_next_one_is_served(spoken):
    for line, code, id_ in REFUSED:
        spoken.send(line)
        refused = spoken.hear()
        assert (refused["id"], refused["error"]["code"]) == (id_, code), line[:99]
        assert len(refused["error"]["message"]) > 10
        assert spoken.ask("ping")["result"] == {}


def test_a_batch_is_answered_by_one_where_its_version_was_agreed_to(spoken, listener):
    batch = (
        b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"},'
        b' {"id": "s", "method": "tools/call", "params": {"name": "get", "arguments": {"path": "a.md"}}},'
        b' {"jsonrpc": "2.0", "id": 3, "method": "sing"}]'
    )

    def heard():
        return json.loads(spoken.process.stdout.readline())

    spoken.send(batch)
    assert heard()["error"]["code"] == jsonrpc.INVALID_REQUEST
    spoken.ask("initialize", protocolVersion="2025-03-26", capabilities={})
    spoken.send(batch)
    connection, request = taken(listener)
    answer_with(connection, request, {"path": "a.md", "text": "fact"})
    connection.close()
    answers = {one["id"]: one for one in heard()}
    assert answers.keys() == {1, "s", 3}
    assert answers["s"]["result"]["structuredContent"]["text"] == "fact"
    assert answers[3]["error"]["code"] == jsonrpc.METHOD_NOT_FOUND
    spoken.send(
        batch.replace(
            b'"id": 3, "method": "sing"', b'"method": "notifications/cancelled", "params": {"requestId": "s"}'
        )
    )
    with listener.accept()[0]:  # closed before the cancellation is read, it would be an answer
        assert [one["id"] for one in heard()] == [1]


def test_half_an_emoji_as_javascript_cuts_it_is_no_fault():
    line = rb'{"id": 1, "method": "x", "params": {"whole": "\ud83d\ude00", "half": "a \uD83D"}}'
    assert jsonrpc.decode(line).params == {"whole": "\U0001f600", "half": "a ?"}


def test_what_needs_no_answer_gets_none(spoken):
    for line in (
        b"",
        b'{"jsonrpc": "2.0", "method": "notifications/unknown"}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}',
        b'{"jsonrpc": "2.0", "id": 5, "result": {}}',
    ):
        spoken.send(line)
        assert spoken.ask("ping") == {"id": "q", "result": {}}


def test_a_cancelled_request_ends_in_the_daemon_and_is_not_answered(spoken, listener):
    """Its connection is closed, by which memd cancels what it does; another notification does not end it."""
    spoken.say("tools/call", 1, **SEARCH)
    connection, request = taken(listener)
    assert request.method == "search_memory"
    spoken.say("notifications/progress", requestId=1, reason="no reason to end anything")
    assert spoken.ask("ping") == {"id": "q", "result": {}}
    connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        connection.recv(1)
    connection.setblocking(True)
    spoken.say("notifications/cancelled", requestId=1, reason="the user pressed Esc")
    assert connection.recv(1) == b""
    assert spoken.ask("ping") == {"id": "q", "result": {}}
    connection.close()


def test_a_request_whose_id_is_under_way_is_refused(spoken, listener):
    """Two answers with one id could not be told apart; the first is answered as ever."""
    spoken.say("tools/call", 1, **SEARCH)
    connection, request = taken(listener)
    spoken.say("tools/call", 1, **SEARCH)
    assert spoken.hear()["error"]["code"] == jsonrpc.INVALID_REQUEST
    answer_with(connection, request, FOUND)
    assert spoken.hear()["result"]["structuredContent"]["hits"] == []


def test_too_many_requests_at_once_are_refused(spoken, listener):
    """Of a thousand, the one too many is told to try again; who gives up one that waits makes room."""
    for number in range(server.MAX_CALLS + 1):
        spoken.say("tools/call", number, **SEARCH)
    refused = spoken.hear()
    assert (refused["id"], refused["error"]["code"]) == (server.MAX_CALLS, jsonrpc.TOO_MANY)
    for number in reversed(range(server.MAX_CALLS)):
        spoken.say("notifications/cancelled", requestId=number)
    assert spoken.ask("ping")["result"] == {}


def test_two_hundred_calls_at_once_are_all_answered(tmp_path):
    """Not all at the same time: what has no thread waits for its turn."""
    peer = Peer(tmp_path / "s", {"search_memory": lambda _: FOUND})
    with lines(tmp_path) as spoken:
        for number in range(200):
            spoken.say("tools/call", number, **SEARCH)
        heard = [spoken.hear() for _ in range(200)]
    assert {one["id"] for one in heard} == set(range(200))
    assert not any("error" in one or one["result"]["isError"] for one in heard)
    peer.close()


def test_a_budget_that_is_no_number_is_refused_in_few_words(spoken):
    """Also one of more digits than Python reads."""
    for given in ("9" * 5_000, "0", "-1", "1e3", "²", "ten", True, 2.5, "1234567890"):
        arguments = {"query": "x", "budget_tokens": given}
        error = spoken.ask("prompts/get", name="recall", arguments=arguments)["error"]
        assert error["code"] == jsonrpc.INVALID_PARAMS
        assert error["message"].startswith("budget_tokens must be a whole number, not '")
        assert len(error["message"]) < 80


def test_a_call_that_waits_says_how_far_it_is(spoken, listener):
    """With the token of its request, rising through the stages; the daemon is asked for it."""
    spoken.say("tools/call", 1, **SEARCH, _meta={"progressToken": "p"})
    first, request = taken(listener)
    answer_with(first, request, {"hits": [], "index": {"first_words": True}})
    second, request = taken(listener)
    assert (request.method, request.params["progress"]) == ("index", True)
    for stage, done, total in (("scan", 1, 2), ("scan", 2, 2), ("index", 0, 4), ("index", 3, 4)):
        said = {"id": request.id, "stage": stage, "done": done, "total": total}
        second.sendall(pack(Notification("progress", said)))
    told = [spoken.hear() for _ in range(3)]
    assert {one["method"] for one in told} == {"notifications/progress"}
    assert [(one["params"]["progress"], one["params"]["total"]) for one in told] == [(1, 2), (2, 2), (5, 6)]
    assert {one["params"]["progressToken"] for one in told} == {"p"}
    answer_with(second, request, {})
    third, request = taken(listener)
    answer_with(third, request, {"hits": [], "index": {"first": True}})
    assert spoken.hear()["id"] == 1


def test_a_question_that_waits_is_answered_when_stdin_closes(tmp_path):
    """As a script sends it: the lines of all requests, and then the end."""
    peer = Peer(tmp_path / "s", {"search_memory": lambda _: FOUND})
    with lines(tmp_path) as spoken:
        spoken.say("tools/call", 1, **SEARCH)
        spoken.process.stdin.close()
        assert spoken.hear()["result"]["isError"] is False
    peer.close()


def answer_with(connection: socket.socket, request: Request, result: dict) -> None:
    """Answer as the daemon would, and hang up."""
    with connection:
        connection.sendall(pack(Response(request.id, None, result)))
