"""An HTTP server on this machine for tests: a subclass says what it answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Asked(BaseHTTPRequestHandler):
    """One request, which the server's `get` or `post` answers."""

    server: "_Listener"

    def do_GET(self) -> None:
        self.server.owner.get(self)

    def do_POST(self) -> None:
        self.server.owner.post(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, content: Any, status: int = 200) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    owner: "HttpServer"

    def handle_error(self, *_: object) -> None:
        """Whoever was killed does not wait for its answer."""


class HttpServer:
    """Serves from `start` until it is stopped, each time at the same address."""

    port = 0

    def start(self) -> None:
        self._http = _Listener(("127.0.0.1", self.port), Asked)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.port = self._http.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def get(self, asked: Asked) -> None:
        raise NotImplementedError

    def post(self, asked: Asked, body: dict[str, Any]) -> None:
        raise NotImplementedError
