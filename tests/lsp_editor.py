"""A plain client of `memctl lsp`, each of whose answers must have the type of the protocol."""

import json
import queue
import subprocess
import sys
import threading
from typing import Any
from urllib.parse import quote

import forked
from daemon_process import Daemon
from lsprotocol import converters, types
from patience import PATIENCE

CONVERTER = converters.get_converter()
RESULTS = {
    "initialize": types.InitializeResponse,
    "shutdown": types.ShutdownResponse,
    "textDocument/completion": types.CompletionResponse,
    "completionItem/resolve": types.CompletionResolveResponse,
    "textDocument/definition": types.DefinitionResponse,
    "textDocument/hover": types.HoverResponse,
    "textDocument/references": types.ReferencesResponse,
    "textDocument/implementation": types.ImplementationResponse,
    "textDocument/documentSymbol": types.DocumentSymbolResponse,
    "textDocument/documentLink": types.DocumentLinkResponse,
    "textDocument/inlayHint": types.InlayHintResponse,
    "textDocument/prepareRename": types.PrepareRenameResponse,
    "textDocument/rename": types.RenameResponse,
    "textDocument/codeAction": types.CodeActionResponse,
    "workspace/symbol": types.WorkspaceSymbolResponse,
    "workspace/willRenameFiles": types.WillRenameFilesResponse,
    "workspace/executeCommand": types.ExecuteCommandResponse,
}
NOTIFICATIONS = {
    "textDocument/publishDiagnostics": types.PublishDiagnosticsNotification,
    "window/showMessage": types.ShowMessageNotification,
    "window/showDocument": types.ShowDocumentRequest,
}
ABLE = {
    # As Neovim's: documentChanges are not named.
    "workspace": {"workspaceEdit": {"resourceOperations": ["create", "rename", "delete"]}},
    "window": {"showDocument": {"support": True}},
}


class Editor:
    """A plain client of the server."""

    def __init__(
        self, daemon: Daemon, root: str, *encodings: str, able: dict[str, Any] | None = None, **options: Any
    ) -> None:
        self.process = forked.popen(
            [sys.executable, "-m", "memctl", "lsp"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=daemon.environment,
        )  # fmt: skip
        self.root = root
        self.answered = 0
        self.told: list[dict[str, Any]] = []  # what came without being asked for
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        capabilities = dict(able or {})
        if encodings:
            capabilities["general"] = {"positionEncodings": list(encodings)}
        self.start = self.ask(
            "initialize", processId=None, rootUri=f"file://{root}", capabilities=capabilities, **options
        )
        self.tell("initialized")

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def _listen(self) -> None:
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            self.process.stdout.readline()
            self._messages.put(json.loads(self.process.stdout.read(length)))
        self._messages.put(None)

    def hear(self) -> dict[str, Any]:
        """Return the next message, and check it if it is no answer."""
        message = self._messages.get(timeout=60 * PATIENCE)
        assert message is not None, "the server has ended"
        if "method" in message:
            CONVERTER.structure(message, NOTIFICATIONS[message["method"]])
            self.told.append(message)
        return message

    def reply(self) -> dict[str, Any]:
        """Return the next answer."""
        while "method" in (message := self.hear()):
            pass
        return message

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request, which must have the type of the protocol."""
        self.answered += 1
        self.send(id=self.answered, method=method, params=params)
        answer = self.reply()
        assert answer["id"] == self.answered
        assert "error" not in answer, answer
        CONVERTER.structure(answer, RESULTS[method])
        return answer["result"]

    def refused(self, method: str, **params: Any) -> str:
        """Return the message of the error of a request."""
        self.answered += 1
        self.send(id=self.answered, method=method, params=params)
        return self.reply()["error"]["message"]

    def hints(self, path: str) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a document, and return the last ones."""
        while True:
            params = self.hear().get("params", {})
            if params.get("uri") == self.uri(path) and "diagnostics" in params:
                return params["diagnostics"]

    def uri(self, path: str) -> str:
        return f"file://{self.root}/{quote(path)}"

    def open(self, path: str, text: str) -> None:
        document = {"uri": self.uri(path), "languageId": "markdown", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def change(self, path: str, version: int, *changes: dict[str, Any]) -> None:
        document = {"uri": self.uri(path), "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=list(changes))

    def at(self, method: str, path: str, line: int, character: int, **params: Any) -> Any:
        return self.ask(f"textDocument/{method}", **self.place(path, line, character), **params)

    def place(self, path: str, line: int, character: int) -> dict[str, Any]:
        position = {"line": line, "character": character}
        return {"textDocument": {"uri": self.uri(path)}, "position": position}

    def items(self, path: str, line: int, character: int) -> list[dict[str, Any]]:
        return self.at("completion", path, line, character)["items"]

    def actions(self, path: str, *span: int, **context: Any) -> dict[str, dict[str, Any]]:
        """Return the code actions at (line, character, last line, last character) by title."""
        ends = {"start": span[:2], "end": span[2:] or span}
        ends = {name: {"line": one[0], "character": one[1]} for name, one in ends.items()}
        found = self.ask(
            "textDocument/codeAction",
            textDocument={"uri": self.uri(path)}, range=ends,
            context={"diagnostics": [], **context},
        )  # fmt: skip
        return {one["title"]: one for one in found}

    def end(self) -> int:
        self.ask("shutdown")
        self.tell("exit")
        self.process.stdin.close()
        self._listener.join()
        self.process.stdout.close()
        return self.process.wait()


def places(found: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return path and line of each location."""
    return [(one["uri"].rpartition("/notes/")[2], one["range"]["start"]["line"]) for one in found]
