"""The folder of sidecars returns only valid vectors, whatever a clone has put into it."""

import array
import os
import resource
import struct
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd.errors import NoSpaceError, StorageError
from memd.index.sidecars import (
    KEPT_S,
    MAX_TRIED,
    SidecarFolder,
    encode,
    sidecar_key,
    sidecar_name,
)
from memd.sources.scan import Rules, walk
from memd.workspace import watcher
from memd.workspace.watcher import HintKind, meaning

MODEL = "word-hash"
DIM = 3
ROWS = [array.array("f", numbers).tobytes() for numbers in ((1, 0, 0), (0.6, 0, -0.8))]
OTHER_ROWS = [array.array("f", numbers).tobytes() for numbers in ((0, 1, 0), (0, 0, 1))]


def hashes(number: int = 0) -> list[bytes]:
    """Return the chunk hashes of some source."""
    return [struct.pack("<QQ", number, chunk) for chunk in range(2)]


def file_for(number: int = 0, rows: list[bytes] = ROWS, model: str = MODEL) -> tuple[str, bytes]:
    """Return name and bytes of a right sidecar."""
    body = encode(model, list(zip(hashes(number), rows, strict=True)), DIM)
    return sidecar_name(sidecar_key(model, DIM, hashes(number)), body), body


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return tmp_path / "notes"


def vectors(root: Path) -> Path:
    folder = root / "memory" / "index" / "vectors"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find(folder: SidecarFolder, number: int = 0) -> list[bytes] | None:
    return folder.find(MODEL, DIM, hashes(number))


def write(folder: SidecarFolder, number: int = 0, rows: list[bytes] = ROWS) -> bool:
    return folder.write(MODEL, DIM, hashes(number), rows)


def names(root: Path) -> list[str]:
    return sorted(entry.name for entry in vectors(root).iterdir())


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop the right to read everything, which the tests may have."""
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())


def test_what_one_machine_left_another_finds(root: Path):
    here = SidecarFolder(root)
    assert find(here) is None
    assert write(here)
    there = SidecarFolder(root)
    assert find(there) == ROWS
    assert find(there, 1) is None
    assert find(here) == ROWS
    assert (here.written, here.read, there.written, there.read) == (1, 1, 0, 1)
    assert not here.ignored
    assert not there.ignored
    assert names(root) == [file_for()[0]]


def test_it_is_not_written_twice(root: Path):
    """An existing file stays, even if this machine's vectors differ in the last bit."""
    assert write(SidecarFolder(root))
    assert not write(SidecarFolder(root), rows=OTHER_ROWS)
    assert names(root) == [file_for()[0]]
    assert find(SidecarFolder(root)) == ROWS


def test_a_file_that_arrives_later_is_found(root: Path):
    """A pull brings files while memd runs: the next look sees them, however short after the last."""
    folder = SidecarFolder(root)
    for number in range(5):
        arrived, body = file_for(number)
        folder.refresh()
        assert find(folder, number) is None
        (vectors(root) / arrived).write_bytes(body)
        folder.refresh()
        assert find(folder, number) == ROWS


def test_two_files_within_one_tick_of_the_clock_are_both_found(root: Path):
    """Where the folder's stamp is too new to tell a change, it is listed again."""
    tick_ns = time.time_ns()
    folder = SidecarFolder(root)
    for number in range(2):
        arrived, body = file_for(number)
        (vectors(root) / arrived).write_bytes(body)
        os.utime(vectors(root), ns=(tick_ns, tick_ns))
        folder.refresh()
        assert find(folder, number) == ROWS


def test_a_folder_that_nobody_touched_is_not_listed_again(root: Path, monkeypatch):
    """Ten thousand names are read once; a folder that changed a moment ago proves nothing."""
    write(SidecarFolder(root))
    os.utime(vectors(root), (1, 1))
    folder = SidecarFolder(root)
    folder.refresh()
    listed = []
    monkeypatch.setattr(os, "scandir", lambda at: listed.append(at) or pytest.fail("listed again"))
    folder.refresh()
    assert find(folder) == ROWS
    assert listed == []


def test_a_file_that_is_gone_is_no_fault(root: Path):
    """Another branch was checked out: nothing is found, nothing is counted."""
    folder = SidecarFolder(root)
    write(folder)
    (vectors(root) / file_for()[0]).unlink()
    assert find(folder) is None
    assert not folder.holds(MODEL, DIM, hashes())
    assert write(folder)
    assert find(folder) == ROWS
    assert not folder.ignored


# Nothing in the folder leads out of it


def test_no_memory_folder_no_sidecar(tmp_path: Path):
    """Nothing is created while the disk is not mounted."""
    folder = SidecarFolder(tmp_path)
    assert find(folder) is None
    with pytest.raises(StorageError, match="was not written"):
        write(folder)
    assert list(tmp_path.iterdir()) == []
    assert not folder.ignored


@pytest.mark.parametrize("link", ["memory", "memory/index", "memory/index/vectors"])
@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path, link: str, target: str):
    root = tmp_path / "notes"
    outside = tmp_path / "outside"
    inside = outside.joinpath(*("index", "vectors")[: 2 - link.count("/")])
    inside.mkdir(parents=True)
    right, body = file_for()
    (inside / right).write_bytes(body)
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(tmp_path / target)
    folder = SidecarFolder(root)
    assert find(folder) is None
    with pytest.raises(StorageError):
        write(folder, 1)
    folder.refresh()
    assert find(folder) is None
    assert folder.prune(set(), model_id=MODEL, dim=DIM, now_s=time.time() + 2 * KEPT_S) == 0
    assert dict(folder.ignored) == {"unsafe": 1}
    assert [entry.name for entry in inside.iterdir()] == [right]


@pytest.mark.parametrize("in_the_way", ["memory/index", "memory/index/vectors"])
def test_a_file_in_the_place_of_a_folder_is_left_alone(root: Path, in_the_way: str):
    (root / in_the_way).parent.mkdir(exist_ok=True)
    (root / in_the_way).write_text("mine\n")
    folder = SidecarFolder(root)
    assert find(folder) is None
    with pytest.raises(StorageError):
        write(folder)
    assert (root / in_the_way).read_text() == "mine\n"
    assert dict(folder.ignored) == {"unsafe": 1}


def test_a_folder_that_becomes_a_link_is_left(root: Path, tmp_path: Path):
    """Between two calls everything may change: each walks anew."""
    folder = SidecarFolder(root)
    write(folder)
    moved = tmp_path / "moved"
    vectors(root).rename(moved)
    (root / "memory" / "index" / "vectors").symlink_to(moved)
    assert find(folder) is None
    with pytest.raises(StorageError):
        write(folder, 1)
    assert len(list(moved.iterdir())) == 1


def make_link(path: Path, body: bytes) -> None:
    target = path.parent.parent / "target"
    target.write_bytes(body)
    path.symlink_to(target)


def make_sparse(path: Path, _: bytes) -> None:
    with path.open("wb") as file:
        file.truncate(4 * 1024**3)


KINDS = {
    "link": (make_link, "unsafe"),
    "dangling": (lambda path, _: path.symlink_to("nowhere"), "unsafe"),
    "pipe": (lambda path, _: os.mkfifo(path), "unsafe"),
    "folder": (lambda path, _: path.mkdir(), "unsafe"),
    "sparse": (make_sparse, "damaged"),
    "empty": (lambda path, _: path.write_bytes(b""), "damaged"),
    "short": (lambda path, body: path.write_bytes(body[:-1]), "damaged"),
    "zeros": (lambda path, body: path.write_bytes(bytes(len(body))), "damaged"),
    "flipped": (lambda path, body: path.write_bytes(body[:-1] + bytes([body[-1] ^ 1])), "damaged"),
    "long": (lambda path, body: path.write_bytes(body + bytes(100_000)), "damaged"),
    "foreign": (lambda path, _: path.write_bytes(file_for(model="w0rd-hash")[1]), "other-model"),
    "stale": (lambda path, _: path.write_bytes(file_for(7)[1]), "damaged"),
    "misnamed": (lambda path, _: path.write_bytes(file_for(rows=OTHER_ROWS)[1]), "damaged"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_of_no_use_is_ignored_counted_and_written_anew(root: Path, kind: str):
    make, reason = KINDS[kind]
    right, body = file_for()
    make(vectors(root) / right, body)
    folder = SidecarFolder(root)
    tracemalloc.start()
    assert find(folder) is None
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dict(folder.ignored) == {reason: 1}
    assert peak_bytes < 1_000_000
    if kind == "folder":
        with pytest.raises(StorageError):
            write(folder)
        assert write(folder, rows=OTHER_ROWS)  # another body has another name
    else:
        assert write(folder)
    assert find(SidecarFolder(root)) is not None


def test_a_damaged_file_goes_when_a_right_one_is_there(root: Path):
    """One key, two names: the damaged one is removed, what is no file or not to be read stays."""
    damaged, _ = file_for(rows=OTHER_ROWS)
    (vectors(root) / damaged).write_bytes(b"x" * len(file_for()[1]))
    linked = f"{damaged[:33]}00000000.vec"
    (vectors(root) / linked).symlink_to("nowhere")
    folder = SidecarFolder(root)
    assert find(folder) is None
    assert write(folder)
    assert names(root) == sorted([linked, file_for()[0]])
    assert find(folder) == ROWS


def test_a_file_that_was_cut_off_is_written_anew_though_nobody_read_it(root: Path):
    right, body = file_for()
    (vectors(root) / right).write_bytes(body[:20])
    folder = SidecarFolder(root)
    assert not folder.holds(MODEL, DIM, hashes())
    assert write(folder)
    assert find(folder) == ROWS


def test_among_several_a_right_one_is_found(root: Path):
    """Two machines embedded at the same time, and one of the files was damaged in transit."""
    first, second = sorted([file_for(), file_for(rows=OTHER_ROWS)])
    (vectors(root) / first[0]).write_bytes(first[1][:-1] + b"?")
    (vectors(root) / second[0]).write_bytes(second[1])
    folder = SidecarFolder(root)
    assert find(folder) == (ROWS if second == file_for() else OTHER_ROWS)
    assert dict(folder.ignored) == {"damaged": 1}


def test_only_a_few_files_are_tried_for_one_source(root: Path):
    """A clone with thousands of names for one key costs no more than a few."""
    wanted = sidecar_key(MODEL, DIM, hashes())
    for number in range(50):
        (vectors(root) / f"{wanted}-{number:08x}.vec").write_bytes(b"")
    folder = SidecarFolder(root)
    assert find(folder) is None
    assert folder.ignored.total() == MAX_TRIED


def test_what_may_not_be_read_is_ignored():
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        root.chmod(0o755)
        right, body = file_for()
        (vectors(root) / right).write_bytes(body)
        (vectors(root) / right).chmod(0)
        vectors(root).chmod(0o777)
        with as_nobody():
            folder = SidecarFolder(root)
            assert find(folder) is None
            assert dict(folder.ignored) == {"unreadable": 1}
            assert write(folder, rows=OTHER_ROWS)
            assert (vectors(root) / right).exists()
        vectors(root).chmod(0)
        with as_nobody():
            folder = SidecarFolder(root)
            assert find(folder) is None
            with pytest.raises(StorageError):
                write(folder, 1)
            assert dict(folder.ignored) == {"unreadable": 1}
        vectors(root).chmod(0o700)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "long"])
def test_what_takes_a_files_place_after_the_look_at_it_is_not_read(root: Path, monkeypatch, kind: str):
    """Between the look and the opening anything may happen: nothing hangs, nothing is followed."""
    right, body = file_for()
    (vectors(root) / right).write_bytes(body)
    folder = SidecarFolder(root)
    folder.refresh()
    look = os.stat

    def swapping(path, **where):
        found = look(path, **where)
        if path == right:
            (vectors(root) / right).unlink()
            KINDS[kind][0](vectors(root) / right, body)
        return found

    monkeypatch.setattr(os, "stat", swapping)
    assert find(folder) is None
    assert dict(folder.ignored) == {"unreadable" if kind == "link" else KINDS[kind][1]: 1}


def test_a_folder_of_foreign_names_is_passed_over(root: Path):
    foreign = [
        "README.md", "x.vec", ".hidden.vec", f"{'0' * 32}-{'0' * 8}.vec~", f"{'G' * 32}-{'0' * 8}.vec",
        f"{sidecar_key(MODEL, DIM, hashes())}.vec", f"{sidecar_key(MODEL, DIM, hashes())}-0000.vec",
        f"{'٣' * 32}-{'0' * 8}.vec",
    ]  # fmt: skip
    for one in foreign:
        (vectors(root) / one).write_bytes(b"mine")
    (vectors(root) / os.fsdecode(b"caf\xe9.vec")).write_bytes(b"mine")
    folder = SidecarFolder(root)
    assert find(folder) is None
    assert folder.prune(set(), model_id=MODEL, dim=DIM, now_s=time.time() + 2 * KEPT_S) == 0
    assert write(folder)
    assert len(names(root)) == len(foreign) + 2
    assert not folder.ignored


def test_more_names_than_are_looked_at_are_said(root: Path, monkeypatch):
    monkeypatch.setattr("memd.index.sidecars.MAX_NAMES", 20)
    for number in range(40):
        (vectors(root) / f"{number:032x}-{number:08x}.vec").write_bytes(b"")
    folder = SidecarFolder(root)
    folder.refresh()
    assert dict(folder.ignored) == {"unreadable": 1}
    assert sum(len(folder.names(f"{number:032x}")) for number in range(40)) == 20


# Writing


def test_only_its_owner_may_read_what_is_written(root: Path):
    old = os.umask(0)
    try:
        write(SidecarFolder(root))
    finally:
        os.umask(old)
    assert (vectors(root) / file_for()[0]).stat().st_mode & 0o777 == 0o600
    assert vectors(root).stat().st_mode & 0o777 == 0o700


def test_what_a_killed_process_left_is_in_nobodys_way(root: Path):
    """A partial file has another name than a sidecar; the next writer replaces it."""
    right, body = file_for()
    (vectors(root) / f".~{right}.tmp").write_bytes(body[:30])
    folder = SidecarFolder(root)
    assert find(folder) is None
    assert write(folder)
    assert names(root) == [right]


def test_a_link_at_the_temporary_name_is_not_followed(root: Path, tmp_path: Path):
    """A clone may contain it: its target does not change."""
    right, _ = file_for()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (vectors(root) / f".~{right}.tmp").symlink_to(victim)
    assert write(SidecarFolder(root))
    assert victim.read_text() == "precious"
    assert names(root) == [right]


def test_a_write_that_breaks_off_leaves_nothing_half(root: Path):
    folder = SidecarFolder(root)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
    try:
        with pytest.raises(StorageError, match=r"\.vec was not written"):
            write(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(root) == []
    assert write(folder)
    assert find(folder) == ROWS


def test_a_full_disk_is_named(root: Path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(NoSpaceError):
        write(SidecarFolder(root))
    assert names(root) == []


# Pruning


def test_what_no_source_needs_goes_after_a_day(root: Path):
    """Not what is needed, not what is new, not another model's, not what no reader can tell whose it is."""
    folder = SidecarFolder(root)
    for number in range(3):
        write(folder, number)
    other, body = file_for(5, model="other")
    (vectors(root) / other).write_bytes(body)
    unknown = f"{'1' * 32}-{'2' * 8}.vec"
    (vectors(root) / unknown).write_bytes(b"?")
    linked = f"{'3' * 32}-{'4' * 8}.vec"
    (vectors(root) / linked).symlink_to(file_for(0)[0])
    left = f".~{file_for(9)[0]}.tmp"
    (vectors(root) / left).write_bytes(b"half")
    now_s = time.time()
    os.utime(vectors(root) / file_for(2)[0], (now_s + KEPT_S, now_s + KEPT_S))
    keep = {sidecar_key(MODEL, DIM, hashes(1))}
    assert folder.prune(keep, model_id=MODEL, dim=DIM, now_s=now_s + KEPT_S - 60) == 0
    assert len(names(root)) == 7
    assert folder.prune(keep, model_id=MODEL, dim=DIM, now_s=now_s + KEPT_S + 60) == 1
    assert names(root) == sorted([file_for(1)[0], file_for(2)[0], other, unknown, linked])
    assert find(folder, 0) is None
    assert find(folder, 1) == ROWS


def test_it_never_becomes_a_source(root: Path, monkeypatch):
    """Whatever the patterns are: nothing in memory/index/ is searched, and its events are ignored unseen."""
    monkeypatch.setattr(watcher, "is_folder", None)  # its disk may hang
    write(SidecarFolder(root))
    (vectors(root) / "README.md").write_text("not a note\n")
    (root / "note.md").write_text("a note\n")
    for patterns in (["**/*.md"], ["**/*"], ["memory/index/**"]):
        rules = Rules.load(root, patterns, ["!memory/index/"])
        assert "memory/index/" not in str(list(walk(root, rules)))
        for below in ("", "/vectors", "/vectors/README.md", f"/vectors/{file_for()[0]}"):
            assert meaning(f"{root}/memory/index{below}", root, rules, lambda _: False) is HintKind.NOTHING


def test_one_listing_serves_every_source(root: Path, monkeypatch):
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda at: listed.append(at) or scandir(at))
    writer = SidecarFolder(root)
    assert all(write(writer, number) for number in range(300))
    reader = SidecarFolder(root)
    assert all(find(reader, number) == ROWS for number in range(300))
    assert len(listed) == 1
    assert (writer.written, reader.read) == (300, 300)
