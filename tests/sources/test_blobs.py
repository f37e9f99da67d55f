"""Base64 in a note is one word of its chunks, and lines and offsets stay those of the file."""

import base64
import random

import pytest

from memd.records import ChunkLimits
from memd.sources.chunk import parse
from tests.sources.test_chunk import LIMITS, tokenizer

BLOB = base64.b64encode(random.Random(1).randbytes(3_000)).decode()


def wrapped(width, joint):
    return joint.join(BLOB[at : at + width] for at in range(0, len(BLOB), width))


def chunked(text, limits=LIMITS):
    return parse(text, tokenizer=tokenizer("short pieces"), limits=limits).chunks


@pytest.mark.parametrize(
    "blob",
    [
        f"![p](data:image/png;base64,{BLOB})",
        "![dot](data:image/gif;base64,R0lGODlhAQABAAAAACw=)",
        f"<img src='data:image/svg+xml;charset=utf-8;base64,{wrapped(76, chr(10))}'/>",
        f"[p]: <data:image/png;base64,{BLOB}>",
        "![s](data:image/svg+xml;charset=utf-8," + "%3Cpath%20d=M1,2%20fill=url(%23a)/%3E" * 90 + ")",
        f"<img src='data:image/svg+xml;utf8,{'%3Cg%20' * 90}'>",
        f"```\n{wrapped(64, chr(10))}\n```",
        f"```compressed-json\n{wrapped(256, chr(10) * 2)}\n```",
        f"> {wrapped(76, chr(13) + chr(10) + '> ')}",
        BLOB.replace("+", "-").replace("/", "_"),
    ],
)
def test_base64_is_one_word_and_the_text_behind_it_is_at_its_line(blob):
    text = f"We saw puffins.\n\n{blob}\n\nThen we ate herring.\n"
    chunks = chunked(text)
    whole = "\n".join(chunk.text for chunk in chunks)
    assert len(chunks) == 1
    assert "base64" in whole
    assert max(map(len, whole.split())) < 30
    [at] = [n for n, line in enumerate(chunks[0].text.split("\n"), chunks[0].start_line) if "herring" in line]
    assert text.split("\n")[at - 1].startswith("Then we ate herring")


@pytest.mark.parametrize(
    "text",
    [
        "/usr/share/doc9" * 30, "-" * 300, "no-1-ends-" * 30, "A" * 300,
        "\n".join(f"{random.Random(n).getrandbits(256):064x}" for n in range(9)), "x" + BLOB[:150],
        "data:text/plain,hello%20world",
        f"eyJhbGci.{'aB3dE5fG7hJ9' * 30}.aB3dE5fG7hJ9",
    ],
)  # fmt: skip
def test_what_may_be_text_or_is_looked_up_stays(text):
    assert "base64" not in "".join(chunk.text for chunk in chunked(text, ChunkLimits(400, 0, 2_000)))


def test_offsets_behind_base64_in_a_line_are_those_of_the_file():
    line = f"ä ![p](data:image/png;base64,{BLOB}) " + " ".join(f"w{n}" for n in range(300))
    last = chunked(line)[-1]
    assert line.encode()[last.start_byte :].decode().startswith(last.text)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (f"code/{BLOB}", "code/base64"),
        (f"see /srv/Code/images2/{BLOB}/thumbnail now", "see /srv/Code/images2/base64/thumbnail now"),
        (f"key-{BLOB[:-4].replace('+', '-').replace('/', '_')}", "key-base64"),
        (f"{BLOB[:400]}+end", "base64+end"),
    ],
)
def test_words_of_a_path_beside_base64_stay(line, left):
    text = f"{line}\n\nThen we ate herring.\n"
    [chunk] = chunked(text)
    assert chunk.text.split("\n")[0] == left
    assert text.encode()[chunk.start_byte :].decode().split(maxsplit=1)[0] == text.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    "text",
    [
        "data:a/a;b=c" * 100_000,
        "data:a/a,(" * 100_000,
        ("b1" * 30 + "=") * 20_000,
        "a-" * 500_000,
        "/aa" * 300_000,
    ],
)
def test_hostile_runs_take_linear_time(text):
    assert chunked(text)
