"""The file of an entry: its fields, name and checksum, and the operations to write, revise and delete it.

The file consists of front matter written by a serializer, then the agent's Markdown unchanged. The title is
in the front matter, where the index reads it. The name is derived from the title and never taken from the
caller: it is always one visible path component of letters, digits and "-".

The front matter ends with ``sha256:``, computed over the file without that line. By this checksum memd
recognizes a file that it wrote and that has not changed since, even after the index was deleted, and on
another machine that got the folder by git. It is not a signature: anyone who can write to the folder can
compute one, but gains only a file of their own that `forget` deletes.

Must not know how files are written safely (place.py), nor the index: the caller tells the index.
"""

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from memd.entries import place
from memd.entries.secrets import find_secrets
from memd.errors import ChangedError, InvalidError, MemdError, NotFoundError, SecretError, StorageError
from memd.records import origin_of
from memd.text import is_ignorable

MAX_CONTENT_BYTES = 256 * 1024  # an entry is a fact with its reasons, not a document
MAX_TAGS = 32  # arbitrary; keeps the front matter far below its limit of 64 KiB
MAX_TAG_BYTES = 128

MAX_NAMED = 32  # notes that an entry supersedes, or is related to; arbitrary
MAX_FRONT_BYTES = 64 * 1024  # the limit of front matter in the index
IGNORE_FILE = ".memdignore"  # in memory/: patterns relative to the workspace
MAX_PATTERN_CHARS = 1000  # of its lines: a file with a longer one cannot be used as ignore rules

_ATTEMPTS = 8  # 24 random bits in the name: repeated collisions have another cause
LINE_WIDTH = 1 << 16  # never wrapped: one line per value, for grep and for people

FILE_HASH_BYTES = 16

_LINE = re.compile(rb"\nsha256: ([0-9a-f]{64})\n---\n")
_ID = re.compile(rb"\nid: '?([0-9a-f]{6,16})'?\n")  # quoted if YAML would read the digits as a number

MAX_NAME_BYTES = 512  # topic and title as given: a longer one is text in the wrong field
MAX_SLUG_BYTES = 64  # leaves room for the id, the suffix and the temporary name in 255 bytes
RESERVED_TOPICS = frozenset({"index", "archives", "chunks", "config"})  # names that memory/ uses itself

ID_DIGITS = 16
ID_IN_NAME = 6  # digits of an entry's id at the end of its file's name
_ID_OF_NAME = re.compile(rf"-([0-9a-f]{{{ID_IN_NAME}}})\.md$")

_SHOWN = 40  # characters of a refused value in an error; arbitrary

# A source whose name starts with a day loses score with its age, and facts must not.
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

Kind = Literal["topic", "title"]


@dataclass(frozen=True, slots=True)
class Written:
    """An entry as it is on the disk now."""

    path: str  # relative to the workspace, "/" on every platform
    id: str  # 16 hex digits, also in the front matter or the mark; first six end an entry's file name
    created: str  # ISO 8601 with offset
    hash: str  # of the file
    updated: str | None = None  # ISO 8601 with offset; None if it was never revised


@dataclass(frozen=True, slots=True)
class EntryText:
    """What an entry shall say, and who says it; in a revision, what is None stays unchanged."""

    content: str  # Markdown, at most 256 KiB; becomes the file's body
    origin: Mapping[str, str]  # "origin" is "agent" or "human", "client" and "session" are optional
    now: datetime  # the time of writing, with its zone
    topic: str | None = None  # words to name the folder by, which a revision does not change
    title: str | None = None  # words to name the file by, with white space normalized; as the topic
    tags: Sequence[str] | None = None  # labels; a leading "#" and repetitions are dropped
    supersedes: Sequence[str] | None = None  # paths of the notes that it replaces
    related: Sequence[str] | None = None  # paths of notes that it links to
    # "external" if it comes from outside, as from the web; a revision never makes it the user's own word.
    derived_from: str = ""
    force: bool = False  # a person confirms, despite a secret


def write_entry(
    root: Path, text: EntryText, *, new_id: Callable[[], str] = lambda: secrets.token_hex(8)
) -> Written:
    """Write one fact to memory/<topic>/<title>-<6 hex>.md; the data is on the disk when this returns.

    *new_id* is called again while the name is taken.

    Raises:
        InvalidError: a value is missing, empty, too long, reserved, a path, or not text.
        SecretError: a value contains a secret of a known shape, without *force*.
        UnsafeError, WorkspaceError, NoSpaceError, StorageError: as in memd.entries.place.
    """
    topic, title = text.topic or "", text.title or ""
    folder = slug(topic, kind="topic")
    front: dict[str, object] = {
        "title": one_line(title, "title"),
        "topic": one_line(topic, "topic"),
        "tags": tags_of(text.tags or ()),
        "created": text.now.isoformat(timespec="seconds"),
        **_named(supersedes=text.supersedes or (), related=text.related or ()),
        **_derived(text.derived_from),
    }
    source = checked_source(text)
    for _ in range(_ATTEMPTS):
        entry_id = new_id()
        # The file name of an entry; the id distinguishes entries with the same title.
        stem = slug(title, kind="title")
        if _DAY.match(stem):
            stem = f"on-{stem}"
        name = f"{stem}-{entry_id[:ID_IN_NAME]}.md"
        body = _render({**front, "source": source, "id": entry_id}, text.content)
        if place.place(root, folder, name, body):
            created = str(front["created"])
            return Written(path=f"memory/{folder}/{name}", id=entry_id, created=created, hash=hash_of(body))
    raise StorageError(f"memory/{folder}/{name} is taken, and so were {_ATTEMPTS - 1} other names: try again")


def revise_entry(root: Path, path: str, text: EntryText, *, expected_hash: str = "") -> Written:
    """Replace the text of the entry at *path*, which keeps its path, id and time; on the disk on return.

    *expected_hash*: of the file as the caller knows it; "" for the file as memd last wrote it.

    Raises:
        InvalidError: *path* cannot be an entry, a value is invalid for `write_entry`, or an agent would
            change an entry that a person wrote.
        ChangedError: the file differs from *expected_hash*.
        SecretError: as `write_entry`.
        NotFoundError, UnsafeError, WorkspaceError, NoSpaceError, StorageError: as in memd.entries.place.
    """
    folder, name = _place_of(path, "Edit the file yourself, or write a new entry that supersedes it")
    source = checked_source(text)
    kept: dict[str, object] = {}

    def revised(raw: bytes) -> bytes:
        seen = "" if hash_of(raw) == expected_hash else "it has changed since you read it"
        if why := seen if expected_hash else flaw(raw, name):
            raise ChangedError(
                f"{path} was not revised: {why}. "
                "Read it (memctl get) and pass its hash, or write a new entry that supersedes it"
            )
        kept.update(_front_of(raw, path))
        if source["origin"] != "human" and origin_of(kept) == "human":
            raise InvalidError(
                f"$.update: a person wrote {path}, and an agent must not change it: write a new entry that "
                "supersedes it"
            )
        return _render({**_revised(kept, text), "source": source, "id": id_of(raw)}, text.content)

    body = place.replace(root, folder, name, revised)
    return Written(
        path=path,
        id=id_of(body),
        created=str(kept.get("created", "")),
        hash=hash_of(body),
        updated=text.now.isoformat(timespec="seconds"),
    )


def find_entry(root: Path, entry_id: str, among: Callable[[str], bool] = bool) -> str:
    """Return the path of the entry with an id, given by at least its first six digits.

    *among*: which paths to consider.

    Raises:
        NotFoundError: there is no such entry.
        InvalidError: there are several.
        WorkspaceError, StorageError: as in memd.entries.place.
    """
    for ending in (f"-{entry_id[:ID_IN_NAME]}.md", ".md"):  # the latter: people rename files
        found = [
            f"memory/{folder}/{name}"
            for folder, name, raw in place.named(root, ending)
            if id_of(raw).startswith(entry_id) and among(f"memory/{folder}/{name}")
        ]
        if found:
            break
    else:
        raise NotFoundError(f"no entry in {root} has the id {entry_id}: memctl search finds entries")
    if len(found) > 1:
        ways = "the path" if len(entry_id) == ID_DIGITS else "the path, or the whole id"
        raise InvalidError(f"{' and '.join(found)} have the id {entry_id}: give {ways}")
    return found[0]


def delete_entry(root: Path, path: str, *, force: bool) -> None:
    """Delete the entry at *path*, relative to *root*; it is off the disk when this returns.

    *force*: a person confirms the deletion whatever the file contains now.

    Raises:
        InvalidError: *path* cannot be an entry.
        ChangedError: the file is not as memd wrote it, without *force*.
        NotFoundError, UnsafeError, WorkspaceError, StorageError: as in memd.entries.place.
    """
    way_out = "Delete the file yourself, then memctl index --purge removes every trace of it"
    folder, name = _place_of(path, way_out)
    check = None if force else lambda raw: _check_untouched(raw, name, path)
    place.take_away(root, folder, name, check)


def identity(root: Path, path: str) -> tuple[str, str]:
    """Return the id of the entry at *path* and the hash of its file; "" for what does not exist."""
    try:
        raw = place.read(root, path)
    except (OSError, MemdError):
        return "", ""
    return id_of(raw), hash_of(raw)


def ignore_file(root: Path, path: str) -> None:
    """Add *path*, relative to *root*, to memory/.memdignore; on the disk when this returns.

    Raises:
        InvalidError: no pattern can match the path, or the file has reached the limit of ignore files.
        UnsafeError, WorkspaceError, NoSpaceError, StorageError: as in memd.entries.place.
    """
    pattern = "/" + re.sub(r"([\\*?\[])", r"\\\1", path)
    pattern = re.sub(r" (?= *$)", r"\\ ", pattern)
    if "\n" in path or "\r" in path or len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidError(
            f"$.path: no pattern in memory/.memdignore can match {path!r:.200}. Rename the file first"
        )
    place.add_line(root, IGNORE_FILE, pattern)


def clear_leftovers(root: Path) -> list[str]:
    """Remove the files left by killed processes; return their paths. A user's text gets its name back."""
    return place.clear_leftovers(root, lambda raw, name: _check_untouched(raw, name, name))


def tags_of(tags: Sequence[str]) -> list[str]:
    """Return the labels, each once. Raises InvalidError if one cannot be a label."""
    if len(tags) > MAX_TAGS:
        raise InvalidError(f"there are {len(tags)} tags, at most {MAX_TAGS} are allowed")
    lines = (one_line(tag, "tag", MAX_TAG_BYTES).lstrip("# ") for tag in tags)
    return list(dict.fromkeys(line for line in lines if line))


def checked_source(text: EntryText) -> dict[str, str]:
    """Check an entry's text and author; return the author as stored in the entry.

    Raises:
        InvalidError: the text cannot be an entry's, or a value of its origin is not a single line.
        SecretError: a value contains a secret of a known shape, without *force*.
    """
    origin = text.origin
    given = {key: one_line(origin[key], f"source.{key}") for key in ("client", "session") if origin.get(key)}
    source = {"origin": origin.get("origin", "agent"), **given}
    size_bytes = len(utf8(text.content, "content"))
    if size_bytes > MAX_CONTENT_BYTES:
        raise InvalidError(
            f"content has {size_bytes} bytes, at most {MAX_CONTENT_BYTES} are allowed. "
            f"Split it, or save it as a Markdown file in the workspace"
        )
    if "\0" in text.content:
        raise InvalidError(f"content holds a NUL at character {text.content.index(chr(0)) + 1}. Remove it")
    if not text.content.strip():
        raise InvalidError("content is empty. State the fact in it; the title is only its name")
    if not text.force:
        texts = [("content", text.content), ("title", text.title or ""), ("topic", text.topic or "")]
        texts += [("tags", tag) for tag in text.tags or ()] + [("source", one) for one in source.values()]
        for where, value in texts:
            for found in find_secrets(value):
                line = value.count("\n", 0, found.start) + 1
                # Kind and place, never the secret itself: errors are shown and logged.
                raise SecretError(
                    f"{where}, line {line}, holds a secret ({found.kind}) and nothing was written. "
                    f"Say where it is kept instead of what it is"
                )
    return source


def with_checksum(header: str, body: str) -> bytes:
    """Return an entry's bytes: front matter with the lines *header* and the checksum, then *body*."""
    digest = hashlib.sha256(f"---\n{header}---\n{body}".encode()).hexdigest()
    return f"---\n{header}sha256: {digest}\n---\n{body}".encode()


def hash_of(raw: bytes) -> str:
    """Return the hash of a whole file, as in the index; callers pass it to name the version they saw."""
    return hashlib.blake2b(raw, digest_size=FILE_HASH_BYTES).hexdigest()


def id_of(raw: bytes) -> str:
    """Return the id in the front matter of an entry, even if the entry was changed; "" if there is none."""
    raw = _with_line_feeds(raw)
    has_front = raw.startswith((b"---\n", b"\xef\xbb\xbf---\n"))  # a note may quote an entry
    found = _ID.search(raw.partition(b"\n---\n")[0] + b"\n") if has_front else None
    return found[1].decode() if found else ""


def _with_line_feeds(raw: bytes) -> bytes:
    """Return an entry without the returns that Git or an editor has put at the end of each line."""
    has_returns = raw.startswith((b"---\r\n", b"\xef\xbb\xbf---\r\n"))
    return raw.replace(b"\r\n", b"\n") if has_returns else raw


def flaw(raw: bytes, name: str) -> str:
    """Return why *raw* is not an entry as memd wrote it to a file called *name*; "" if it is.

    That each of its lines ends with a return is no change: Git does so on other systems.
    """
    raw = _with_line_feeds(raw)
    line = _LINE.search(raw)
    named = _ID.search(raw[: line.start() + 1]) if line else None
    if line is None or named is None:
        return "it lacks memd's id and checksum"
    # Keeps the line feed before the checksum line, and the fence after it.
    without = raw[: line.start() + 1] + raw[line.end() - len(b"---\n") :]
    if hashlib.sha256(without).hexdigest().encode() != line[1]:
        return "its text is not as memd wrote it"
    if (end := _ID_OF_NAME.search(name)) and end[1] != named[1][:ID_IN_NAME].decode():  # none: renamed
        return "its id belongs to a file of another name"
    return ""


def slug(text: str, *, kind: Kind) -> str:
    """Derive a safe name from *text*: letters and digits of any script, "-" for the rest, at most 64 bytes.

    Marks stay with the letter before them: without its vowel signs a Hindi or Thai word is a different word.

    Raises:
        InvalidError: *text* is a path, is reserved, is too long, or has nothing to name a file by.
    """
    plain = one_line(text, kind)
    folded = unicodedata.normalize("NFKC", plain).strip()
    if _is_path(folded, kind):
        raise InvalidError(
            f"{kind} {_short(plain)} is a path. Give it words: memd derives the file's name from them"
        )
    # NFC again: lower() can decompose letters (U+0130).
    kept = "".join(_kept(unicodedata.normalize("NFC", folded.lower())))
    name = re.sub("-+", "-", kept).strip("-")
    name = name.encode()[:MAX_SLUG_BYTES].decode(errors="ignore").rstrip("-")
    if not name:
        raise InvalidError(f"{kind} {_short(plain)} has no letter or digit to name a file after. Add a word")
    if kind == "topic" and name in RESERVED_TOPICS:
        raise InvalidError(
            f"topic {_short(plain)} is reserved: memory/{name} is memd's own. Choose another word"
        )
    return name


def one_line(text: str, what: str, limit_bytes: int = MAX_NAME_BYTES) -> str:
    """Return *text* with each run of white space as one space; raise InvalidError if that is impossible."""
    size_bytes = len(utf8(text, what))
    if size_bytes > limit_bytes:
        raise InvalidError(
            f"{what} has {size_bytes} bytes, at most {limit_bytes} are allowed. Put text into content"
        )
    line = " ".join(text.split())
    for char in line:
        if unicodedata.category(char) == "Cc":
            raise InvalidError(
                f"{what} {_short(line)} holds the control character U+{ord(char):04X}. Remove it"
            )
    if not line:
        raise InvalidError(f"{what} is empty. Give it a word")
    return line


def utf8(text: str, what: str) -> bytes:
    """Encode *text*; raise InvalidError with the place of a character that is not valid."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(f"{what} is not text: character {error.start + 1} is a lone surrogate") from None


def _named(**keys: Sequence[str]) -> dict[str, list[str]]:
    """Return the front matter keys that name other notes, each note once, without empty keys."""
    for key, paths in keys.items():
        if len(paths) > MAX_NAMED:
            raise InvalidError(f"{key} has {len(paths)} notes, at most {MAX_NAMED} are allowed")
    return {key: list(dict.fromkeys(paths)) for key, paths in keys.items() if paths}


def _derived(derived_from: str) -> dict[str, str]:
    """Return the front matter key for what an entry is derived from; no key for the author's own word."""
    return {"derived_from": derived_from} if derived_from else {}


def _render(front: Mapping[str, object], content: str) -> bytes:
    import yaml  # noqa: PLC0415 - only for a write: the daemon's start does not need it

    header = yaml.safe_dump(dict(front), allow_unicode=True, sort_keys=False, width=LINE_WIDTH)
    end = "" if content.endswith("\n") else "\n"
    return with_checksum(header, f"\n{content}{end}")


def _place_of(path: str, way_out: str) -> tuple[str, str]:
    match path.split("/"):
        case "memory", folder, name if (
            folder not in RESERVED_TOPICS
            and not folder.startswith(".")
            and not name.startswith(".")
            and name.endswith(".md")
            and "\0" not in path
        ):
            return folder, name
    raise InvalidError(f"{path} is not an entry that memd wrote. {way_out}")


def _front_of(raw: bytes, path: str) -> dict[str, object]:
    """Return the front matter of an entry that may have been changed; keys that users added are kept."""
    import yaml  # noqa: PLC0415 - only for a write: the daemon's start does not need it

    header = _with_line_feeds(raw).partition(b"\n---\n")[0].removeprefix(b"---\n")
    try:
        front = yaml.safe_load(header) if len(header) <= MAX_FRONT_BYTES and id_of(raw) else None
    except (yaml.YAMLError, ValueError, RecursionError):
        front = None
    if not isinstance(front, dict):
        raise ChangedError(
            f"{path} was not revised: its front matter is no longer that of an entry. Write a new entry that "
            "supersedes it"
        )
    return {key: value for key, value in front.items() if key != "sha256"}


def _revised(kept: Mapping[str, object], text: EntryText) -> dict[str, object]:
    """Return front matter with the new values; an empty list of notes removes its key."""
    given: dict[str, object] = {}
    if text.title is not None:
        given["title"] = one_line(text.title, "title")
    if text.topic is not None:
        given["topic"] = one_line(text.topic, "topic")
    if text.tags is not None:
        given["tags"] = tags_of(text.tags)
    named = {"supersedes": text.supersedes, "related": text.related}
    given |= _named(**{key: paths for key, paths in named.items() if paths})
    given |= _derived(text.derived_from)
    front = {key: value for key, value in kept.items() if named.get(key) != []}
    return {**front, **given, "updated": text.now.isoformat(timespec="seconds")}


def _check_untouched(raw: bytes, name: str, path: str) -> None:
    if why := flaw(raw, name):
        raise ChangedError(
            f"{path} was not deleted: {why}. Check it, then delete the file yourself, or "
            "confirm: memctl forget --force"
        )


def _is_path(folded: str, kind: Kind) -> bool:
    """Return whether the words are meant as a path. A title may mention "/etc/hosts and why"."""
    if ".." in re.split(r"[/\\]", folded):
        return True
    if kind == "topic":
        return folded.startswith((".", "/", "\\"))
    return folded.startswith(("/", "\\")) and " " not in folded


def _short(text: str) -> str:
    return ascii(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!a}…"


def _kept(folded: str) -> Iterator[str]:
    in_word = False
    for char in folded:
        # Hangul fillers are letters, but invisible.
        is_letter = char.isalnum() and not is_ignorable(char)
        in_word = is_letter or (in_word and unicodedata.category(char) in {"Mn", "Mc"})
        yield char if in_word else "-"
