"""Requests in JSON to a server that embeds, each with one deadline, and the check of what it answers.

Speaks HTTP with the standard library alone, opens one connection a request and keeps none, so that a
server which dies and comes back is simply there again. Whether an address may be asked is decided by
the configuration, not here.
"""

import array
import http.client
import json
import math
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from memd.embedding import MODEL_FAILED, MODEL_SLOW, UnavailableError

# Of one answer. 8 vectors of 4,096 numbers in JSON are below 1 MiB; the rest is room.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
READ_BYTES = 65_536


class ModelServer:
    """One model of one server. Safe to call from several threads: a request keeps nothing."""

    def __init__(
        self, name: str, address: str, model: str, timeout_s: float, *, start: str, known: str, key: str = ""
    ) -> None:
        """Ask nothing yet.

        Args:
            name: of the program, as errors call it.
            address: such as "http://127.0.0.1:11434".
            model: as the server calls it.
            timeout_s: for one whole request, loading the model included.
            start: what to do where the server does not answer.
            known: how to see which models it has.
            key: is sent as a bearer token, and quoted by no error; "": none.
        """
        self._name = name
        self._address = address.rstrip("/")
        self._model = model
        self._timeout_s = timeout_s
        self._start = start
        self._known = known
        self._key = key

    def unit(self, row: Any, dim: int) -> bytes:
        """Return *row* as float32 of length 1. It must have *dim* numbers; 0: any, for none is known yet."""
        if not isinstance(row, list) or not all(type(number) in (int, float) for number in row):
            raise self.failure(f"gave an embedding for {self._model!r} that is not a list of numbers.")
        try:
            numbers = [float(number) for number in row]
        except OverflowError as error:
            raise self.failure(f"gave an embedding for {self._model!r} with a number without end.") from error
        if dim and len(numbers) != dim:
            raise self.failure(
                f"gave {len(numbers)} dimensions for {self._model!r}, which had {dim} before: another "
                "model stands behind the name, and its vectors are another space. It is loaded anew."
            )
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:
            raise self.failure(f"gave an embedding of length {length} for {self._model!r}.")
        vector = array.array("f", (number / length for number in numbers))
        if sys.byteorder == "big":
            vector.byteswap()
        return vector.tobytes()

    def ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Return the object that the server answers. Raises UnavailableError."""
        try:
            status, content = self._exchange(method, path, body)
        except TimeoutError as error:
            raise UnavailableError(
                MODEL_SLOW,
                f"{self._name} at {self._address} did not answer {path} within {self._timeout_s:g} s. It may "
                f"be loading {self._model!r}, or the machine is busy.",
            ) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            fault = f"{type(error).__name__}: {error}"
            raise self.failure(f"does not answer {path} ({fault}). {self._start}") from error
        if status != http.client.OK:
            text = self._without_key(content)[:200].strip()
            raise self.failure(f"answered {path} with status {status}: {text}. {self._known}")
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise self.failure(
                f"answered {path} with something that is not JSON. Is it {self._name}?"
            ) from error
        if not isinstance(answer, dict):
            raise self.failure(f"answered {path} with a {type(answer).__name__}. Is it {self._name}?")
        return answer

    def _exchange(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        """One request on a connection of its own; redirects are not followed, proxies not asked."""
        stop = time.monotonic() + self._timeout_s
        parts = urlsplit(self._address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, parts.path + path, payload, self._headers())
            # Closed on its own account: where the server ends the connection, it owns the socket.
            with connection.getresponse() as response:
                return response.status, _read(connection, response, stop)
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        authorization = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return {"Content-Type": "application/json"} | authorization

    def _without_key(self, content: bytes) -> str:
        """Return what a server says, which may quote the key; before it is cut, so that no part stays."""
        text = content.decode("utf-8", "replace")
        return text.replace(self._key, "(the API key)") if self._key else text

    def failure(self, what: str) -> UnavailableError:
        """Return the error that says *what* of this server."""
        return UnavailableError(MODEL_FAILED, f"{self._name} at {self._address} {what}")


def _read(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, stop: float) -> bytes:
    """Read the whole answer before *stop*: a socket's own timeout starts anew with every byte."""
    content = bytearray()
    while True:
        left_s = stop - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if connection.sock is not None:  # None once the server announced the end of the connection
            connection.sock.settimeout(left_s)
        part = response.read1(READ_BYTES)
        if not part:
            if response.length:
                raise http.client.IncompleteRead(bytes(content[:1]), response.length)
            return bytes(content)
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
