"""Readers of the memory that coding agents keep in Markdown, each file or section with its project.

Claude Code has a folder for each project (`~/.claude/projects/PROJECT/memory/`), Gemini CLI as well, and
`~/.gemini/GEMINI.md` for all projects. Codex has one folder: summaries of single sessions, a `MEMORY.md`
whose sections name their projects, and a `memory_summary.md` about all of them. Cursor's rules are in the
project itself. A project that nothing names for certain is not taken for the one that is asked for: its text
would be recalled where it does not belong.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

from memd.fsio import FOLDER
from memd.imports.conversation import ForeignNote, Problems, text
from memd.imports.jsonl import ClientFile, below, objects, regular, visible
from memd.imports.memory_folder import Note, reader

EVERY_PROJECT = "all"  # the project of a page that the client shows in each
SEVERAL_PROJECTS = "several"  # of a page about projects that cannot be told apart

SECTIONS = "MEMORY.md"  # Codex's file of sections
# Of one file, each a page: writing one durably takes some ms, and memory of so many is a broken file.
MAX_SECTIONS = 2_000
TOO_MANY = f"has more than {MAX_SECTIONS:,} sections, and the rest are left out: divide or shorten the file"

Projects = tuple[str, ...]

_FOLDERS = frozenset({"memory", "memories", ".cursor"})  # names of the folders that hold such files
_OTHER = re.compile(r"[^a-zA-Z0-9]")
_MAX_NAME = 200  # characters of the name of a folder of Claude Code's; a longer one is cut and gets a hash
_RECORDS = 100  # of a session, in which its folder is looked for; it is in one of the first
_ROOT_BYTES = 8 * 1024  # of a file with one path
_RULES_DEPTH = 4  # folders of a project below which its rules are looked for; arbitrary
_PASSED_OVER = frozenset({"node_modules", "venv"})

_CWD = re.compile(r"^cwd: +(\S.*)$", re.MULTILINE)
_APPLIES_TO = re.compile(r"^applies_to:.*?\bcwd=([^;\n]*[^;\s])", re.MULTILINE)
_GROUP = re.compile(r"^# +Task Group: *(\S.*)$", re.MULTILINE)
_HEAD_CHARS = 2_000  # of a summary, in which its folder is named
# Cursor's patterns are no YAML: an asterisk at the start of a value is an alias there.
_GLOBS = re.compile(r"\A(---[ \t]*\r?\n(?:(?!---)[^\n]*\n)*?globs:[ \t]*)([^\s\"'\[][^\r\n]*?)([ \t]*\r?\n)")


def codex_folders() -> list[Path]:
    """Return the folder of Codex's memory."""
    return [Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "memories"]


def gemini_folders() -> list[Path]:
    """Return Gemini CLI's file for all projects, and the folder of those of single projects."""
    home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
    return [home / "GEMINI.md", home / "tmp"]


def files_of_projects(path: Path) -> Iterator[Path]:
    """Yield the memory files of a folder of projects or of a project."""
    own = path if path.name == "memory" else path / "memory"
    for memory in [own] if own.is_dir() else sorted(path.glob("*/memory")):
        if memory.is_symlink():
            yield memory  # a path that is refused by its name, without a scan
        else:
            yield from visible(memory, "*.md")


def gemini_files(path: Path) -> Iterator[Path]:
    """Yield the memory files of Gemini CLI, without drafts of skills, which are instructions."""
    for found in files_of_projects(path):
        if "skills" not in found.parts[len(path.parts) :]:
            yield found


def codex_files(path: Path) -> Iterator[Path]:
    """Yield the files of Codex's memory without `raw_memories.md`, from which the others are made."""
    yield from (one for name in (SECTIONS, "memory_summary.md") if (one := path / name).is_file())
    yield from visible(path / "rollout_summaries", "*.md")


def cursor_files(path: Path) -> Iterator[Path]:
    """Yield the rules of a project and of its folders."""
    for folder, names, _ in os.walk(path):
        here = Path(folder)
        if len(here.relative_to(path).parts) >= _RULES_DEPTH:
            names.clear()
        names[:] = sorted(name for name in names if name[:1] != "." and name not in _PASSED_OVER)
        if (rules := here / ".cursor" / "rules").is_dir():
            yield from [rules] if rules.is_symlink() else below(rules, "*.mdc")


def claude_code_documents(wanted: Path) -> Callable[..., Iterator[ForeignNote]]:
    """Return the reader of Claude Code's memory for an import about the project *wanted*."""
    folders = cache(lambda project: _folders_of(project, wanted))
    return reader(lambda note, _: [note.document("claude-code", folders(_folder_of(note.path).parent))])


def _of_codex(note: Note, problems: Problems) -> Iterator[ForeignNote]:
    if note.path.name != SECTIONS:
        said = _CWD.search(note.text[:_HEAD_CHARS])
        yield note.document("codex", (said[1].strip(),) if said else (SEVERAL_PROJECTS,))
        return
    yield from islice(_sections(note), MAX_SECTIONS)
    if len(_GROUP.findall(note.text)) > MAX_SECTIONS:
        problems.add(str(note.path), TOO_MANY, part=True)


codex_documents = reader(_of_codex)


def gemini_documents(wanted: Path) -> Callable[..., Iterator[ForeignNote]]:
    """Return the reader of Gemini CLI's memory for an import about the project *wanted*."""

    def projects(path: Path) -> Projects:
        is_for_all = path.name == "GEMINI.md" and path.parent.name == ".gemini"
        return (EVERY_PROJECT,) if is_for_all else _gemini_project(_folder_of(path).parent, wanted)

    return reader(lambda note, _: [note.document("gemini", projects(note.path))])


def _of_cursor(note: Note, _: Problems) -> Iterator[ForeignNote]:
    quoted = _GLOBS.sub(lambda found: f"{found[1]}{json.dumps(found[2])}{found[3]}", note.text)
    yield replace(note, text=quoted).document("cursor", (str(_folder_of(note.path).parent.absolute()),))


cursor_documents = reader(_of_cursor)


def is_gone(file: Path) -> bool:
    """Return whether a file was deleted; not if its memory folder is away or cannot be listed."""
    folder = _folder_of(file)
    try:
        opened = os.open(folder, FOLDER)
    except OSError:
        return False
    try:  # relative to the open folder, which may be moved away at any moment
        os.stat(file.relative_to(folder), dir_fd=opened, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    finally:
        os.close(opened)
    return False


def _folder_of(file: Path) -> Path:
    """Return the memory folder of a file: the nearest one of such a name, or the one that it is in."""
    return next((folder for folder in file.parents if folder.name in _FOLDERS), file.parent)


def _folders_of(project: Path, wanted: Path) -> Projects:
    """Return the folders that share a folder of Claude Code's, whose name fits several.

    Its sessions name them. Without sessions the name is compared with the wanted one only:
    `-home-ada-notes-old` may be a folder in `notes`, or another one beside it.
    """
    folders: dict[str, None] = {}
    for session in below(project, "*.jsonl") if project.is_dir() else ():
        if session.parent == project:
            with suppress(OSError):
                records = islice(objects(ClientFile(session, project)), _RECORDS)
                found = (text(record.get("cwd")) for record in records)
                folders |= dict.fromkeys(islice((one for one in found if _is_name_of(project.name, one)), 1))
    if folders:
        return tuple(folders)
    return (str(wanted),) if _is_name_of(project.name, str(wanted)) else (project.name,)


def _is_name_of(name: str, folder: str) -> bool:
    """Return whether Claude Code calls a folder by *name*."""
    # JavaScript counts a character above U+FFFF twice.
    full = _OTHER.sub(lambda found: "--" if found[0] > "\uffff" else "-", folder)
    return full == name or (len(full) > _MAX_NAME and name.startswith(f"{full[:_MAX_NAME]}-"))


def _gemini_project(place: Path, wanted: Path) -> Projects:
    """Return the project of a folder of Gemini CLI's, which a file in it names; its older name is a hash."""
    with suppress(OSError, UnicodeDecodeError), regular(place / ".project_root", place) as stream:
        if root := stream.read(_ROOT_BYTES).decode().strip():
            return (root,)
    is_wanted = hashlib.sha256(os.fsencode(wanted)).hexdigest() == place.name
    return (str(wanted) if is_wanted else place.name,)


def _sections(note: Note) -> Iterator[ForeignNote]:
    """Yield the sections of Codex's MEMORY.md; each names the folder to which it applies."""
    starts = [found.start() for found in _GROUP.finditer(note.text)]
    taken = {found[1].strip() for found in _GROUP.finditer(note.text)}
    seen: dict[str, int] = {}
    for start, end in zip([0, *starts], [*starts, len(note.text)], strict=True):
        section = note.text[start:end]
        if not section.strip():
            continue
        named, said = _GROUP.match(section), _APPLIES_TO.search(section)
        title = named[1].strip() if named else ""
        which = title
        while which in seen or (which != title and which in taken):  # "A (2)" may be a heading of its own
            seen[title] += 1
            which = f"{title} ({seen[title]})"
        seen[which] = 1
        projects = (said[1],) if said else (SEVERAL_PROJECTS,)
        yield Note(note.path, section, note.changed, f"#{which}" if named else "").document("codex", projects)
