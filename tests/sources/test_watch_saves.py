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


def test_names_that_look_the_same_are_two_names(root):
    (root / "\u00c4.md").write_text("text")

    assert watched_during(root, lambda: (root / "A\u0308.md").write_text("text")) == {"A\u0308.md"}


async def test_a_truncated_file_is_named(root):
    """Nobody opens or closes a file that is cut by its name."""
    (root / "a.md").write_text("long text")
    async with armed(root) as watched:
        os.truncate(root / "a.md", 4)
        await watched.until_named(root / "a.md")


def in_place(note):
    """VS Code, nano, echo: the file itself is emptied and written."""
    note.write_text("new")


def renamed_over(note):
    """VS Code and agents, atomic: another file takes the name."""
    note.with_name(".note.md.tmp").write_text("new")
    note.with_name(".note.md.tmp").replace(note)


def with_backup(note):
    """Vim with backupcopy=no: the old file gets out of the way, the new one is made; a probe before."""
    note.with_name("4913").touch()
    note.with_name("4913").unlink()
    note.rename(note.with_name("note.md~"))
    note.write_text("new")
    note.chmod(0o644)
    note.with_name("note.md~").unlink()


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
    [in_place, renamed_over, with_backup, with_lock, exchanged, by_sed, by_vim],
    ids=lambda f: f.__name__,
)
def test_each_way_to_save_names_the_note(root, save):
    note = root / "note.md"
    note.write_text("old")

    assert "note.md" in watched_during(root, lambda: save(note))
    assert note.read_text().strip() == "new"


def test_a_hard_link_is_named_at_once(root, tmp_path):
    """Nobody opens a file that gets a second name: the new name is named without waiting."""
    (root / "a.md").write_text("text")
    (tmp_path / "b.md").write_text("text")

    def change():
        os.link(root / "a.md", root / "second.md")
        os.link(tmp_path / "b.md", root / "third.md")

    assert {"second.md", "third.md"} <= watched_during(root, change)


def test_a_link_whose_first_name_is_gone_is_named_at_once(root, tmp_path):
    """It looks like any file then, but for its content, which nobody wrote here."""
    (tmp_path / "first.md").write_text("text")

    def change():
        os.link(tmp_path / "first.md", root / "second.md")
        (tmp_path / "first.md").unlink()

    assert watched_during(root, change) == {"second.md"}


def test_a_nameless_file_that_gets_a_name_is_named_at_once(root):
    """A file made with O_TMPFILE is written before it has a name."""

    def change():
        try:
            descriptor = os.open(root, os.O_TMPFILE | os.O_WRONLY)
        except OSError:
            pytest.skip("no O_TMPFILE on this file system")
        os.write(descriptor, b"text")
        # With a dir_fd, or Python would not follow the link.
        os.link(f"/proc/self/fd/{descriptor}", root / "note.md", src_dir_fd=descriptor, follow_symlinks=True)
        os.close(descriptor)

    assert "note.md" in watched_during(root, change)


def test_links_and_what_is_no_file_are_named_at_once(root):
    (root / "a.md").write_text("text")

    def change():
        (root / "link.md").symlink_to("a.md")
        (root / "dangling.md").symlink_to("nowhere.md")
        os.mkfifo(root / "pipe.md")

    assert watched_during(root, change) == {"link.md", "dangling.md", "pipe.md"}


def test_a_touched_or_protected_file_is_named(root):
    """A file that may be read only now must be looked at."""
    (root / "a.md").write_text("text")
    (root / "b.md").write_text("text")

    def change():
        (root / "a.md").chmod(0o600)
        os.utime(root / "b.md")

    assert watched_during(root, change) == {"a.md", "b.md"}


def test_reading_names_nothing(root):
    (root / "a.md").write_text("text")

    def change():
        (root / "a.md").read_text()
        assert list(root.iterdir())

    assert watched_during(root, change) == set()
