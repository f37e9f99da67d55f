"""The language server: reads messages until stdin closes, and answers them in their order.

Nothing is written to a note; stdout is the editor's.
"""

import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from memctl import jsonrpc, versions
from memctl.jsonrpc import InvalidLineError, JsonRpcError, JsonRpcNotification, JsonRpcRequest
from memctl.lsp import completion, navigation
from memctl.lsp.documents import Document, Documents
from memctl.lsp.positions import Encoding
from memctl.lsp.workspace import Daemon, FailedError, Workspace

NOT_INITIALIZED = -32002
REQUEST_FAILED = -32803
DOCUMENTATION_LINES = 12
ENCODINGS: tuple[Encoding, ...] = ("utf-32", "utf-8", "utf-16")  # the cheapest for us first

Handler = Callable[[dict[str, Any]], Any]


def serve() -> int:
    """Serve one editor on stdin and stdout; return the exit code."""
    return Server(sys.stdout.buffer).serve(sys.stdin.buffer)


class Server:
    """Serves one editor."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._daemon = Daemon()
        self._workspaces: dict[str, Workspace] = {}
        self._documents = Documents()
        self._is_ready = self._is_shut = False
        self._requests: dict[str, Handler] = {
            "initialize": self._initialize,
            "shutdown": self._shutdown,
            "textDocument/completion": self._completion,
            "completionItem/resolve": self._resolve,
            "textDocument/definition": self._definition,
            "textDocument/hover": self._hover,
            "textDocument/references": self._references,
            "textDocument/implementation": self._related,
            "textDocument/documentSymbol": self._symbols,
        }
        self._notifications: dict[str, Handler] = {
            "textDocument/didOpen": self._did_open,
            "textDocument/didChange": self._did_change,
            "textDocument/didClose": lambda params: self._documents.close(params["textDocument"]["uri"]),
        }

    def serve(self, stream: BinaryIO) -> int:
        """Process messages until `exit` or the end of *stream*; return the exit code that LSP asks for."""
        while True:
            try:
                body = jsonrpc.framed(stream)
                if body is None:
                    return 0 if self._is_shut else 1
                message = jsonrpc.decode(body)
            except InvalidLineError as error:
                self._write(jsonrpc.failure(error.id, error))
                continue
            if isinstance(message, JsonRpcRequest):
                self._write(self._answer(message))
            elif isinstance(message, JsonRpcNotification):
                if message.method == "exit":
                    return 0 if self._is_shut else 1
                self._take(message)

    def _answer(self, request: JsonRpcRequest) -> bytes:
        try:
            return jsonrpc.result(request.id, self._handler(request.method)(request.params))
        except JsonRpcError as error:
            return jsonrpc.failure(request.id, error)
        except FailedError as error:
            return jsonrpc.failure(request.id, JsonRpcError(REQUEST_FAILED, str(error)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _report(error)
            what = f"{request.method} failed inside memctl lsp ({type(error).__name__}): please report it"
            return jsonrpc.failure(request.id, JsonRpcError(jsonrpc.INTERNAL_ERROR, what))

    def _handler(self, method: str) -> Handler:
        if self._is_shut:
            raise JsonRpcError(jsonrpc.INVALID_REQUEST, "the server was shut down")
        if self._is_ready == (method == "initialize"):
            code = jsonrpc.INVALID_REQUEST if self._is_ready else NOT_INITIALIZED
            raise JsonRpcError(code, "initialize comes first, and once")
        if method not in self._requests:
            raise JsonRpcError(jsonrpc.METHOD_NOT_FOUND, f"there is no method {method!r}")
        return self._requests[method]

    def _take(self, notification: JsonRpcNotification) -> None:
        handler = self._notifications.get(notification.method)
        if handler is None or not self._is_ready:
            return
        try:
            handler(notification.params)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _report(error)

    def _write(self, message: bytes) -> None:
        try:
            self._output.write(jsonrpc.frame(message))
            self._output.flush()
        except OSError:  # the editor has ended, and stdin will close
            pass

    # -- the session ---------------------------------------------------------------------------------

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        general = (params.get("capabilities") or {}).get("general") or {}
        offered = general.get("positionEncodings") or ["utf-16"]
        self._documents.encoding = next((one for one in ENCODINGS if one in offered), "utf-16")
        self._is_ready = True
        return {
            "capabilities": {
                "positionEncoding": self._documents.encoding,
                "textDocumentSync": {"openClose": True, "change": 2},
                "completionProvider": {"triggerCharacters": completion.TRIGGERS, "resolveProvider": True},
                "definitionProvider": True,
                "hoverProvider": True,
                "referencesProvider": True,
                "implementationProvider": True,
                "documentSymbolProvider": True,
            },
            "serverInfo": {"name": "memd", "version": versions.own()},
        }

    def _shutdown(self, _: dict[str, Any]) -> None:
        self._is_shut = True

    def _did_open(self, params: dict[str, Any]) -> None:
        given = params["textDocument"]
        self._documents.open(given["uri"], given["text"], given.get("version"))

    def _did_change(self, params: dict[str, Any]) -> None:
        document = self._documents.get(params["textDocument"]["uri"])
        if document is None:
            return
        for change in params["contentChanges"]:
            document.change(change.get("range"), change["text"])
        document.version = params["textDocument"].get("version")

    # -- answers -------------------------------------------------------------------------------------

    def _here(self, params: dict[str, Any]) -> tuple[Document, Workspace] | None:
        """Return the document of a request and its workspace; None outside of any."""
        document = self._documents.get(params["textDocument"]["uri"])
        if document is None or document.root is None:
            return None
        return document, self._workspace(document.root)

    def _workspace(self, root: str) -> Workspace:
        return self._workspaces.setdefault(root, Workspace(root, self._daemon))

    def _completion(self, params: dict[str, Any]) -> dict[str, Any] | None:
        here = self._here(params)
        return completion.complete(here[0], params["position"], here[1]) if here else None

    def _resolve(self, item: dict[str, Any]) -> dict[str, Any]:
        place = item.get("data")
        if not isinstance(place, dict):
            return item
        try:
            value = self._workspace(place["root"]).first_lines(place["path"], DOCUMENTATION_LINES)
        except FailedError:  # it has just gone: the item is shown without it
            return item
        return item | {"documentation": {"kind": "markdown", "value": value}}

    def _definition(self, params: dict[str, Any]) -> dict[str, Any] | None:
        if (here := self._here(params)) is None:
            return None
        document, workspace = here
        return navigation.definition(
            document, document.offset(params["position"]), workspace, self._documents
        )

    def _hover(self, params: dict[str, Any]) -> dict[str, Any] | None:
        if (here := self._here(params)) is None:
            return None
        return navigation.hover(here[0], here[0].offset(params["position"]), here[1])

    def _references(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        if (here := self._here(params)) is None:
            return []
        document, workspace = here
        return navigation.references(
            document, document.offset(params["position"]), workspace, self._documents
        )

    def _related(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        if (here := self._here(params)) is None:
            return []
        return navigation.related(here[0], params["position"]["line"], here[1], self._documents)

    def _symbols(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        here = self._here(params)
        return navigation.symbols(*here) if here else []


def _report(error: Exception) -> None:
    """Say on stderr where an error happened, without its text, which may quote a note: editors log it."""
    print(*traceback.format_tb(error.__traceback__), type(error).__name__, file=sys.stderr)
