"""A program that follows a workspace gets every event, once and in order."""

import pytest
from scripted_peer import Peer, refuse

from memctl.client import Client, RpcError, Unreachable
from memctl.protocol import Notification, Response, pack

SUBSCRIBED = {"subscribed": True, "workspaces": ["/a"]}


@pytest.fixture
def following(tmp_path):
    """Return a function that connects to a peer with these events, after which it hangs up."""
    opened = []

    def connect(*events, **answers):
        told = [event if event is None else {"event": event} for event in events]
        functions = {"subscribe": lambda _: SUBSCRIBED, "ping": lambda _: "pong"} | answers
        peer = Peer(tmp_path / "s", functions, told)
        opened.append(peer)
        opened.append(Client.connect(tmp_path / "s"))
        return peer, opened[-1]

    yield connect
    for one in reversed(opened):
        one.close()


def test_events_follow_their_subscription(following):
    """Those that came in one piece with its answer are the first; a lost daemon ends them by an error."""
    peer, memd = following("indexed", "embedded", None)
    seen = []
    with pytest.raises(Unreachable, match="closed the connection"):
        seen.extend(event["event"] for event in memd.events("/a"))
    assert (peer.methods, peer.asked[0][1]["workspace"]) == (["subscribe"], "/a")
    assert "progress" not in peer.asked[0][1]
    assert seen == ["indexed", "embedded"]


def test_the_subscription_begins_with_the_call(following):
    """Not when the first event is asked for: what happens between the two is not missed."""
    peer, memd = following()
    memd.events("/a")
    assert peer.methods == ["subscribe"]


def test_all_workspaces_are_followed_where_none_is_named(following):
    peer, memd = following()
    memd.events()
    assert "workspace" not in peer.asked[0][1]


def test_calls_in_between_lose_no_event(following):
    _, memd = following("indexed", "embedded")
    happening = memd.events()
    assert memd.call("ping") == "pong"
    assert [next(happening)["event"] for _ in range(2)] == ["indexed", "embedded"]
    assert memd.call("ping") == "pong"


def test_leaving_the_loop_leaves_the_connection(following):
    _, memd = following("indexed", "embedded")
    happening = memd.events()
    for event in happening:
        assert event["event"] == "indexed"
        break
    assert memd.call("ping") == "pong"
    assert next(happening)["event"] == "embedded"


def test_what_cannot_be_followed_is_an_error_of_the_call(following):
    _, memd = following(subscribe=refuse("MEMD_WORKSPACE", "no workspace at /b"))
    with pytest.raises(RpcError, match="no workspace at /b"):
        memd.events("/b")


def test_another_notification_is_no_event(tmp_path):
    from test_client import peer

    replies = [
        pack(Response(1, None, SUBSCRIBED)),
        pack(Notification("news", {"event": "x"})),
        pack(Notification("event", {"event": "state"})),
    ]
    with peer(tmp_path, *replies) as path, Client.connect(path) as memd:
        assert next(memd.events()) == {"event": "state"}
