"""The language server: reads messages until the editor ends, and answers them in their order.

Nothing is written to a note; stdout is the editor's.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from memctl import __version__, jsonrpc, paths, workspaces
from memctl.jsonrpc import InvalidLineError, JsonRpcError, JsonRpcNotification, JsonRpcRequest
from memctl.lsp import actions, completion, navigation, rename
from memctl.lsp.documents import Document, Editor, located, path_of
from memctl.lsp.params import ANYTHING, DOCUMENT, INITIALIZE, PLACE, RANGE, Shape, check
from memctl.lsp.positions import Encoding
from memctl.lsp.settings import changed
from memctl.lsp.workspace import Daemon, FailedError, Workspace

NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803
DOCUMENTATION_LINES = 12
IDLE_S = 0.3  # from the last change to the diagnostics: less disturbs typing
SAVED_S = 1.0  # from a save to the diagnostics of all open documents: the index follows in less
INDEX_S = 5.0  # until a first index is looked at again
ENCODINGS: tuple[Encoding, ...] = ("utf-32", "utf-8", "utf-16")  # the cheapest for us first
_WARNING, _INFO = 2, 3  # MessageType
# What a message of another shape than the protocol's ends in; it is reported.
_UNFORESEEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError)

Handler = Callable[[dict[str, Any]], Any]
Answer = Callable[[dict[str, Any], Document, Workspace], Any]
Message = JsonRpcRequest | JsonRpcNotification | InvalidLineError | None


def serve() -> int:
    """Serve one editor on stdin and stdout; return the exit code."""
    # Without a buffer: a thread that waits in one when Ctrl-C ends the server would hold its lock.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stream:
        return Server(sys.stdout.buffer).serve(stream)


class Server:
    """Serves one editor."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._messages: SimpleQueue[Message] = SimpleQueue()
        self._cancelled: set[jsonrpc.Id] = set()
        self._daemon = Daemon()
        self._workspaces: dict[str, Workspace] = {}
        self._folders: list[str] = []
        self._editor = Editor()
        self._asked = 0  # requests to the editor
        self._due: dict[str, float] = {}  # URI → when its diagnostics are made
        self._is_ready = self._is_shut = False
        self._requests: dict[str, tuple[Shape, Handler]] = {
            "initialize": (INITIALIZE, self._initialize),
            "shutdown": (ANYTHING, self._shutdown),
            "completionItem/resolve": (ANYTHING, self._resolve),
            "textDocument/completion": (PLACE, self._on(completion.complete)),
            "textDocument/definition": (PLACE, self._definition),
            "textDocument/hover": (PLACE, self._on(navigation.hover)),
            "textDocument/references": (PLACE, self._on(navigation.references)),
            "textDocument/implementation": (PLACE, self._on(navigation.related)),
            "textDocument/documentSymbol": (DOCUMENT, self._on(navigation.symbols)),
            "textDocument/documentLink": (DOCUMENT, self._on(navigation.document_links)),
            "textDocument/inlayHint": (RANGE, self._on(navigation.inlay_hints)),
            "textDocument/prepareRename": (PLACE, self._on(rename.prepare)),
            "textDocument/rename": (PLACE | {"newName": str}, self._on(rename.rename)),
            "textDocument/codeAction": (RANGE, self._on(actions.actions)),
            "workspace/symbol": ({"query": str}, self._symbols),
            "workspace/willRenameFiles": ({"files": [{"oldUri": str, "newUri": str}]}, self._will_rename),
            "workspace/executeCommand": ({"command": str}, self._execute),
        }
        self._notifications: dict[str, Handler] = {
            "textDocument/didOpen": self._did_open,
            "textDocument/didChange": self._did_change,
            "textDocument/didSave": self._did_save,
            "textDocument/didClose": self._did_close,
            "workspace/didChangeConfiguration": lambda params: self._configure(params.get("settings")),
            "workspace/didChangeWorkspaceFolders": self._did_change_folders,
        }

    def serve(self, stream: BinaryIO) -> int:
        """Process messages until `exit` or the end of *stream*; return the exit code that LSP asks for."""
        Thread(target=self._read, args=(stream,), daemon=True).start()
        while True:
            try:
                message = self._messages.get(timeout=self._pause_s())
            except Empty:
                self._diagnose()
                continue
            if isinstance(message, JsonRpcRequest):
                self._write(self._answer(message))
            elif isinstance(message, InvalidLineError):
                self._write(jsonrpc.failure(message.id, message))
            elif message is None or message.method == "exit":
                with suppress(OSError):
                    Path(self._page()).unlink()
                return 0 if self._is_shut else 1
            else:
                self._take(message)

    def _read(self, stream: BinaryIO) -> None:
        """Read messages ahead of their answers, so that a request can be cancelled before its turn."""
        while True:
            try:
                body = jsonrpc.framed(stream)
                message = None if body is None else jsonrpc.decode(body)
            except InvalidLineError as error:
                self._messages.put(error)
                continue
            if body is None or (isinstance(message, JsonRpcNotification) and message.method == "exit"):
                self._messages.put(None)
                return
            if isinstance(message, JsonRpcNotification) and message.method == "$/cancelRequest":
                if isinstance(id_ := message.params.get("id"), str | int):
                    self._cancelled.add(id_)
            elif message is not None:  # else the editor's answer to a request of ours
                self._messages.put(message)

    def _answer(self, request: JsonRpcRequest) -> bytes:
        try:
            shape, handler = self._handler(request)
            check(request.method, request.params, shape)
            return jsonrpc.result(request.id, handler(request.params))
        except JsonRpcError as error:
            return jsonrpc.failure(request.id, error)
        except FailedError as error:
            return jsonrpc.failure(request.id, JsonRpcError(REQUEST_FAILED, str(error)))
        except _UNFORESEEN as error:
            return jsonrpc.unforeseen(request.id, request.method, "memctl lsp", error)

    def _handler(self, request: JsonRpcRequest) -> tuple[Shape, Handler]:
        method = request.method
        if request.id in self._cancelled:
            self._cancelled.discard(request.id)
            raise JsonRpcError(REQUEST_CANCELLED, "cancelled")
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
        except _UNFORESEEN as error:
            jsonrpc.report(error)

    def _write(self, message: bytes) -> None:
        try:
            self._output.write(jsonrpc.frame(message))
            self._output.flush()
        except OSError:  # the editor has ended, and stdin will close
            pass

    def _show(self, kind: int, text: str) -> None:
        self._write(jsonrpc.notification("window/showMessage", {"type": kind, "message": f"memd: {text}"}))

    # -- the session ---------------------------------------------------------------------------------

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        editor = self._editor
        editor.capabilities = params.get("capabilities") or {}
        editor.name = str((params.get("clientInfo") or {}).get("name", "")).casefold()
        offered = editor.can("general", "positionEncodings") or ["utf-16"]
        editor.encoding = next((one for one in ENCODINGS if one in offered), "utf-16")
        folders = [one["uri"] for one in params.get("workspaceFolders") or ()]
        self._folders = [path for uri in folders or [params.get("rootUri") or ""] if (path := path_of(uri))]
        self._is_ready = True
        self._configure(params.get("initializationOptions"))
        shown = {
            "documentSymbolProvider": (editor.settings.documentSymbols, True),
            "documentLinkProvider": (editor.settings.documentLinks, {}),
            "inlayHintProvider": (editor.settings.inlayHints, True),
        }
        has_own = editor.name.startswith(navigation.OF_VS_CODE)
        every = {"scheme": "file", "pattern": {"glob": "**"}}
        return {
            "capabilities": {
                "positionEncoding": editor.encoding,
                "textDocumentSync": {"openClose": True, "change": 2, "save": True},
                "completionProvider": {"triggerCharacters": completion.TRIGGERS, "resolveProvider": True},
                "definitionProvider": True,
                "hoverProvider": True,
                "referencesProvider": True,
                "implementationProvider": True,
                "workspaceSymbolProvider": True,
                **{
                    name: how
                    for name, (is_on, how) in shown.items()
                    if is_on or (is_on is None and not has_own)
                },
                "renameProvider": {"prepareProvider": True},
                "codeActionProvider": {"codeActionKinds": ["quickfix", "refactor"]},
                "executeCommandProvider": {"commands": list(actions.COMMANDS)},
                "workspace": {
                    "workspaceFolders": {"supported": True, "changeNotifications": True},
                    "fileOperations": {"willRename": {"filters": [every]}},
                },
            },
            "serverInfo": {"name": "memd", "version": __version__},
        }

    def _shutdown(self, _: dict[str, Any]) -> None:
        self._is_shut = True

    def _configure(self, given: Any) -> None:
        self._editor.settings, wrong = changed(self._editor.settings, given)
        for text in wrong:
            self._show(_WARNING, text)
        self._plan(self._editor.documents, 0)

    def _did_change_folders(self, params: dict[str, Any]) -> None:
        gone = {path_of(one["uri"]) for one in params["event"]["removed"]}
        added = [path_of(one["uri"]) for one in params["event"]["added"]]
        self._folders = [one for one in [*self._folders, *added] if one and one not in gone]
        self._plan(self._editor.documents, 0)

    def _did_open(self, params: dict[str, Any]) -> None:
        given, editor = params["textDocument"], self._editor
        document = Document(given["uri"], given["text"], given.get("version"), editor.encoding)
        editor.documents[document.uri] = document
        self._plan([document.uri], 0)

    def _did_change(self, params: dict[str, Any]) -> None:
        document = self._editor.documents.get(params["textDocument"]["uri"])
        if document is None:
            return
        for change in params["contentChanges"]:
            document.change(change.get("range"), change["text"])
        document.version = params["textDocument"].get("version")
        self._plan([document.uri], IDLE_S)

    def _did_save(self, params: dict[str, Any]) -> None:
        if (document := self._editor.documents.get(params["textDocument"]["uri"])) is not None:
            document.copy_of = None
        self._plan(self._editor.documents, SAVED_S)

    def _did_close(self, params: dict[str, Any]) -> None:
        uri = params["textDocument"]["uri"]
        self._editor.documents.pop(uri, None)
        if self._due.pop(uri, None) is not None or self._editor.settings.diagnostics:
            self._publish(uri, None, [])

    # -- diagnostics ---------------------------------------------------------------------------------

    def _plan(self, uris: Iterable[str], in_s: float) -> None:
        self._due |= dict.fromkeys(uris, time.monotonic() + in_s)

    def _pause_s(self) -> float | None:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def _diagnose(self) -> None:
        """Publish the diagnostics that are due; nothing else waits now."""
        uri, due = min(self._due.items(), key=lambda one: one[1])
        if due > time.monotonic():
            return
        del self._due[uri]
        document = self._editor.documents.get(uri)
        if document is None or (root := document.locate()) is None:
            return
        found: list[dict[str, Any]] = []
        try:
            workspace = self._workspace(root)
            if self._editor.settings.diagnostics:
                if not workspace.is_indexed():  # each link would seem broken
                    self._plan([uri], INDEX_S)
                    return
                found = navigation.diagnostics(document, workspace)
        except FailedError:  # it is said where the user asks for something
            return
        except _UNFORESEEN as error:
            jsonrpc.report(error)
            return
        self._publish(uri, document.version, found)

    def _publish(self, uri: str, version: int | None, found: list[dict[str, Any]]) -> None:
        params = {"uri": uri, "diagnostics": found, **({} if version is None else {"version": version})}
        self._write(jsonrpc.notification("textDocument/publishDiagnostics", params))

    # -- answers -------------------------------------------------------------------------------------

    def _on(self, answer: Answer) -> Handler:
        """Return a handler of requests about an open document; outside of any workspace nothing is known."""

        def handle(params: dict[str, Any]) -> Any:
            document = self._editor.documents.get(params["textDocument"]["uri"])
            if document is None or (root := document.locate()) is None:
                return None
            return answer(params, document, self._workspace(root))

        return handle

    def _workspace(self, root: str) -> Workspace:
        workspace = self._workspaces.setdefault(root, Workspace(root, self._daemon, self._editor))
        workspace.begin()
        return workspace

    def _roots(self) -> list[str]:
        """Return the workspaces of the open documents and of the editor's folders."""
        opened = (one.root for one in reversed(self._editor.documents.values()))  # that of the last one first
        by_place: dict[str, str] = {}  # one folder may be open by two names
        for root in (*opened, *map(workspaces.above, self._folders)):
            if root:
                by_place.setdefault(os.path.realpath(root), root)
        return list(by_place.values())

    def _resolve(self, item: dict[str, Any]) -> dict[str, Any]:
        place = item.get("data")
        if not isinstance(place, dict):
            return item
        try:
            value = self._workspace(place["root"]).first_lines(place["path"], DOCUMENTATION_LINES)
        except (FailedError, KeyError):  # it has just gone, or is no item of ours: it is shown without it
            return item
        return item | {"documentation": {"kind": "markdown", "value": value}}

    def _definition(self, params: dict[str, Any]) -> Any:
        if path_of(params["textDocument"]["uri"]) != self._page():
            return self._on(navigation.definition)(params)
        page = self._editor.documents.get(params["textDocument"]["uri"])
        return navigation.page_definition(page, params["position"]) if page else None

    def _symbols(self, params: dict[str, Any]) -> Any:
        by_name = self._editor.settings.symbols == "names" or (
            self._editor.settings.symbols == "auto" and self._editor.name.startswith(navigation.FILTERING)
        )
        find = navigation.named_symbols if by_name else navigation.found_symbols
        found = [one for root in self._roots() for one in find(params["query"], self._workspace(root))]
        # Of several workspaces the best come first; of one, the order is that of the search.
        return sorted(found, key=lambda one: -one.get("score", 0.0))

    def _will_rename(self, params: dict[str, Any]) -> Any:
        roots = (located(one["oldUri"])[0] for one in params["files"])
        root = next(filter(None, roots), None)
        return rename.files_moved(params, self._workspace(root)) if root else None

    # -- commands ------------------------------------------------------------------------------------

    def _execute(self, params: dict[str, Any]) -> Any:
        if params["command"] not in actions.COMMANDS:
            raise JsonRpcError(jsonrpc.INVALID_PARAMS, f"there is no command {params['command']!r}")
        given = params.get("arguments") or [{}]
        given = given[0] if isinstance(given, list) else given
        given = given if isinstance(given, dict) else {"query": given}
        document = self._editor.documents.get(str(given.get("uri")))
        roots = [document.root] if document is not None and document.root else self._roots()
        if not roots:
            raise FailedError("no workspace is open here: memctl init makes one of a folder")
        answer = actions.execute(params["command"], given, document, self._workspace(roots[0]), self._page())
        if "page" in answer and self._editor.can("window", "showDocument", "support"):
            self._asked += 1
            shown = {"uri": answer["page"], "takeFocus": True}
            self._write(jsonrpc.request(f"memd-{self._asked}", "window/showDocument", shown))
        elif "page" in answer:
            self._show(_INFO, f"the hits are in {path_of(answer['page'])}")
        elif params["command"] == "memd.add":
            self._show(_INFO, f"added {answer['path']}")
        return answer

    def _page(self) -> str:
        """Return the path of this server's page of hits, which each search writes anew."""
        return f"{paths.runtime_dir()}/search-{os.getpid()}.md"
