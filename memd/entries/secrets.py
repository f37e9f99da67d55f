"""Detection and masking of secrets in a text: keys, tokens, passwords in URLs and headers.

The shapes are in `secret_shapes.py`. Precision over recall: examples from documentation pass, and so does a
password in a sentence. A text is searched in linear time: prefixes of tokens by one automaton, and each shape
only after its own prefix or word.

Thread-safe; the first call compiles the shapes, in about 10 ms. Must not know who wrote a text or what
happens to it.
"""

import base64
import binascii
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import re2

from memd.entries.secret_shapes import FRAMES, SERVICES, TOKENS, WORDS

RULES = 2  # counts up when other secrets are found by the same tables
MASK = "[masked: "  # what stands for a secret begins with it
_CLASSES = {
    "%a": "[A-Za-z0-9]",
    "%l": "[a-z0-9]",
    "%h": "[A-Fa-f0-9]",
    "%u": "[A-Za-z0-9_-]",
    "%b": "[A-Za-z0-9+/]",
    "%i": "[A-Fa-f0-9]{8}-[A-Fa-f0-9]{4}-[A-Fa-f0-9]{4}-[A-Fa-f0-9]{4}-[A-Fa-f0-9]{12}",
    "%!": "(?![A-Za-z0-9])",
}
_MACRO = re.compile("|".join(_CLASSES))
# May precede a token with a short prefix: in escaped texts, "%20ghp_" and "\nghp_" are not one word.
_NO_WORD_BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"
# What follows the prefix in every shape: a quick test that saves most comparisons, also in rows of prefixes.
_BEHIND_OPENING = rb"[A-Za-z0-9_./+=!\\-]{5}"
_MAX_TOKEN_BYTES = 1024  # compared with a shape; characters that follow directly are a part of the token
_MAX_WEB_TOKEN_BYTES = 8 * 1024  # the second dot of a token with many claims may be far from the first
_MAX_RANDOM_CHARS = 256  # of a token, tested for randomness: after so many characters of words none begins
_GOES_ON = re.compile(rb"[A-Za-z0-9_+/=.-]*")
_VALUE_GOES_ON = re.compile(rb"(?:[:=][A-Za-z0-9_+/=~-]{5,})*")
_IMAGE = re.compile(rb";base64,[A-Za-z0-9+/=]{100,}")  # contains every prefix of three letters
# A hostile text may consist of prefixes only. After so many in a block that begin no token, shapes are no
# longer compared: random-looking text after a prefix is taken for a secret.
_BLOCK_BYTES = 64 * 1024
_MAX_FAILED = 2000
_LONG_RUN = re.compile(rb"[A-Za-z0-9_+/=.~-]{20,}")

# Public tokens: from the documentation of AWS, GitHub, Azurite, Stripe and Telegram, and from RFC 7617.
_PUBLIC = re.compile(
    "16C7e42F292c6912E7710c838347Ae178B4a|Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"
    "|4eC39HqLyjWDarjtT1zdp7dc|ABC-DEF1234ghIkl-zyx57W2v1u123ew11|QWxhZGRpbjpvcGVuIHNlc2FtZQ"
)
# Placeholders for passwords; digits and signs around such a word do not make it a password.
_NO_PASSWORD = re.compile(
    "(?:my|your|some|super|top|user|test|the|a)*"
    "(?:admin|api|change(?:it|me)|default|demo|dummy|example|foobar|guest|hunter|key|letmein|name|pass|passphrase"
    "|passw(?:or)?d|placeholder|postgres|qwerty|redacted|root|secret|string|test(?:ing)?|token|user|value)*"
)
_PLACEHOLDER = re.compile(r"^[$%]|[<>{}…]|\$[{(]|\.\.\.|(.)\1{3}|your|example", re.IGNORECASE)
# Placeholders for a token's random part. Runs of A, and short sequences of the alphabet, are not among them:
# they occur in keys as often as any other.
_BLANK = re.compile(
    r"([xX0.*])\1{11}|example|your[_-]|placeholder|redacted|0123456789|123456:|abcdefghij", re.IGNORECASE
)
_NO_SECRET_NAME = re.compile(
    r"publi[cs]|pub_?key|fingerprint|hash|sha\d|digest|checksum|identifier|ur[il]|path|file|name|version|commit|izer"
    r"|(?:^|[^a-z])ids?[^a-z]*$"
)
_NO_SECRET_VALUE = re.compile(r"sha\d|md5|ssh|ecdsa|age1|eyJ|AAAA|data[./]", re.IGNORECASE)
_STRONG_WORD = re.compile(WORDS.removesuffix("|key"))
_HEX = re.compile("[0-9a-f]+|[0-9A-F]+")
# Below such a key of front matter any value is a password, also a short one.
_PASSWORDS = rb"(?:passw(?:or)?d|passphrase|passcode|pwd)s?"
_PASSWORD_KEY = re.compile(_PASSWORDS.decode(), re.IGNORECASE)
_PASSWORD_LINE = re.compile(
    rb"(?:^|[\s{,\"'.])[\w-]*" + _PASSWORDS + rb"[\"']?[ \t]*:"
    rb"(?:[ \t]+(?![|>])(?P<here>[^\s#][^\r\n]*?)[ \t]*\r?$"
    rb"|[ \t]*(?:[|>][^\r\n]*)?\r?\n(?P<below>(?:[ \t]+[^\r\n]+|-[ \t][^\r\n]*)"
    rb"(?:\r?\n(?:[ \t]+[^\r\n]+|-[ \t][^\r\n]*))*))",
    re.IGNORECASE | re.MULTILINE,
)
_TOML_PASSWORD_LINE = re.compile(
    rb"^[ \t]*[\w.\"'-]*" + _PASSWORDS + rb"[\"']?[ \t]*=[ \t]*(?P<here>[^\s#][^\r\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_JSON_PASSWORD = re.compile(
    rb"\"[^\"\n]*" + _PASSWORDS + rb"\"[ \t]*:\s*"
    rb"(?P<here>\"(?:[^\"\\\n]|\\.)*\"|[^\s\"\[{,}\]][^\s,}\]]*)",
    re.IGNORECASE,
)
_NO_PASSWORD_VALUE = re.compile(r"""["']?(?:\$|<|%|\{\{|\[masked: )|["']{2}$|(?:null|true|false|yes|no|~)$""")
_FRONT_MATTER = re.compile(
    rb"(?:---|\+\+\+)[ \t]*\r?\n(.*?)^(?:---|\.\.\.|\+\+\+)[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
_LETTERS_ALONE = re.compile(r"[^a-z]+")
_SIGNS = re.compile(r"[^A-Za-z0-9]+")
_OF_VALUE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/.~%-"  # = may follow
_LONGEST_NAME = 40  # bytes of a value that may be the name of the next assignment
_LOADING = threading.Lock()
JSON_HEAD_BYTES = 64 << 10  # of a note that begins with {; a longer head is no front matter
MIN_PASSWORD_CHARS = 8
MIN_ADDRESS_PASSWORD_CHARS = 4  # where an address has a password, few texts are anything else
LONG_PASSWORD_CHARS = 20  # of letters alone: placeholders in documentation are shorter
MIN_DIFFERENT = 6  # distinct characters of a token; documentation has rows of x
MIN_RANDOM_CHARS = 10  # in a row, without a separator: the words of names are shorter
MIN_DIGITS = 2  # of a random text; names in mixed case have one or none
MIN_KEY_CHARS = 8  # distinct characters in a private key's body: documentation has lines of X
MIN_SERVICE_CHARS = 14  # of a value assigned to the name of a service
MIN_SECRET_CHARS = 20  # assigned to a word such as "token"
MIN_KEY_VALUE_CHARS = 30  # assigned to "key" alone, which is the name of many other things


@dataclass(frozen=True, slots=True)
class Secret:
    """A range of a text that has the shape of a secret; does not contain the secret itself."""

    kind: str  # names issuer and type; shown to a caller whose text is refused
    start: int  # characters; text[start:end] is the secret
    end: int


@cache
def shapes_version() -> str:
    """Return what differs where the same text may have other secrets."""
    tables = repr((RULES, TOKENS, FRAMES, SERVICES, WORDS)).encode()
    return hashlib.blake2b(tables, digest_size=8).hexdigest()


def find_secrets(text: str) -> list[Secret]:
    """Return every secret of a known shape in *text*, in order, without overlaps."""
    data = text.encode("utf-8", "replace")
    if b";base64," in data:
        data = _IMAGE.sub(lambda image: b" " * len(image[0]), data)
    kept: list[Secret] = []
    found = [*_tokens(data), *_framed(data), *_assigned(data), *_front_passwords(data)]
    for secret in sorted(found, key=lambda found: found.start):
        if kept and secret.start < kept[-1].end:
            kept[-1] = Secret(kept[-1].kind, kept[-1].start, max(kept[-1].end, secret.end))
        else:
            kept.append(secret)
    return kept if len(data) == len(text) else list(_in_characters(kept, data))


def mask(text: str) -> str:
    """Return *text* with "[masked: KIND]" for each secret; line numbers do not change."""
    return replaced(text, replacements(text))


def replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Return *text* with [start, end) of each span replaced; line numbers do not change."""
    parts: list[str] = []
    last = 0
    for start, end, instead in spans:
        parts += [text[last:start], instead, "\n" * text.count("\n", start, end)]
        last = end
    return "".join([*parts, text[last:]]) if parts else text


def replacements(text: str) -> list[tuple[int, int, str]]:
    """Return the range [start, end) of each secret in *text*, and its replacement by `mask`."""
    return [(secret.start, secret.end, f"{MASK}{secret.kind}]") for secret in find_secrets(text)]


def masked_values(front: dict[str, object]) -> dict[str, object]:
    """Return the keys and values of a front matter with secrets masked, each value as below its key."""
    is_plain = not find_secrets("\n".join(_pairs(front, ""))) and not _has_password(front)
    if is_plain and not front.get(""):
        return front
    return {mask(key): _masked_value(value, key) for key, value in front.items()}


def _pairs(value: object, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _pairs(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner, key)
    else:
        yield f"{key}: {value}"


def _has_password(value: object) -> bool:
    if isinstance(value, dict):
        return any(_is_password_key(key) or _has_password(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_password, value))


def _is_password_key(key: str) -> bool:
    return any(found.end() == len(key) for found in _PASSWORD_KEY.finditer(key))


def _masked_value(value: object, key: str) -> object:
    if isinstance(value, dict):
        inherited = key if _is_password_key(key) else ""
        return {mask(name): _masked_value(inner, inherited or name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked_value(inner, key) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    if _is_password_key(key) and not _NO_PASSWORD_VALUE.match(value):
        return f"{MASK}password]"
    before, behind = (f"{mask(key)}: ", "") if key else ("---\n", "\n---")  # of lines that are no YAML
    return mask(before + value + behind).removeprefix(before).removesuffix(behind)


class _Token:
    """A shape with a prefix; its expression is compiled when the prefix first occurs."""

    def __init__(self, kind: str, opening: str, rest: str) -> None:
        self.kind = kind.lstrip("<~")
        self.opening = opening.encode()
        self.must_look_random = "~" in kind
        self.max_bytes = _MAX_WEB_TOKEN_BYTES if self.kind == "jwt" else _MAX_TOKEN_BYTES
        self._text = (_NO_WORD_BEFORE if "<" in kind else "") + re.escape(opening) + expanded(rest)

    @cached_property
    def shape(self) -> re.Pattern[bytes]:
        return re.compile(self._text.encode())


class _Frame:
    """A shape recognized by its context; compiled when *holds* first occurs in a text."""

    def __init__(self, kind: str, holds: str, shape: str) -> None:
        self.kind = kind.lstrip("~")
        self.must_look_random = "~" in kind
        self.holds = holds.encode()
        self._text = expanded(shape)

    @cached_property
    def shape(self) -> "re2._Regexp":
        return _compiled(self._text.encode())


class _Shapes:
    """The tables, prepared for searches."""

    def __init__(self) -> None:
        # By the first two bytes, the longest prefixes first.
        self.tokens: dict[bytes, list[_Token]] = {}
        for row in TOKENS.strip().splitlines():
            kind, *openings, rest = row.split()
            for opening in openings:
                self.tokens.setdefault(opening[:2].encode(), []).append(_Token(kind, opening, rest))
        for tokens in self.tokens.values():
            tokens.sort(key=lambda token: -len(token.opening))
        first = b"|".join(re2.escape(token.opening) for tokens in self.tokens.values() for token in tokens)
        self.openings = _compiled(b"(?:%s)%s" % (first, _BEHIND_OPENING))
        self.frames = [_Frame(*row) for row in FRAMES]
        services = "|".join(map(re2.escape, SERVICES.split()))
        self.services = _compiled(f"(?i){services}".encode())
        self.assigned = _compiled(
            rf"(?i)(?:(?:^|[^a-z])(?:{services})|{WORDS})[ \t\w.-]{{0,20}}[\s'\"\\]{{0,3}}"
            r"(?:=>|:{1,3}=|\|\||\?=|[=:>,])[\x60'\"\s=\\]{0,5}"
            rf"[a-z0-9+/_-][a-z0-9_+/.~%-]{{{MIN_SERVICE_CHARS - 1},}}={{0,2}}".encode()
        )


_loaded = cache(_Shapes)


def _shapes() -> _Shapes:
    with _LOADING:  # otherwise two simultaneous first calls would both compile them
        return _loaded()


def expanded(shape: str) -> str:
    """Return a shape of the table as a regular expression."""
    return _MACRO.sub(lambda found: _CLASSES[found[0]], shape)


def _compiled(shape: bytes) -> "re2._Regexp":
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes; in UTF-8 no other character contains ASCII bytes
    options.max_mem = 16 << 20
    options.log_errors = False
    return re2.compile(shape, options)


def _tokens(data: bytes) -> Iterator[Secret]:
    """Yield the tokens that begin with a known prefix."""
    shapes = _shapes()
    at, block, failed = 0, 0, 0
    while match := shapes.openings.search(data, at):
        at = match.start()
        if at >= block + _BLOCK_BYTES:
            block, failed = at, 0
        if failed > _MAX_FAILED:
            run = _LONG_RUN.match(data, at, at + _BLOCK_BYTES)
            if run and _looks_random(run[0].decode("ascii")):
                yield Secret("token", at, run.end())
            at = (run or match).end()
        elif found := _token_at(shapes.tokens[data[at : at + 2]], data, at):
            yield found
            at = found.end
        else:
            failed += 1
            at += 1


def _token_at(tokens: Iterable[_Token], data: bytes, at: int) -> Secret | None:
    for token in tokens:
        if not data.startswith(token.opening, at):
            continue
        match = token.shape.match(data, at, at + token.max_bytes)
        if match is None:
            continue
        rest = data[at + len(token.opening) : match.end()].decode("ascii", "replace")
        if _is_blank(rest) or (token.must_look_random and not _looks_random(rest[:_MAX_RANDOM_CHARS])):
            continue
        if token.kind == "jwt" and _is_known_payload(match[0].decode("ascii")):
            continue
        end = match.end()
        if end - at == token.max_bytes:
            end = _GOES_ON.match(data, end).end()  # type: ignore[union-attr]  # it matches nothing, too
        return Secret(token.kind, at, end)
    return None


def _framed(data: bytes) -> Iterator[Secret]:
    """Yield the secrets that are recognized by their context."""
    lower = data.lower()
    for frame in _shapes().frames:
        if frame.holds in lower:
            for match in frame.shape.finditer(data):
                start, end = match.span(1)
                secret = data[start:end].decode("utf-8", "replace")
                is_random = not frame.must_look_random or _looks_random(secret)
                if is_random and not _is_example(frame.kind, secret):
                    yield Secret(frame.kind, start, end)


def _front_passwords(data: bytes) -> Iterator[Secret]:
    """Yield the values of keys of the front matter that are named as a password."""
    front = _FRONT_MATTER.match(data) if data.startswith((b"---", b"+++")) else None
    span, lines = front.span(1) if front else (0, 0), _PASSWORD_LINE
    if data.startswith(b"+++"):
        lines = _TOML_PASSWORD_LINE
    elif data.startswith(b"{"):
        span, lines = (0, JSON_HEAD_BYTES), _JSON_PASSWORD
    for match in lines.finditer(data, *span):
        start, end = match.span("here" if match["here"] is not None else "below")
        if not _NO_PASSWORD_VALUE.match(data[start:end].decode("utf-8", "replace")):
            quoted = end - start > 2 and data[start : start + 1] in {b'"', b"'"}  # noqa: PLR2004 - both quotes
            is_closed = quoted and data[start : start + 1] == data[end - 1 : end]
            yield Secret("password", start + is_closed, end - is_closed)


def _assigned(data: bytes) -> Iterator[Secret]:
    """Yield random texts that are assigned to the name of a service or of a secret."""
    shapes = _shapes()
    at = 0
    while match := shapes.assigned.search(data, at):
        whole = match.group()
        start = match.start() + len(whole.rstrip(b"=").rstrip(_OF_VALUE))
        name, value = (
            data[match.start() : start].decode("ascii", "replace").lower(),
            data[start : match.end()],
        )
        value = value.rstrip(b".")
        is_service = shapes.services.search(name.encode()) is not None
        if _is_assigned_secret(name, value.decode("ascii"), is_service=is_service):
            at = _VALUE_GOES_ON.match(data, start + len(value)).end()  # type: ignore[union-attr]
            yield Secret("credential", start, at)
        else:
            at = max(start, match.end() - _LONGEST_NAME)


def _is_assigned_secret(name: str, value: str, *, is_service: bool) -> bool:
    """Return whether *value*, assigned to *name*, is a secret; identifiers and hashes are random, too."""
    if _NO_SECRET_NAME.search(name) or _NO_SECRET_VALUE.match(value) or _is_blank(value):
        return False
    if not _looks_random(value):
        return False
    if is_service:
        return True
    if _STRONG_WORD.search(name):
        return len(value) >= MIN_SECRET_CHARS
    return len(value) >= MIN_KEY_VALUE_CHARS and not _HEX.fullmatch(value)


def _looks_random(text: str) -> bool:
    """Return whether digits, small and capital letters alternate randomly, unlike in words and dates."""
    longest = max(_SIGNS.split(text), key=len)
    if len(longest) < MIN_RANDOM_CHARS or sum(map(str.isdigit, text)) < MIN_DIGITS:
        return False
    kinds = ["0" if character.isdigit() else "a" if character.islower() else "A" for character in longest]
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= max(3, len(longest) // 8)


def _is_blank(text: str) -> bool:
    """Return whether a token is a placeholder or an example from documentation."""
    return len(set(text)) < MIN_DIFFERENT or bool(_BLANK.search(text) or _PUBLIC.search(text))


def _in_characters(secrets: Iterable[Secret], data: bytes) -> Iterator[Secret]:
    before, characters = 0, 0
    for secret in secrets:
        characters += len(data[before : secret.start].decode("utf-8", "ignore"))
        length = len(data[secret.start : secret.end].decode("utf-8", "ignore"))
        yield Secret(secret.kind, characters, characters + length)
        before, characters = secret.end, characters + length


def _is_example(kind: str, secret: str) -> bool:
    """Return whether a secret is an example from documentation or a placeholder."""
    if secret.startswith(MASK.strip()) or _PUBLIC.search(secret):
        return True
    if kind == "private-key":
        return len(set(secret.partition("-----")[2].rpartition("-----")[2])) < MIN_KEY_CHARS
    if kind == "generic-credential-uri":
        return len(secret) < MIN_ADDRESS_PASSWORD_CHARS or _is_placeholder(secret)
    name, password = _password_in(kind, secret)
    if password is None:
        return _is_blank(secret)
    if len(password) < MIN_PASSWORD_CHARS or password == name or _is_placeholder(password):
        return True
    return len(password) < LONG_PASSWORD_CHARS and password.isalpha()


def _password_in(kind: str, secret: str) -> tuple[str, str | None]:
    """Return the name and the password of a credential; ("", None) for a token."""
    if kind == "basic-authorization":
        name, _, password = _decoded(secret).partition(":")
        return name, password
    if kind == "curl-auth-user":
        name, _, password = secret.partition(":")
        return name, password
    if kind in {"netrc-password", "nuget-config-password"}:
        return "", secret
    return "", None


def _is_placeholder(text: str) -> bool:
    letters = _LETTERS_ALONE.sub("", text.lower())
    return bool(_PLACEHOLDER.search(text) or _NO_PASSWORD.fullmatch(letters))


def _is_known_payload(token: str) -> bool:
    """Return whether a web token is the example of jwt.io or of PyJWT's page, or made like them."""
    try:
        payload = json.loads(_decoded(token.split(".")[1]))
    except ValueError:
        return False
    if not isinstance(payload, dict):
        return False
    return payload.get("sub") == "1234567890" or payload == {"some": "payload"}


def _decoded(text: str) -> str:
    """Decode base64 of either alphabet; "" if *text* is not base64."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4)).decode("utf-8", "replace")
    except binascii.Error:
        return ""
