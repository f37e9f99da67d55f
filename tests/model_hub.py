"""A mirror of a model hub for tests: one repository, and enough of the API for the hub's client."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

REVISION = "1" * 40


class ModelHub:
    """Serves *files* as the repository *repo*; a test may alter what is sent."""

    def __init__(self, repo: str, files: dict[str, bytes]) -> None:
        self.repo, self.files = repo, dict(files)
        self.sent = dict(files)  # what a download gives, where it shall differ from what is listed
        self.listing: bytes | None = None  # what the API answers in the place of its list
        self.endless: set[str] = set()  # paths of which a body has no end
        self.asked: list[tuple[str, str | None]] = []  # path and Authorization of each request
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.reply(body=False)

            def do_GET(self) -> None:
                self.reply(body=True)

            def reply(self, *, body: bool) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.asked.append((path, self.headers["Authorization"]))
                content = hub.content(path)
                self.send_response(404 if content is None else 200)
                if content is None:
                    self.send_header("X-Error-Code", "RepoNotFound")
                content = content or b""
                if not (body and path in hub.endless):
                    self.send_header("Content-Length", str(len(content)))
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", REVISION)
                self.end_headers()
                if body:
                    self.wfile.write(content)
                while body and path in hub.endless:
                    try:
                        self.wfile.write(bytes(1024 * 1024))
                    except OSError:  # nobody reads any more
                        return

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"

    def content(self, path: str) -> bytes | None:
        """Return what is at *path*; None: nothing."""
        if path.startswith(f"/api/models/{self.repo}"):
            return self.listing if self.listing is not None else json.dumps(self._listing()).encode()
        return self.sent.get(path.removeprefix(f"/{self.repo}/resolve/{REVISION}/"))

    def _listing(self) -> dict[str, Any]:
        siblings = []
        for name, content in self.files.items():
            sibling: dict[str, Any] = {"rfilename": name, "size": len(content)}
            if name.endswith(".onnx"):
                sha256 = hashlib.sha256(content).hexdigest()
                sibling["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
                sibling["blobId"] = "0" * 40  # that of the pointer
            else:
                git = b"blob %d\0" % len(content) + content
                sibling["blobId"] = hashlib.sha1(git, usedforsecurity=False).hexdigest()
            siblings.append(sibling)
        return {
            "id": self.repo, "modelId": self.repo, "sha": REVISION, "private": False, "tags": [],
            "downloads": 0, "likes": 0, "cardData": {"license": "apache-2.0"}, "siblings": siblings,
        }  # fmt: skip

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
