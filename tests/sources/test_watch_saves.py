"""A save is named, whoever saves and however the file is called."""

import asyncio
import os
import shutil
import subprocess
import unicodedata

import pytest
from watched_folder import armed, run


def watched_during(root, change):
    """Return the paths below *root* that a change makes the watch name, files and folders."""
    named = set()

    async def scenario():
        async with armed(root) as watched:
            await asyncio.to_thread(change)
            await watched.settled()
            named.update(watched.named)

    run(scenario)
    return {path.removeprefix(f"{root}/") for path in named}


NAMES = {
    "255-bytes": b"a" * 252 + b".md", "newline": b"two\nlines.md",
    "right-to-left": "עברית \u202e.md".encode(), "nfc": unicodedata.normalize("NFC", "Äpfel.md").encode(),
    "nfd": unicodedata.normalize("NFD", "Äpfel.md").encode(), "blank": b" .md ", "backslash": b"a\\040b.md",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_name_is_named_as_it_is(root, name):
    place = os.fsencode(root)
    os.mkdir(place + b"/old-" + name[-200:])  # noqa: PTH102 - bytes are no Path

    def change():
        for path in (b"/" + name, b"/old-" + name[-200:] + b"/" + name):
            os.close(os.open(place + path, os.O_CREAT | os.O_WRONLY))
        os.mkdir(place + b"/new-" + name[-200:])  # noqa: PTH102

    found = {os.fsencode(path) for path in watched_during(root, change)}
    assert found == {name, b"old-" + name[-200:] + b"/" + name, b"new-" + name[-200:]}


def truncated(note):
    """Nobody opens or closes a file that is cut by its name."""
    os.truncate(note, 1)


def protected(note):
    """A file that may be read only now must be looked at."""
    note.chmod(0o600)


def nameless(note):
    """Made with O_TMPFILE, and written before it has a name."""
    try:
        descriptor = os.open(note.parent, os.O_TMPFILE | os.O_WRONLY)
    except OSError:
        pytest.skip("no O_TMPFILE on this file system")
    os.write(descriptor, b"new")
    # With a dir_fd, or Python would not follow the link.
    os.link(
        f"/proc/self/fd/{descriptor}", note.with_name("new.md"), src_dir_fd=descriptor, follow_symlinks=True
    )
    os.close(descriptor)


def linked(note):
    """A hard link, whose content nobody writes here."""
    os.link(note.parent.parent / "outside.md", note.with_name("new.md"))


def by_a_pipe(note):
    os.mkfifo(note.with_name("new.md"))


def with_lock(note):
    """Emacs: a dangling link is the lock, the old file is copied, then written in place, or renamed over."""
    lock = note.with_name(".#note.md")
    lock.symlink_to("somebody@somewhere.1234")
    shutil.copy2(note, note.with_name("note.md~"))
    note.write_text("new")
    lock.unlink()


def exchanged(note):
    """What some sync tools do: a link to the new file takes the name."""
    note.with_name("incoming").write_text("new")
    note.unlink()
    os.link(note.with_name("incoming"), note)
    note.with_name("incoming").unlink()


def by_sed(note):
    """Sed -i, itself."""
    subprocess.run(["sed", "-i", "s/.*/new/", str(note)], check=True)


def by_vim(note):
    """Vim itself, as far as it is here."""
    if shutil.which("vim") is None:
        pytest.skip("no vim here")
    command = ["vim", "-Nu", "NONE", "-es", "-c", "%s/.*/new/", "-c", "wq", str(note)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "save",
    [truncated, protected, os.utime, nameless, linked, by_a_pipe, with_lock, exchanged, by_sed, by_vim],
    ids=lambda f: f.__name__,
)
def test_each_way_to_save_names_the_note(root, save):
    """Others are random steps of `test_watch_model`."""
    (root.parent / "outside.md").write_text("text")
    note = root / "note.md"
    note.write_text("old")
    assert watched_during(root, lambda: save(note)) & {"note.md", "new.md"}


def test_reading_names_nothing(root):
    (root / "a.md").write_text("text")

    def change():
        (root / "a.md").read_text()
        assert list(root.iterdir())

    assert watched_during(root, change) == set()
