"""How does a client follow what happens? The method `subscribe`; the connection sends the events."""

from typing import Any

from memd.rpc.context import Call
from memd.service import requests
from memd.workspace.workspaces import Workspaces

Fields = dict[str, Any]


async def subscribe_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``subscribe``: from now on this connection gets the events of one workspace, or of all."""
    asked = requests.convert(params, requests.Subscribe)
    root = str(workspaces.root_of(asked.workspace)) if asked.workspace else None
    call.follow(lambda listener: workspaces.feed.listen(listener, root))
    return {"subscribed": True, "workspaces": [root] if root else [str(one) for one in workspaces.roots]}
