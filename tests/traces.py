"""Where a word stands on the disk: as it is, or in a text that is packed."""

import re
import zlib
from pathlib import Path

PACKED = re.compile(rb"\x78\x9c")  # how memd.index.texts begins what it packs
STEP_BYTES = 16  # what is left of a text is unpacked up to the first fault


def traces(word: str, *folders: Path) -> list[str]:
    """Return the files below *folders* that hold a word, in any case.

    Full text stores a word without what it shares with the word before it: ask for its end.
    """
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if word.encode() in held(path)]


def held(path: Path) -> bytes:
    """Return the bytes of a file and of all that is packed in it, in small letters."""
    raw = path.read_bytes()
    return b"\n".join([raw, *(_unpacked(raw, found.start()) for found in PACKED.finditer(raw))]).lower()


def _unpacked(raw: bytes, at: int) -> bytes:
    reader, found = zlib.decompressobj(), b""
    try:
        while at < len(raw) and not reader.eof:
            found += reader.decompress(raw[at : at + STEP_BYTES])
            at += STEP_BYTES
    except zlib.error:
        pass
    return found
