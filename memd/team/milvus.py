"""The connection to Milvus: two collections, calls with deadlines, bounded answers, errors in one line.

The only importer of pymilvus, and lazily: it takes two seconds and 90 MB. Thread-safe. What is read is
checked by `memd.team.rows`: a server that lies is a StoreError, and so is one that sends more than was asked
for.

* ``NAME_chunks``: a row a chunk, with the two vectors that `memd.team.rows` explains.
* ``NAME_workspaces``: a row a workspace, whose sparse vector is its document frequencies: the inner product
  with the dimension of a term is the number of chunks that have it.
"""

import fcntl
import json
import logging
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from memd.config import TeamConfig, team_token
from memd.errors import ConfigError, StoreError, StoreRefusedError
from memd.team.filters import among, both
from memd.team.rows import MAX_MARKS, MAX_NUMBER, First, Listed, Whole, WorkspaceRow, as_struct, checked

SCHEMA: Final = 3  # of the collections; another one is refused
OURS: Final = "memd team"  # at the beginning of a collection's description
SPARSE: Final = "SPARSE_INVERTED_INDEX"
LITE: Final = "milvus+lite"
PORT: Final = 19530  # of Milvus, where the address names none
PROBE_S: Final = 1.5  # for a call that looks whether the store answers
CONNECT_S: Final = 1.5  # so that `team status` tells what is wrong within 2 s
RETRY_S: Final = 5.0  # between two tries of searches, of a store that failed
LISTED_S: Final = 30.0  # how long the list of workspaces is used; arbitrary
HOPS: Final = 4  # questions beside an embedding; arbitrary
LITE_CONNECT_S: Final = 10.0  # starts a process
MAX_ANSWER_BYTES: Final = 2 << 20  # empty parts of two bytes take up to 40 times as much when they are read
MAX_FIELDS: Final = 20  # of a row of ours
MAX_FACTS_BYTES: Final = 1 << 16  # of what a collection says about itself: some 2 kB
MOST_ROWS: Final = 16_384  # that one answer of Milvus may have
TEXTS_AT_ONCE: Final = 16  # rows with texts in one answer, of 64 kB at most
ROWS_AT_ONCE: Final = 500  # written by one call: 1 to 5 MB, and Milvus takes 64
LEAST_PART: Final = 1 << 47  # keys of one answer of a listing: 65,536 answers, 10⁹ chunks of a workspace
MAX_DIMENSIONS: Final = 32_768  # of Milvus
MAX_REASON_CHARS: Final = 200  # of what Milvus says; it may go on for pages
# Between pings of an idle connection: gRPC's servers close one that pings more often, as pymilvus does.
PING_MS: Final = 600_000

Row = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S", bound=Struct)


class ListHit(NamedTuple):
    """A row of a list."""

    key: int
    score: float
    row: Any  # the fields that were asked for


class Milvus:
    """A Milvus server or file, and a team's collections in it."""

    def __init__(self, config: TeamConfig) -> None:
        """Connect to nothing yet.

        Raises:
            ConfigError: the token or the name of the collection cannot be used.
        """
        self.uri = config.uri
        self.chunks, self.workspaces = f"{config.collection}_chunks", f"{config.collection}_workspaces"
        self.dimensions = 0  # of u, once the collections are known
        self.is_reachable: bool | None = None  # whether the last call was answered; None: there was none
        self.error = ""  # why the last call had no result that can be used; "" if it had
        self.last_error = ""
        self.failed_at = 0.0  # in monotonic seconds
        self.listed: list[WorkspaceRow] = []  # who publishes what, as it was last read
        self.listed_at = 0.0  # in monotonic seconds
        self._config, self._token = config, team_token(config)
        self._is_lite = urlsplit(config.uri).scheme == LITE
        self._path = Path(urlsplit(config.uri).path)  # of a file of Milvus Lite
        self.beside = ThreadPoolExecutor(HOPS, thread_name_prefix="memd-team")  # for what a search asks aside
        self._client: Any = None
        self._lock = threading.Lock()  # protects the connecting
        self._file_lock: int | None = None  # descriptor; of a file of Milvus Lite
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,200}", config.collection):
            raise ConfigError(
                f"[team] collection = {config.collection!r}: Milvus allows letters, digits and _, "
                "not a digit at the beginning"
            )

    def is_of(self, config: TeamConfig) -> bool:
        """Return whether this is the connection of a configuration, with the same token."""
        return config == self._config and team_token(config) == self._token

    def close(self) -> None:
        """End the connection; a running call fails."""
        self.beside.shutdown(wait=False, cancel_futures=True)
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()
        if self._is_lite and client is not None:
            with suppress(Exception):
                from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415

                server_manager_instance.release_server(str(self._path))
        if self._file_lock is not None:
            os.close(self._file_lock)
            self._file_lock = None

    # -- reading -------------------------------------------------------------------------------------------

    def exists(self, timeout_s: float) -> bool:
        """Return whether the team's collections exist.

        Raises:
            StoreRefusedError: they are somebody else's, or of another version.
        """
        if not self.dimensions and (facts := self._facts(self.chunks, timeout_s)):
            self.dimensions = facts["dimensions"]
        return bool(self.dimensions)

    def search(
        self, collection: str, queries: Sequence[Any], timeout_s: float, *, limit: int = 0, where: str = "",
        keys: Sequence[int] | None = None, of: type[Struct] | None = None,
    ) -> list[list[ListHit]]:  # fmt: skip
        """Return the best rows for each query, best first, of all or of *keys*; a sparse one is a mapping."""
        if not queries:
            return []
        if keys is not None:
            limit, where = len(keys), both(where, among("key", keys))
        field = "df" if collection == self.workspaces else "w" if isinstance(queries[0], dict) else "u"

        def hits(some: Any) -> list[ListHit]:
            row = partial(as_struct, of=of) if of else lambda _: None
            found = [
                ListHit(hit["id"], hit["distance"], row({**hit["entity"], "key": hit["id"]})) for hit in some
            ]
            here = {hit.key for hit in found if type(hit.key) in {int, str}}
            are_scores = all(isinstance(hit.score, float) and math.isfinite(hit.score) for hit in found)
            if len(found) > limit or len(here) < len(found) or not are_scores:
                raise ValueError("rows that cannot be")
            if keys is not None and not here <= set(keys):
                raise ValueError("chunks that nobody asked for")
            return found

        def read(lists: Any) -> list[list[ListHit]]:
            return [hits(some) for _, some in zip(queries, lists, strict=True)]

        return self._call(
            "search", timeout_s, collection, data=list(queries), anns_field=field, limit=limit, filter=where,
            output_fields=_fields(of), search_params={"metric_type": "IP"},
            consistency_level="Bounded", most=limit * len(queries), read=read,
        )  # fmt: skip

    def texts(self, keys: Sequence[int], timeout_s: float) -> list[Whole]:
        """Return chunks by their keys: by a search, for a query by keys scans the collection."""
        found: list[Whole] = []
        for start in range(0, len(keys), TEXTS_AT_ONCE):
            some = keys[start : start + TEXTS_AT_ONCE]
            [hits] = self.search(self.chunks, [[0.0] * self.dimensions], timeout_s, keys=some, of=Whole)
            found += [hit.row for hit in hits]
        return found

    def list_workspaces(self, timeout_s: float = PROBE_S) -> list[WorkspaceRow]:
        """Return who publishes what, and keep it; nobody does in a store without the collections."""
        exists = self.exists(timeout_s)
        found = self._query(self.workspaces, 'ws != ""', WorkspaceRow, timeout_s) if exists else []
        self.listed, self.listed_at = found, time.monotonic()
        return found

    def known_workspaces(self) -> list[WorkspaceRow]:
        """Return who publishes what, as of a moment ago. Raises StoreError at once if it was away then."""
        now = time.monotonic()
        if self.is_reachable is False:
            if now < self.failed_at + RETRY_S:
                raise StoreError("the team's store did not answer a moment ago: ask again in some seconds")
            self.failed_at = now  # one search tries; those beside it do not wait for the same failure
        return self.listed if self.listed and now < self.listed_at + LISTED_S else self.list_workspaces()

    def firsts(self, where: str, timeout_s: float) -> list[First]:
        """Return the first chunks of sources that meet an expression, in any order."""
        return self._query(self.chunks, both("ordinal == 0", where), First, timeout_s)

    def listing(
        self, workspace: str, timeout_s: float, first: int = 0, last: int = MAX_NUMBER
    ) -> Iterator[Listed]:
        """Yield what the store has of a workspace: in parts by key, so that no answer can go on for ever."""
        where = f'ws == "{workspace}" and key >= {first} and key <= {last}'
        rows = self._query(self.chunks, where, Listed, timeout_s, consistency="Strong")
        if not all(first <= row.key <= last for row in rows):
            raise StoreError("the team's store answered with chunks that nobody asked for")
        if len(rows) < MOST_ROWS:
            yield from rows
        elif last - first < LEAST_PART:
            raise StoreError("the team's store has more rows than there can be")
        else:
            middle = (first + last) // 2
            yield from self.listing(workspace, timeout_s, first, middle)
            yield from self.listing(workspace, timeout_s, middle + 1, last)

    # -- writing -------------------------------------------------------------------------------------------

    def create(self, dimensions: int, timeout_s: float) -> None:
        """Create the collections, unless they exist; another daemon may do so at the same time."""
        library = self._library()
        types, client = library.DataType, library.MilvusClient
        number, text, sparse = types.INT64, types.VARCHAR, types.SPARSE_FLOAT_VECTOR
        numbers = ("source", "revision", "ordinal", "day", "decays", "expires")
        of_chunks: dict[str, tuple[Any, Row]] = {
            "key": (number, {"is_primary": True}), "ws": (text, {"max_length": 32}),
            **dict.fromkeys(numbers, (number, {})),
            "marks": (types.ARRAY, {"element_type": number, "max_capacity": MAX_MARKS}),
            "shown": (text, {"max_length": 65_535}), "has_u": (types.BOOL, {}),
            "u": (types.FLOAT_VECTOR, {"dim": dimensions}), "w": (sparse, {}),
        }  # fmt: skip
        of_workspaces: dict[str, tuple[Any, Row]] = {
            "ws": (text, {"max_length": 32, "is_primary": True}),
            **dict.fromkeys(("name", "machine", "owner", "model"), (text, {"max_length": 4_000})),
            "chunks": (number, {}), "df": (sparse, {}),
        }  # fmt: skip
        # That of the chunks is the last: where it is, both are.
        for name, fields, indexes in (
            (self.workspaces, of_workspaces, {"df": SPARSE}),
            (self.chunks, of_chunks, {"u": "FLAT" if self._is_lite else "AUTOINDEX", "w": SPARSE}),
        ):
            if self._facts(name, timeout_s):
                continue
            facts = json.dumps({"schema": SCHEMA, "dimensions": dimensions})
            schema = client.create_schema(
                auto_id=False, enable_dynamic_field=False, description=f"{OURS}{facts}"
            )
            for field, (kind, options) in fields.items():
                schema.add_field(field, kind, **options)
            parameters = client.prepare_index_params()
            for field, index in indexes.items():
                parameters.add_index(field, index_type=index, metric_type="IP")
            try:
                self._call(
                    "create_collection", timeout_s, name, schema=schema, index_params=parameters,
                    consistency_level="Bounded",
                )  # fmt: skip
            except StoreError:
                if not self._facts(name, timeout_s):
                    raise
        self.exists(timeout_s)

    def upsert(self, collection: str, rows: Sequence[Row], timeout_s: float) -> None:
        """Write rows; a row replaces that of the same key. Milvus Lite would keep both after an insert."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            self._call("upsert", timeout_s, collection, list(rows[start : start + ROWS_AT_ONCE]))

    def delete(self, where: str, timeout_s: float) -> None:
        """Delete the chunks that meet an expression."""
        self._call("delete", timeout_s, self.chunks, filter=where)

    def forget(self, workspace: str, timeout_s: float) -> None:
        """Delete all that there is of a workspace."""
        if self.exists(timeout_s):
            for collection in (self.chunks, self.workspaces):
                self._call("delete", timeout_s, collection, filter=f'ws == "{workspace}"')
        self.listed = [one for one in self.listed if one.ws != workspace]

    # -- the library ---------------------------------------------------------------------------------------

    def _query(
        self, collection: str, where: str, of: type[S], timeout_s: float, *, consistency: str = "Bounded"
    ) -> list[S]:
        return self._call(
            "query", timeout_s, collection, filter=where, output_fields=list(of.__struct_fields__),
            limit=MOST_ROWS, consistency_level=consistency, most=MOST_ROWS,
            read=lambda found: [as_struct(row, of) for row in found],
        )  # fmt: skip

    def _facts(self, collection: str, timeout_s: float) -> Row | None:
        """Return what a collection says about itself; None if there is none."""

        def read(described: Any) -> Row:
            text = str(described["description"])
            if not text.startswith(OURS):
                raise StoreRefusedError(
                    f"{self.uri}: the collection {collection!r} was not made by memd: give another "
                    "name in [team] collection"
                )
            facts = json.loads(text[len(OURS) :])
            if facts["schema"] != SCHEMA:
                raise StoreRefusedError(
                    f"{self.uri}: the collection {collection!r} has version {str(facts['schema'])[:20]}, and "
                    f"this memd writes version {SCHEMA}: update memd on all machines, or give another name "
                    "in [team] collection and publish again"
                )
            return {"dimensions": min(max(int(facts["dimensions"]), 1), MAX_DIMENSIONS)}

        has_it = self._call("has_collection", timeout_s, collection, read=bool)
        return self._call("describe_collection", timeout_s, collection, read=read) if has_it else None

    def _call(
        self, method: str, timeout_s: float, *given: Any, most: int = 0,
        read: Callable[[Any], T] = bool, **named: Any,  # type: ignore[assignment]  # of a call that writes
    ) -> T:  # fmt: skip
        """Call the library, and read the answer, of *most* rows; note whether that went well."""
        try:
            answer = self._answer(method, most, *given, timeout=timeout_s, **named)
            found = checked(lambda: read(answer))
        except StoreError as error:
            self._note(error)
            raise
        self.is_reachable, self.error = True, ""
        return found

    def _note(self, error: StoreError) -> None:
        self.error = self.last_error = str(error)
        self.is_reachable, self.failed_at = isinstance(error, StoreRefusedError), time.monotonic()

    def _answer(self, method: str, most: int, *given: Any, **named: Any) -> Any:
        client = self._connected()
        call: Callable[..., Any] = getattr(client, method)
        handler = client._handler  # noqa: SLF001 - as below
        for name in ("Search", "Query", "DescribeCollection"):
            stub = handler._stub  # noqa: SLF001 - another one after a reconnect
            if not isinstance(getattr(stub, name), _Bounded):
                setattr(stub, name, _Bounded(getattr(stub, name)))
        _asked.most, _asked.has_more = most, False
        failure, answer = None, None
        try:
            answer = call(*given, **named)
        except Exception as error:  # noqa: BLE001 - pymilvus raises its own, gRPC's and Python's
            failure = self._error(error)
        if _asked.has_more:
            failure = StoreError("the team's store answered with more than was asked for")
        if failure is not None:  # raised here, since the traceback of the other one holds the answer
            raise failure
        return answer

    def _connected(self) -> Any:
        if self._client is None:
            began = time.monotonic()
            if not self._lock.acquire(timeout=LITE_CONNECT_S):
                raise StoreError(f"{self.uri}: is being connected")
            try:
                if self.error and self.failed_at > began:  # whoever waited for an attempt makes no other one
                    raise (StoreRefusedError if self.is_reachable else StoreError)(self.error)
                self._client = self._client or self._connect()
            except StoreError as error:
                self._note(error)
                raise
            finally:
                self._lock.release()
        return self._client

    def _connect(self) -> Any:
        if self._is_lite:
            self._take_file()
        else:  # what is wrong with the address, before the library is loaded, which takes longer than that
            address = urlsplit(self.uri)
            try:
                socket.create_connection((address.hostname, address.port or PORT), CONNECT_S).close()
            except OSError as error:
                raise StoreError(f"{self.uri}: {error.strerror or 'does not answer'}") from None
        library = self._library()
        more: Row = {"server_pem_path": str(Path(self._config.ca).expanduser())} if self._config.ca else {}
        options = {
            "grpc.keepalive_time_ms": PING_MS,
            b"grpc.max_receive_message_length": MAX_ANSWER_BYTES,  # by the name under which pymilvus has -1
            "grpc.enable_http_proxy": 0,
        }
        try:
            return library.MilvusClient(
                str(self._path) if self._is_lite else self.uri, token=self._token,
                db_name=self._config.database, dedicated=True, grpc_options=options,
                timeout=LITE_CONNECT_S if self._is_lite else CONNECT_S, **more,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - as above
            raise self._error(error) from None

    def _take_file(self) -> None:
        """Lock a file of Milvus Lite: a second process would read and write an old state of it."""
        if self._file_lock is not None:
            return
        lock, descriptor = self._path.with_name(f"{self._path.name}.memd-lock"), -1
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            told = f"{self.uri}: {lock.parent} cannot be written: {error.strerror}"
            if descriptor >= 0:
                os.close(descriptor)
                told = (
                    f"{self.uri} is in use by another daemon: a file of Milvus Lite is for one, a team "
                    "needs a server"
                )
            raise StoreRefusedError(told) from None
        self._file_lock = descriptor

    def _library(self) -> Any:
        os.environ["PYTHON_DOTENV_DISABLED"] = "1"  # it would load .env of any folder above itself
        try:
            import pymilvus  # noqa: PLC0415 - see the module's docstring
            from pymilvus.client import entity_helper  # noqa: PLC0415
        except ImportError as error:
            raise StoreRefusedError(
                f"a team's store in Milvus needs the library pymilvus ({error}): "
                "pip install 'pymilvus>=2.6.17,<2.7'"
            ) from None
        # It writes each failed call with a traceback to stderr.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
        # It looks at each character of each text, a third of the time of writing. Milvus checks lengths, too.
        entity_helper.CHECK_STR_ARRAY = False
        return pymilvus

    def _error(self, error: Exception) -> StoreError:
        text = str(getattr(error, "message", "") or error) or type(error).__name__
        for one in (error, error.__cause__):  # what gRPC says is more than what pymilvus makes of it
            if callable(getattr(one, "code", None)) and callable(getattr(one, "details", None)):
                text = f"{one.code().name}: {one.details()}"  # type: ignore[union-attr]
        low = text.casefold()
        reason = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        reason = reason[:MAX_REASON_CHARS]
        if any(one in low for one in ("auth check failure", "unauthenticated")):
            reason = reason.removeprefix("UNAUTHENTICATED: ")
            return StoreRefusedError(f"{self.uri} refuses the token ({reason}): see token_file in [team]")
        if "certificate_verify_failed" in low or "certificate verify failed" in low:
            return StoreRefusedError(
                f"{self.uri} shows a certificate that is not trusted: name its CA as ca in [team]; now it is "
                f"{self._config.ca or 'those that gRPC knows'!r}"
            )
        refusals = ("permission_denied", "permission denied", "privilege", "database not found")
        kind = StoreRefusedError if any(one in low for one in refusals) else StoreError
        return kind(f"{self.uri}: {reason}")


def _fields(of: type[Struct] | None) -> list[str]:
    return [name for name in of.__struct_fields__ if name != "key"] if of else []


_asked = threading.local()  # of this thread's call: `most` rows it may get, and whether the answer `has_more`


class _Bounded:
    """A call of gRPC that drops an answer with more rows than were asked for.

    Before pymilvus makes objects of each. Nothing is raised: a traceback would hold the answer.
    """

    def __init__(self, call: Any) -> None:
        self._call = call

    def __call__(self, *given: Any, **named: Any) -> Any:
        answer = self._call(*given, **named)
        if hasattr(answer, "schema"):  # of a collection
            _asked.has_more = answer.ByteSize() > MAX_FACTS_BYTES
            return type(answer)() if _asked.has_more else answer
        results = getattr(answer, "results", answer)  # of a search; a query has its fields itself
        counts = []
        if results is not answer:
            numbers, texts = results.ids.int_id.data, results.ids.str_id.data
            counts = [len(results.scores), len(results.topks), sum(results.topks), len(numbers), len(texts)]
        fields = results.fields_data
        for field in fields if len(fields) <= MAX_FIELDS else ():
            if kind := field.scalars.WhichOneof("data"):
                counts.append(len(getattr(field.scalars, kind).data))
        _asked.has_more = len(fields) > MAX_FIELDS or any(count > _asked.most for count in counts)
        return type(answer)() if _asked.has_more else answer
