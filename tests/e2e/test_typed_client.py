"""The clients' typed methods, asked of a real daemon: what travels has the keys that the types promise."""

import asyncio
import inspect

import pytest

from memctl import types
from memctl.async_client import AsyncClient
from memctl.client import Client, RpcError
from memctl.methods import AsyncMethods, Methods
from memd.api.methods import METHODS


def test_every_method_of_the_protocol_is_one_of_both_clients():
    wanted = {name.removeprefix("memd.").replace(".", "_") for name in METHODS} - {"subscribe"}
    for kind in (Methods, AsyncMethods):
        assert wanted | {"call"} == {name for name, _ in inspect.getmembers(kind, inspect.isfunction)
                                     if not name.startswith("_")}  # fmt: skip


def test_typed_methods_answer_what_their_types_say(sample):
    daemon, root = sample
    with Client.connect(daemon.socket) as memd:
        found = memd.search("coffee", workspace=root, limit=3, mode="keyword")
        assert types.SearchResult.__required_keys__ <= found.keys()
        hit = found["hits"][0]
        assert types.SearchHit.__required_keys__ <= hit.keys()
        assert memd.get(workspace=root, id=hit["id"])["path"] == hit["path"]
        assert memd.index(workspace=root, on_progress=lambda _: None)["chunks"]
        assert memd.workspace_list()["workspaces"][0]["root"] == root
        with pytest.raises(RpcError) as failed:
            memd.get(workspace=root, path="no-such-note.md")
        assert failed.value.code == "MEMD_NOT_FOUND"


def test_an_event_loop_asks_many_things_at_once(sample):
    daemon, root = sample

    async def ask():
        async with await AsyncClient.connect(daemon.socket) as memd:
            words = ["coffee", "guitar", "garden"] * 20
            answers = await asyncio.gather(*(memd.search(word, workspace=root, limit=1) for word in words))
            return [answer["hits"] for answer in answers]

    hits = asyncio.run(ask())
    assert hits[:3] * 20 == hits
    assert hits[0]
