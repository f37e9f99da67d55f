"""The blocks of the README and of the pages in docs/ do what they promise, pasted as they are."""

import os
import re
import shutil
import subprocess
import sys
from datetime import datetime
from html import unescape
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of
from patience import ran

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = (REPOSITORY / "docs/commands.md").read_text(encoding="utf-8")
PAGES = README + "".join(
    (REPOSITORY / f"docs/{page}.md").read_text(encoding="utf-8")
    for page in ("editors", "evaluation", "python")
)


def block(language: str, *words: str) -> str:
    """Return the one block in *language* that holds all of *words*; two pages may show the same one."""
    blocks = re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGES)
    found = {text for text in blocks if all(word in text for word in words)}
    assert len(found) == 1, f"{len(found)} {language} blocks hold {words}"
    return found.pop()


def has_quickfix(vim: str) -> bool:
    """Say whether *vim* is there and has quickfix lists; Debian's vim-tiny has none."""
    if shutil.which(vim) is None:
        return False
    version = ran([vim, "--version"], check=True).stdout
    return "-quickfix" not in version


@pytest.fixture
def bin_dir(tmp_path):
    """A folder with a memctl of this tree, as an installation has one."""
    folder = folder_of(tmp_path / "bin")
    script = folder / "memctl"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m memctl "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A running daemon with the sample workspace, its notes as old as the example on top says."""
    day = re.search(r"\d{4}-\d\d-\d\d", block("console", "why do we not use kubernetes"))
    noon_s = datetime.fromisoformat(f"{day[0]}T12:00").timestamp()
    home = tmp_path_factory.mktemp("readme")
    root = home / "notes"
    shutil.copytree(REPOSITORY / "tests/sample", root)
    for note in root.rglob("*.md"):
        os.utime(note, (noon_s, noon_s))
    daemon = Daemon(home)
    daemon.start()
    yield daemon, daemon.add(root)
    daemon.close()


@pytest.fixture
def user(sample, bin_dir):
    """Run a program as a user who has memctl on the PATH and stands in the sample workspace."""
    daemon, root = sample

    def run(*argv: str, cwd: str = root) -> subprocess.CompletedProcess[str]:
        environment = daemon.environment | {
            "PATH": f"{bin_dir}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
        }
        return ran(argv, env=environment, cwd=cwd, stdin=subprocess.DEVNULL)

    run.root = root
    return run


def test_the_first_command_finds_the_decision(tmp_path):
    """The command on top and the one that takes it all away, without a terminal.

    Venv and pip do nothing here, because tests are offline.
    """
    command = block("sh", "memctl init", "why do we not use kubernetes")
    clone = tmp_path / "clone"
    (clone / ".venv/bin").mkdir(parents=True)
    shutil.copytree(REPOSITORY / "tests/sample", clone / "tests/sample")
    for program in ("python", "memctl"):
        module = "" if program == "python" else "-m memctl"
        script = clone / ".venv/bin" / program
        script.write_text(f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" {module} "$@"\n')
        script.chmod(0o755)
    stand_ins = tmp_path / "bin"  # what would ask a package index: a new environment, and pip
    stand_ins.mkdir()
    for program in (stand_ins / "python3", clone / ".venv/bin/pip"):
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
    daemon = Daemon(tmp_path)
    environment = daemon.environment | {"PATH": f"{stand_ins}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    try:
        done = ran(["sh", "-c", command], env=environment, cwd=clone)
        assert done.returncode == 0, done.stderr
        assert "made a workspace, 65 sources found" in done.stdout
        hits = re.findall(r"(?m)^ *\d+  .*?(/\S+):\d+  \d\.\d\d", done.stdout)
        assert hits[0].endswith("decisions/no-kubernetes.md")
        removal = re.search(r"goes away with `([^`]+)`", README)
        gone = ran(["sh", "-c", removal[1]], env=environment, cwd=clone, stdin=subprocess.DEVNULL)
        assert gone.returncode == 0, gone.stderr
        assert not daemon.state.exists()
        assert not daemon.listens()
    finally:
        daemon.close()


def test_the_example_on_top_is_what_memctl_prints(user):
    """The first hit of the console block; its score may differ a little, as processors round."""
    command, shown = block("console", "why do we not use kubernetes").split("\n", 1)
    printed = user("sh", "-c", f"{command.removeprefix('$ ')} 2>&1").stdout
    score = r"\b0\.\d\d\b"
    assert re.sub(score, "S", printed).startswith(re.sub(score, "S", shown))
    promised, given = (float(re.search(score, text)[0]) for text in (shown, printed))
    assert given == pytest.approx(promised, abs=0.03)


def test_the_pictures_show_what_memctl_prints(user):
    """The hits of the search on the picture, in their order; pictures load nothing from elsewhere."""
    pictures = {path.stem: shown(path) for path in (REPOSITORY / "docs/pictures").glob("*.svg")}
    command = re.search(r"\$ memctl (search .+?) {2,}", pictures["search"])
    printed = user("memctl", *command[1].split()).stdout
    place = r"\b[\w/-]+\.md\b"
    assert re.findall(place, pictures["search"]) == re.findall(place, printed)
    found = user("memctl", "search", "--files", "how do we deploy").stdout.splitlines()
    assert "how do we deploy" in pictures["find"]
    assert found[0] in pictures["find"]


def shown(picture: Path) -> str:
    """Return the text of an SVG picture; a line of a terminal ends with two spaces."""
    svg = picture.read_text(encoding="utf-8")
    assert not re.search(r"(?i)(?:url\(|href=)[\"']?https?:", svg), f"{picture.name} loads something"
    texts = [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
    return "".join(text.replace("\n", "  ") for text in texts).replace("\xa0", " ")


def test_the_python_block_prints_hits(user):
    code = block("python", "limit=5")
    assert '"/home/me/notes"' in code
    done = user(sys.executable, "-c", code.replace("/home/me/notes", user.root))
    assert done.returncode == 0, done.stderr
    assert re.match(r"0\.\d+ research/brca1\.md 1\n", done.stdout)


def test_the_asyncio_block_asks_two_things_at_once(user):
    ask = "print([len(answer['hits']) > 0 for answer in asyncio.run(both())])"
    code = block("python", "AsyncClient.connect()") + ask
    done = user(sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (0, "[True, True]\n"), done.stderr


@pytest.mark.parametrize("without", [(), ("-u", "XDG_RUNTIME_DIR")])
def test_the_lua_block_prints_hits_in_neovim(user, sample, tmp_path, without):
    """The socket itself, without a plugin; also where no variable says where it is.

    There memctl looks in the folder of temporary files first, where another daemon of this user may listen.
    """
    if shutil.which("nvim") is None:
        pytest.skip("nvim is not installed: apt install neovim")
    script = tmp_path / "readme.lua"
    script.write_text(block("lua", "sockconnect"))
    editor = ["nvim", "--headless", "--clean", "-n", "-c", f"luafile {script}", "-c", "qall!"]
    done = user("env", *without, f"TMPDIR={sample[0].runtime}", *editor)
    printed = done.stdout + done.stderr
    assert re.match(r"research/brca1\.md 1 0\.\d+", printed.strip()), printed


@pytest.mark.parametrize("editor", ["vim", "nvim"])
def test_the_vim_block_fills_the_quickfix_list(user, tmp_path, editor):
    """:grep with the two settings, from a folder below the root: each entry opens its file at its line."""
    if not has_quickfix(editor):
        pytest.skip(f"there is no {editor} with quickfix lists: apt install vim neovim")
    script, listed = tmp_path / "readme.vim", tmp_path / "quickfix"
    script.write_text(
        f"{block('vim', 'grepprg')}"
        "silent grep! breast cancer gene\n"
        "let entry = getqflist()[0]\n"
        "cfirst\n"
        f"call writefile([expand('%:p'), line('.'), entry.valid, entry.text], '{listed}')\n"
        "qall!\n"
    )
    quiet = ["--headless", "--clean", "-n"] if editor == "nvim" else ["-es", "-N", "-u", "NONE", "-n"]
    done = user(editor, *quiet, "-S", str(script), cwd=f"{user.root}/people")
    assert listed.exists(), done.stdout + done.stderr
    path, line, valid, text = listed.read_text().splitlines()
    assert (path, line, valid) == (f"{user.root}/research/brca1.md", "1", "1")
    assert text == "BRCA1 mutation analysis"


def test_the_golden_file_passes_the_gate_that_is_shown_with_it(user, tmp_path):
    (tmp_path / "golden.jsonl").write_text(block("json", "breast cancer gene"))
    command = block("sh", "memctl eval").splitlines()[-1]
    done = user("sh", "-c", f"{command} -w {user.root}", cwd=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "2 questions of golden.jsonl" in done.stdout
    assert (tmp_path / "quality.svg").exists()


def test_every_command_that_the_page_names_exists(user):
    named = set(re.findall(r"`([a-z]+)[ `]", COMMANDS.split("| command |")[1].split("\nExit codes")[0]))
    commands = set(user("memctl", "--help").stdout.split())
    assert {"search", "recall", "add", "get", "index", "status", "mcp"} <= named & commands
    row = next(line for line in COMMANDS.splitlines() if line.startswith("| `search WORDS`"))
    options = user("memctl", "search", "--help").stdout
    assert [option for option in re.findall(r"--[a-z-]+", row) if option not in options] == []


def test_the_error_codes_of_the_protocol_are_those_that_exit_codes_know():
    from memctl.exits import OF_CODE

    page = (REPOSITORY / "docs/protocol.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?m)^\| `(MEMD_[A-Z_]+)`", page.split("\n## Codes")[1]))
    assert listed == set(OF_CODE) - {"MEMD_RUNNING"}  # which is the exit of a second daemon, on no wire


def test_the_readme_is_short():
    assert len(README.split()) <= 1300
    assert len(README.split("## Try it")[0].split()) <= 150


@pytest.mark.parametrize(
    "page", ["../README.md", *sorted(path.name for path in (REPOSITORY / "docs").glob("*.md"))]
)
def test_every_link_between_pages_leads_somewhere(page):
    path = REPOSITORY / "docs" / page
    broken = []
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
    for name, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", text):
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{name}#{anchor}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of *page*, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_nothing_says_to_install_memd_by_its_bare_name():
    """On the public index these names are other people's packages: ours is memd-search."""
    root = Path(__file__).parent.parent
    bare = re.compile(
        r"\b(?:pipx?|uv|uvx)\s+(?:(?:pip|tool|install|uninstall|upgrade|run|add|-\S+)\s+)*['\"]?mem(?:d|ctl)(?![\w/.-])"
    )
    suffixes = {".md", ".py", ".lua", ".toml", ".service", ".socket", ".txt", ".vim", ".sh"}
    listed = ran(["git", "ls-files", "-z"], cwd=root, check=True)
    faults = []
    for name in listed.stdout.split("\0"):
        path = root / name
        if (path.suffix in suffixes or not path.suffix) and path.is_file():
            text = path.read_text(errors="replace")
            if "pip" in text or "uv" in text:  # the pattern alone takes 2 s
                faults += [f"{name}: {found[0]}" for found in bare.finditer(text)]
    assert faults == []
