"""Detection and masking of secrets in a text: keys, tokens, passwords in URLs and headers.

The shapes are those of the kingfisher library, which has the catalogue of Betterleaks (the successor of
gitleaks' rules) and compares all of them in one pass; `secrets.yml` adds those that it lacks. Precision over
recall: what documentation quotes as an example passes, and so does a password in a sentence.

Nothing here asks a network: of the library only its scanner is used. For any thread. It must not know who
wrote a text or what happens to it.
"""

import base64
import binascii
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memctl import paths

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

RULES = Path(__file__).with_name("secrets.yml")
CACHE_FOLDER = (
    "secret-rules"  # in the state folder: the compiled shapes; without it each start takes 3 s more
)
_CACHE_VARIABLE = "KF_RULE_CACHE_DIR"  # the library's own, for who wants them elsewhere

# Where rules are from, those with the clearest names first; "" is what a later catalogue may have.
_ORIGINS = ("memd.", "betterleaks.", "veles.secrets/", "")
# The catalogue is made for source code, where a token ends at a quote, a space or a line. Notes put commas,
# brackets, stars and Han around it: those become spaces, a byte for a byte, and the text is scanned again.
_ASCII = 0x80  # values below it
_SPACES = bytes(32 if byte >= _ASCII or chr(byte) in ",()[]{}<>*|!?`" else byte for byte in range(256))

# Tokens that are public: of AWS's, GitHub's and Azurite's documentation.
_PUBLIC = frozenset(
    {
        "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq" + "/K1SZFPTOtr/KBHBeksoGMGw==",
        "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",  # RFC 7617
    }
)
# What stands for a password where none is told; digits and signs around it do not make it one.
_NO_PASSWORD = re.compile(
    "(?:my|your|some|super|top|user|test|the|a)*"
    "(?:admin|api|change(?:it|me)|default|demo|dummy|example|foobar|guest|hunter|key|letmein|name|pass|passphrase"
    "|passw(?:or)?d|placeholder|postgres|qwerty|redacted|root|secret|string|test(?:ing)?|token|user|value)*"
)
_PLACEHOLDER = re.compile(r"^[$%]|[<>{}…]|\$[{(]|\.\.\.|(.)\1{3}|your|example", re.IGNORECASE)
_BLANK = re.compile(r"([xX0.])\1{11}")  # where a token's random part would stand; keys have such runs of A
_ADDRESS = re.compile(r"://(?P<name>[^/\s:@]*):(?P<password>[^/\s@]+)@")
_LETTERS_ALONE = re.compile(r"[^a-z]+")
_LOADING = threading.Lock()
MIN_PASSWORD_CHARS = 8
LONG_PASSWORD_CHARS = 20  # of letters alone: words that documentation puts there are shorter
MIN_KEY_CHARS = 8  # different ones in a private key's body: documentation has lines of X


@dataclass(frozen=True, slots=True)
class Secret:
    """One stretch of a text that has the shape of a secret. It does not hold the secret."""

    kind: str  # names issuer and sort: it is what a refused caller reads
    start: int  # characters; text[start:end] is the secret
    end: int


def find_secrets(text: str) -> list[Secret]:
    """Return every secret of a known shape in *text*, in order; no two of them overlap."""
    data = text.encode("utf-8", "replace")
    kept: list[Secret] = []
    for _, one in sorted(set(_found(data)), key=lambda found: (found[1].start, found[0], -found[1].end)):
        if kept and one.start < kept[-1].end:
            kept[-1] = Secret(kept[-1].kind, kept[-1].start, max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return kept if len(data) == len(text) else list(_in_characters(kept, data))


def mask(text: str) -> str:
    """Return *text* with "[masked: KIND]" in the place of each secret; every line keeps its number."""
    parts: list[str] = []
    last = 0
    for start, end, instead in replacements(text):
        parts += [text[last:start], instead, "\n" * text.count("\n", start, end)]
        last = end
    return "".join([*parts, text[last:]]) if parts else text


def replacements(text: str) -> list[tuple[int, int, str]]:
    """Return where secrets stand in *text*, [start, end), and what `mask` puts there beside line breaks."""
    return [(one.start, one.end, f"[masked: {one.kind}]") for one in find_secrets(text)]


def _scanner() -> "Scanner":
    with _LOADING:  # else two threads that come at once would both read the shapes
        return _loaded()


@cache
def _loaded() -> "Scanner":
    # 20 ms and 40 MB, with a quarter of a second to read the shapes: only where a text is looked through.
    from kingfisher_sdk import Rules, Scanner  # noqa: PLC0415

    folder = None if os.environ.get(_CACHE_VARIABLE) else paths.state_dir() / CACHE_FOLDER
    # What is base64 of something else is not decoded: notes quote images and certificates.
    return Scanner(Rules([RULES], cache_dir=folder), base64=False)


def _found(data: bytes) -> Iterator[tuple[int, Secret]]:
    """Yield secrets with places in bytes, and how good the name of each is; some more than once."""
    bare = data.translate(_SPACES).replace(b". ", b"  ").replace(b".\n", b" \n")
    for scanned in (data, bare):
        for one in _scanner().scan(scanned):
            rank, kind = _named(one.rule_id)
            if one.visible and not _is_example(kind, one.secret):
                yield rank, Secret(kind, one.location["start_offset"], one.location["end_offset"])


@cache
def _named(rule_id: str) -> tuple[int, str]:
    """Return the rank and the name of a rule: of "betterleaks.zoho-zapi-key.1" zoho-zapi-key."""
    rank = next(number for number, origin in enumerate(_ORIGINS) if rule_id.startswith(origin))
    return rank, re.sub(r"\.\d+$", "", rule_id.removeprefix(_ORIGINS[rank]))


def _in_characters(secrets: Iterable[Secret], data: bytes) -> Iterator[Secret]:
    before, characters = 0, 0
    for one in secrets:
        characters += len(data[before : one.start].decode("utf-8", "ignore"))
        length = len(data[one.start : one.end].decode("utf-8", "ignore"))
        yield Secret(one.kind, characters, characters + length)
        before, characters = one.end, characters + length


def _is_example(kind: str, secret: str) -> bool:
    """Tell whether a secret is one that documentation shows, or the place of one."""
    if secret in _PUBLIC:
        return True
    if kind == "private-key":
        return len(set(secret.partition("-----")[2].rpartition("-----")[2])) < MIN_KEY_CHARS
    if kind == "jwt":
        return _is_known_payload(secret)
    name, password = _password_in(kind, secret)
    return bool(_BLANK.search(secret)) or (password is not None and not _is_password(password, name))


def _password_in(kind: str, secret: str) -> tuple[str, str | None]:
    """Return the name and the password that a secret consists of; None where it is a token."""
    if kind == "basic-authorization":
        name, _, password = _decoded(secret).partition(":")
        return name, password
    if kind in {"generic-credential-uri", "netrc-password", "curl-auth-user"}:
        return "", secret.rpartition(":")[2]
    address = _ADDRESS.search(secret)
    return (address["name"], address["password"]) if address else ("", None)


def _is_password(text: str, name: str = "") -> bool:
    """Tell a password from a word that stands in its place."""
    if len(text) < MIN_PASSWORD_CHARS or text == name or _PLACEHOLDER.search(text):
        return False
    letters = _LETTERS_ALONE.sub("", text.lower())
    if _NO_PASSWORD.fullmatch(letters):
        return False
    return len(text) >= LONG_PASSWORD_CHARS or not text.isalpha()


def _is_known_payload(token: str) -> bool:
    """Tell whether a web token is that of jwt.io, of PyJWT's page, or made like them."""
    try:
        payload = json.loads(_decoded(token.split(".")[1]))
    except ValueError:
        return False
    if not isinstance(payload, dict):
        return False
    return payload.get("sub") == "1234567890" or payload == {"some": "payload"}


def _decoded(text: str) -> str:
    """Return what is written in base64 of either alphabet; "" where it is none."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4)).decode("utf-8", "replace")
    except binascii.Error:
        return ""
