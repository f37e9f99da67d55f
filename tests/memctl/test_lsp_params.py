"""Parameters of LSP's requests: those of another shape are refused, and what is wrong is named."""

import io
import json

import pytest

from memctl import jsonrpc
from memctl.lsp import params as shapes
from memctl.lsp.server import Server

PLACE = {"textDocument": {"uri": "file:///x.md"}, "position": {"line": 0, "character": 0}}


def check(method, params):
    shape, _ = Server(io.BytesIO())._requests[method]
    shapes.check(method, params, shape)


@pytest.mark.parametrize(
    ("method", "params", "wrong"),
    [
        ("textDocument/hover", {}, "params.textDocument must be dict"),
        ("textDocument/hover", PLACE | {"textDocument": {"uri": 5}}, "params.textDocument.uri must be str"),
        ("textDocument/completion", PLACE | {"position": {"line": -1}}, "params.position.line must be an"),
        ("textDocument/rename", PLACE, "params.newName must be str"),
        ("textDocument/codeAction", PLACE, "params.range must be dict"),
        ("workspace/symbol", {"query": None}, "params.query must be str"),
        ("workspace/willRenameFiles", {"files": [{}]}, "params.files[0].oldUri must be str"),
        ("workspace/executeCommand", {"command": True}, "params.command must be str"),
        ("initialize", {"workspaceFolders": [{}]}, "params.workspaceFolders[0].uri must be str"),
        ("initialize", {"workspaceFolders": None, "rootUri": 5}, "params.rootUri must be str"),
    ],
)
def test_params_of_another_shape_are_the_clients_fault(method, params, wrong):
    with pytest.raises(jsonrpc.JsonRpcError) as refused:
        check(method, params)
    assert refused.value.code == jsonrpc.INVALID_PARAMS
    assert str(refused.value).startswith(f"{method}: {wrong}")


def test_what_may_be_missing_or_null_is_taken():
    check("initialize", {"workspaceFolders": None, "capabilities": {"general": None}})
    check("textDocument/hover", PLACE | {"workDoneToken": 1})


def test_a_whole_number_is_an_integer_however_it_is_written():
    sent = json.dumps(
        {"id": 1, "method": "x", "params": PLACE | {"position": {"line": 3.0, "character": 2e1}}}
    )
    request = jsonrpc.decode(sent.encode())
    check("textDocument/hover", request.params)
    assert request.params["position"] == {"line": 3, "character": 20}
