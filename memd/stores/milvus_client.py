"""The connection to Milvus: collections, calls with deadlines, errors in one line, values that exceed a row.

The only importer of pymilvus, which takes seconds and 120 MB, and reads `.env` from the working directory. So
it is imported by the program `memd.stores.milvus` alone. Thread-safe.

Three collections, whose names begin with that of the configuration:

* ``_words``: a row for each chunk, with its terms under a BM25 function, and with what an answer shows of it.
* ``_vectors``: a row for each chunk that has a vector. Apart from the words, because a row whose vector is
  missing would be a hit.
* ``_rows``: whole sources, workspaces and counts of terms, packed, found by their keys.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from memd.config import TeamConfig
from memd.errors import StoreError, StoreModelError, StoreRefusedError
from memd.stores.milvus_rows import MAX_PATH_BYTES, one_of, pieces
from memd.stores.remote import tls_context

T = TypeVar("T")

COLLECTIONS: Final = 1  # of the collections; another one is refused
OURS: Final = "memd team"  # at the beginning of a collection's description
LITE: Final = "milvus+lite"
FIRST_WITH_BM25: Final = (2, 5)
MOST_ROWS: Final = 16_384  # that one answer of Milvus may have
KEYS_AT_ONCE: Final = 1_000  # in one expression; arbitrary
ROWS_AT_ONCE: Final = 500  # written by one call: 1 to 5 MB, and Milvus takes 64
STRONG, BOUNDED = "Strong", "Bounded"
# Lucene's values, as in memd.search.keyword.
BM25: Final = {"bm25_k1": 1.2, "bm25_b": 0.75}
MAX_REASON_CHARS: Final = 200  # of what Milvus says; it may go on for pages
MAX_CONNECT_S: Final = 30.0  # to connect, or to start Milvus Lite, if the call has as much time
# Between pings of an idle connection: gRPC's servers close one that pings more often, as pymilvus does.
PING_MS: Final = 600_000

Row = dict[str, Any]


class Clock:
    """The time that is left of a call."""

    def __init__(self, deadline_s: float) -> None:
        self._stop = time.monotonic() + deadline_s

    def left_s(self) -> float:
        """Return the seconds that are left.

        Raises:
            StoreError: none.
        """
        left_s = self._stop - time.monotonic()
        if left_s <= 0:
            raise StoreError("the team's store did not answer in time")
        return left_s


class Value(NamedTuple):
    """A packed value with what a listing shows of it."""

    key: str
    workspace: str  # its digest
    revision: int
    head: str
    body: str = ""
    chunks: int = 0
    hash: str = ""
    first: int = -1  # code points of the first two characters of a bucket's terms
    second: int = -1
    names: Sequence[int] = ()
    parts: int = 1  # rows that the body takes; set by `put`


class Milvus:
    """A Milvus server or file, and a team's collections in it."""

    def __init__(self, config: TeamConfig, token: str, *, has_words: bool = True) -> None:
        """Connect to nothing yet.

        Args:
            config: of the team.
            token: "" for none.
            has_words: False: leave out the words, for servers without BM25.
        """
        self.words, self.vectors, self.rows = (
            f"{config.collection}_{one}" for one in ("words", "vectors", "rows")
        )
        self.has_words = has_words
        self.is_lite = urlsplit(config.uri).scheme == LITE
        self._config, self._token = config, token
        self._client: Any = None
        self._known: set[str] = set()  # collections that exist and are ours
        self.model: tuple[str, int] | None = None  # id and dimensions of the vectors, once they are known
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,200}", config.collection):
            raise StoreRefusedError(
                f"[team] collection = {config.collection!r}: Milvus allows letters, digits and _, "
                "not a digit at the beginning"
            )

    # -- calls ---------------------------------------------------------------------------------------------

    def exists(self, collection: str, clock: Clock) -> bool:
        """Return whether a collection of this team exists.

        Raises:
            StoreRefusedError: it is somebody else's, or of another version.
        """
        if collection in self._known:
            return True
        if not self._call("has_collection", clock, collection):
            return False
        described = str(self._call("describe_collection", clock, collection).get("description", ""))
        if not described.startswith(OURS):
            raise StoreRefusedError(
                f"{self._config.uri}: the collection {collection!r} was not made by memd: "
                "give another name in [team] collection"
            )
        facts = json.loads(described[len(OURS) :])
        if facts["schema"] != COLLECTIONS:
            raise StoreRefusedError(
                f"{self._config.uri}: the collection {collection!r} has version {facts['schema']}, and this "
                f"memd writes version {COLLECTIONS}: update memd on all machines, or give another name in "
                "[team] collection and publish again"
            )
        if collection == self.vectors:
            self.model = (facts["model"], facts["dimensions"])
        self._known.add(collection)
        return True

    def search(
        self, collection: str, clock: Clock, queries: list[Any], field: str, limit: int, **more: Any
    ) -> list[list[Row]]:
        """Return the best rows for each query."""
        found: list[list[Row]] = self._call(
            "search", clock, collection, data=queries, anns_field=field, limit=limit, search_params={},
            consistency_level=BOUNDED, **more,
        )  # fmt: skip
        return found

    def query(
        self,
        collection: str,
        clock: Clock,
        expression: str,
        fields: list[str],
        *,
        limit: int | None = None,
        consistency: str = BOUNDED,
    ) -> list[Row]:
        """Return the rows that meet an expression."""
        more = {} if limit is None else {"limit": limit}
        found: list[Row] = self._call(
            "query", clock, collection, filter=expression, output_fields=fields,
            consistency_level=consistency, **more,
        )  # fmt: skip
        return found

    def by_keys(
        self,
        collection: str,
        clock: Clock,
        keys: Iterable[str],
        fields: list[str],
        consistency: str = BOUNDED,
    ) -> list[Row]:
        """Return the rows with some primary keys."""
        found = []
        for some in _slices(keys, KEYS_AT_ONCE):
            found += self.query(collection, clock, one_of("key", some), fields, consistency=consistency)
        return found

    def upsert(self, collection: str, clock: Clock, rows: Iterable[Row]) -> None:
        """Write rows; a row replaces that of the same key. Milvus Lite would keep both after an insert."""
        if collection == self.words and not self.has_words:
            rows = ({**row, **_NO_VECTOR} for row in rows)
        for some in _slices(rows, ROWS_AT_ONCE):
            self._call("upsert", clock, collection, some)

    def delete(self, collection: str, clock: Clock, keys: Iterable[str]) -> None:
        """Delete the rows with some primary keys."""
        for some in _slices(keys, KEYS_AT_ONCE):
            self._call("delete", clock, collection, filter=one_of("key", some))

    def delete_workspace(self, collection: str, clock: Clock, workspace: str) -> None:
        """Delete all rows of a workspace."""
        self._call("delete", clock, collection, filter=one_of("ws", [workspace]))

    # -- packed values -------------------------------------------------------------------------------------

    def values(
        self, clock: Clock, keys: Iterable[str], *, consistency: str = BOUNDED, has_body: bool = True
    ) -> dict[str, Value]:
        """Return the packed values with some keys; without bodies if not *has_body*."""
        fields = ["ws", "revision", "head", "chunks", "hash", "parts", *(["body"] if has_body else [])]
        found = {row["key"]: _value(row) for row in self.by_keys(self.rows, clock, keys, fields, consistency)}
        if not has_body:
            return found
        long = [one for one in found.values() if one.parts > 1]
        more = [key for one in long for key in _part_keys(one)]
        parts = {
            row["key"]: row["body"] for row in self.by_keys(self.rows, clock, more, ["body"], consistency)
        }
        for one in long:
            bodies = [parts.get(key) for key in _part_keys(one)]
            if None in bodies:  # it was replaced between the two reads
                found.pop(one.key)
                found |= self.values(clock, [one.key], consistency=STRONG)
            else:
                found[one.key] = one._replace(body=one.body + "".join(map(str, bodies)))
        return found

    def put(self, clock: Clock, values: Iterable[Value]) -> None:
        """Write packed values: first what exceeds a row, last the row that names it."""
        first, last = [], []
        for value in values:
            body, *others = pieces(value.body)
            whole = value._replace(body=body, parts=1 + len(others))
            last.append(_row(whole))
            first += [
                _row(Value(key, value.workspace, value.revision, "", text))
                for key, text in zip(_part_keys(whole), others, strict=True)
            ]
        self.upsert(self.rows, clock, first)
        self.upsert(self.rows, clock, last)

    def drop_parts(self, clock: Clock, values: Iterable[Value]) -> None:
        """Delete what exceeded the rows of values that were replaced or deleted."""
        self.delete(self.rows, clock, [key for value in values for key in _part_keys(value)])

    # -- collections ---------------------------------------------------------------------------------------

    def create(self, clock: Clock) -> None:
        """Create the collections of words and rows, unless they exist."""
        types = self._types()
        if not self.exists(self.words, clock):
            if self.has_words and not self.is_lite and self._version(clock) < FIRST_WITH_BM25:
                raise StoreRefusedError(
                    f"{self._config.uri}: Milvus {'.'.join(map(str, self._version(clock)))} has no BM25: "
                    "memd needs 2.5 or newer"
                )
            schema = self._chunk_schema(clock)
            schema.add_field("shown", types.VARCHAR, max_length=65_535)
            if self.has_words:
                schema.add_field(
                    "words", types.VARCHAR, max_length=65_535, enable_analyzer=True,
                    analyzer_params={"tokenizer": "whitespace"},
                )  # fmt: skip
                schema.add_field("sparse", types.SPARSE_FLOAT_VECTOR)
                schema.add_function(self._bm25())
                self._create(
                    self.words, schema, clock, "sparse", index_type="SPARSE_INVERTED_INDEX",
                    metric_type="BM25", params=BM25,
                )  # fmt: skip
            else:
                schema.add_field("words", types.VARCHAR, max_length=65_535)
                self._create_without_vectors(self.words, schema, clock)
        if not self.exists(self.rows, clock):
            schema = self._schema(2 * MAX_PATH_BYTES + 200, clock)
            for name, length in (("hash", 64), ("head", 65_535), ("body", 65_535)):
                schema.add_field(name, types.VARCHAR, max_length=length)
            for name in ("revision", "chunks", "first", "second", "parts"):
                schema.add_field(name, types.INT64)
            schema.add_field("names", types.ARRAY, element_type=types.INT64, max_capacity=4_096)
            self._create_without_vectors(self.rows, schema, clock)

    def create_vectors(self, clock: Clock, model_id: str, dimensions: int) -> None:
        """Create the collection of vectors, unless it exists.

        Raises:
            StoreModelError: it exists with those of another model.
        """
        if not self.exists(self.vectors, clock):
            schema = self._chunk_schema(clock, {"model": model_id, "dimensions": dimensions})
            schema.add_field("vector", self._types().FLOAT_VECTOR, dim=dimensions)
            kind = "FLAT" if self.is_lite else "AUTOINDEX"
            self._create(self.vectors, schema, clock, "vector", index_type=kind, metric_type="IP")
        self.check_model(model_id, dimensions)

    def check_model(self, model_id: str, dimensions: int | None = None) -> None:
        """Raise StoreModelError if the team's vectors are of another model."""
        if self.model is not None and self.model != (model_id, dimensions or self.model[1]):
            raise StoreModelError(
                f"{self._config.uri}: the team's vectors are of {self.model[0]!r} with {self.model[1]} "
                f"dimensions, not of {model_id!r}: set model = {self.model[0]!r}, or share words alone"
            )

    def _create_without_vectors(self, name: str, schema: Any, clock: Clock) -> None:
        """Create a collection of rows without vectors; Milvus wants one in each."""
        schema.add_field("none", self._types().FLOAT_VECTOR, dim=2)
        self._create(name, schema, clock, "none", index_type="FLAT", metric_type="L2")

    def _create(self, name: str, schema: Any, clock: Clock, field: str, **index: Any) -> None:
        parameters = self._connected(clock).prepare_index_params()
        parameters.add_index(field, **index)
        try:
            self._call(
                "create_collection", clock, name, schema=schema, index_params=parameters,
                consistency_level=BOUNDED,
            )  # fmt: skip
        except StoreError:
            if not self.exists(name, clock):  # another daemon may have made it meanwhile
                raise
        self.exists(name, clock)

    def _schema(self, key_length: int, clock: Clock, facts: Row | None = None) -> Any:
        schema = self._connected(clock).create_schema(
            auto_id=False,
            enable_dynamic_field=False,
            description=f"{OURS}{json.dumps({'schema': COLLECTIONS, **(facts or {})})}",
        )
        types = self._types()
        schema.add_field("key", types.VARCHAR, is_primary=True, max_length=key_length)
        # No partition key: Lite refuses one beside a VARCHAR key, and server 2.3.5 upserts rows into
        # other partitions than those that it reads for a filter by the key (3 of 138 rows were found).
        schema.add_field("ws", types.VARCHAR, max_length=32)
        return schema

    def _chunk_schema(self, clock: Clock, facts: Row | None = None) -> Any:
        schema = self._schema(32, clock, facts)
        types = self._types()
        schema.add_field("source", types.VARCHAR, max_length=2 * MAX_PATH_BYTES + 40)
        for name in ("ordinal", "day", "mtime"):
            schema.add_field(name, types.INT64)
        schema.add_field("facets", types.ARRAY, element_type=types.INT64, max_capacity=4_096)
        return schema

    def _types(self) -> Any:
        return self._library().DataType

    def _bm25(self) -> Any:
        library = self._library()
        return library.Function(
            name="bm25", function_type=library.FunctionType.BM25, input_field_names=["words"],
            output_field_names=["sparse"],
        )  # fmt: skip

    def _version(self, clock: Clock) -> tuple[int, ...]:
        numbers = re.findall(r"\d+", str(self._call("get_server_version", clock)))
        return tuple(map(int, numbers[:3]))

    # -- the library ---------------------------------------------------------------------------------------

    def _call(self, method: str, clock: Clock, *given: Any, **named: Any) -> Any:
        client = self._connected(clock)
        call: Callable[..., Any] = partial(getattr(client, method), *given, **named)
        try:
            return call(timeout=clock.left_s())
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - pymilvus raises its own, gRPC's and Python's
            raise self._error(error) from None

    def _connected(self, clock: Clock) -> Any:
        if self._client is None:
            self._client = self._connect(min(clock.left_s(), MAX_CONNECT_S))
        return self._client

    def _connect(self, timeout_s: float) -> Any:
        library = self._library()
        config = self._config
        uri = urlsplit(config.uri).path if self.is_lite else config.uri
        more: Row = {}
        if config.ca:
            tls_context(config.ca)  # raises in one line what gRPC says at the first call, or never
            more["server_pem_path"] = str(Path(config.ca).expanduser())
        more["grpc_options"] = {"grpc.keepalive_time_ms": PING_MS}
        try:
            return library.MilvusClient(
                uri, token=self._token, db_name=config.database, timeout=timeout_s, **more
            )
        except Exception as error:  # noqa: BLE001 - as above
            raise self._error(error) from None

    def _library(self) -> Any:
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
        uri = self._config.uri
        text = str(getattr(error, "message", "") or error) or type(error).__name__
        for one in (error, error.__cause__):  # what gRPC says is more than what pymilvus makes of it
            if callable(getattr(one, "code", None)) and callable(getattr(one, "details", None)):
                text = f"{one.code().name}: {one.details()}"  # type: ignore[union-attr]
        low = text.casefold()
        reason = " ".join(text.split())[:MAX_REASON_CHARS]
        if any(one in low for one in _NO_TOKEN):
            reason = reason.removeprefix("UNAUTHENTICATED: ")
            return StoreRefusedError(f"{uri} refuses the token ({reason}): see token_file in [team]")
        if "certificate_verify_failed" in low or "certificate verify failed" in low:
            return StoreRefusedError(
                f"{uri} shows a certificate that is not trusted: name its CA as ca in [team]; now it is "
                f"{self._config.ca or 'those that gRPC knows'!r}"
            )
        if "wrong_version_number" in low:
            return StoreError(f"{uri} does not speak TLS: {reason}")
        kind = StoreRefusedError if any(one in low for one in _REFUSALS) else StoreError
        return kind(f"{uri}: {reason}")


_NO_TOKEN: Final = ("auth check failure", "unauthenticated")
_REFUSALS: Final = ("permission_denied", "permission denied", "privilege", "database not found")


def _value(row: Row) -> Value:
    return Value(
        key=row["key"], workspace=row["ws"], revision=row["revision"], head=row["head"],
        body=row.get("body", ""), chunks=row["chunks"], hash=row["hash"], parts=row["parts"],
    )  # fmt: skip


def _row(value: Value) -> Row:
    row = value._asdict()
    row["ws"] = row.pop("workspace")
    return {**row, **_NO_VECTOR, "names": list(value.names)}


_NO_VECTOR: Final = {"none": [0.0, 0.0]}


def _part_keys(value: Value) -> list[str]:
    return [f"p.{value.key}.{value.revision}.{number}" for number in range(1, value.parts)]


def _slices(values: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
