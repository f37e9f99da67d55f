"""Shells offer what memctl takes. Each script in its own shell: zsh and fish where they are there."""

import os
import pty
import random
import re
import select
import shutil
import subprocess
import sys
import time

import pytest
from daemon_process import folder_of
from patience import PATIENCE, ran
from tests_support import many

from memctl import exits
from memctl.__main__ import main
from memctl.commands import COMMANDS
from memctl.commands.completions import SCRIPTS, SHELLS, offered

# Completes command lines as bash would, each at its last word, and prints an offer a line. Each is given as
# the number of its words and then these.
IN_BASH = """
set -u
source "$1"
shift
complete -p memctl > /dev/null
while (($#)); do
  COMP_WORDS=(memctl "${@:2:$1}")
  COMP_CWORD=$1
  COMP_LINE=${COMP_WORDS[*]}
  COMP_LINE=${COMP_LINE// =/=}
  COMP_LINE=${COMP_LINE//= /=}
  shift $(($1 + 1))
  COMPREPLY=()
  _memctl memctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\\n' "${COMPREPLY[@]}"
  printf '\\f'
done
"""
# A memctl that completes as memctl does, of notes what is in a file or else of notes with a status, and
# prints what else it gets.
MEMCTL = f"""#!{sys.executable} -P
import os, pathlib, sys
from memctl.__main__ import main
from memctl.commands import completions

def of_notes(typed, key):
    offers = pathlib.Path(os.environ["HOME"], "offer")
    if offers.exists():
        return offers.read_text().splitlines()
    condition, is_value, _ = typed.rpartition("=")
    found = [f"{{condition}}={{one}}" for one in ("draft", "published")] if is_value else ["status="]
    return [one for one in found if one.startswith(typed)]

completions.of_notes = of_notes
if sys.argv[1] == "completions" and "--" in sys.argv:
    sys.exit(main())
print("GOT", *(f"{{word}}\\x1f" for word in sys.argv[1:]), "END", sep="")
"""
# shell: how it is started, and how it begins to complete.
TYPING = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ":"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D"),
    "fish": (["fish", "--no-config", "-i"], "true"),
}


@pytest.fixture
def files(tmp_path, tmp_path_factory, monkeypatch):
    """Such a memctl, and a current folder with files, some of names that a shell could take for more."""
    program = tmp_path_factory.mktemp("bin") / "memctl"
    program.write_text(MEMCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes and *").mkdir()
    folder_of(tmp_path, {"note.md": "", "nota bene $HOME.md": "", "x: y.md": "", "a=b@c.md": ""})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def in_bash(files):
    """Return a function: what bash offers at the end of each command line, of which the words are given."""

    def complete(*lines):
        words = [word for line in lines for word in (str(len(line)), *line)]
        script = str(SCRIPTS / "memctl.bash")
        done = ran(["bash", "--norc", "--noprofile", "-c", IN_BASH, "test", script, *words])
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return [offers.splitlines() if offers != "\n" else [] for offers in done.stdout.split("\f")[:-1]]

    return complete


def test_the_command_prints_the_script(capsys):
    for shell in SHELLS:
        assert main(["completions", shell]) == exits.OK
        assert f"Completion of memctl for {shell}" in capsys.readouterr().out
    assert main(["completions", "tcsh"]) == exits.USAGE
    assert "fish" in capsys.readouterr().err


def test_every_command_and_its_options_are_offered():
    assert [*offered([], "").offers] == [*COMMANDS, "help"]
    assert [*offered(["help"], "").offers] == [*COMMANDS]
    for name in COMMANDS:
        assert "--help" in offered([name], "-").offers, name


FITS = [
    (["sea"], ["search"]), (["--v"], ["--version"]), (["nonsense", ""], []),
    (["search", "--exp"], ["--explain"]), (["search", "--mode", ""], ["hybrid", "keyword", "vector"]),
    (["search", "--mode", "=", "hy"], ["hybrid"]), (["search", "--mode=hy"], ["--mode=hybrid"]),
    (["search", "--mode", "="], ["hybrid", "keyword", "vector"]),
    (["search", "--mode", "=", "hybrid", "--fus"], ["--fusion"]),
    (["search", "--limit", "--mo"], []), (["search", "words", "and", "--mo"], ["--mode"]),
    (["search", "--", "--mo"], []), (["search", "status", ""], []),
    (["workspaces", "re"], ["remove"]), (["workspaces", "remove", "--j"], ["--json"]),
    (["workspaces", "remove", "-x", "list", ""], []), (["service", "install", "st"], []),
    (["editors", ""], ["nvim", "vscode"]), (["editors", "nvim", ""], []),
    (["completions", ""], ["bash", "zsh", "fish"]), (["status", "--watch", "--js"], ["--json"]),
    (["search", "--field", "st"], ["status="]), (["search", "--field=st"], ["--field=status="]),
    (["search", "--field", "status", "="], ["draft", "published"]),  # what stands before "=" stays
    (["search", "--field", "status", "=", "pu"], ["published"]),
    (["search", "--field", "status", "=", "draft", "--fus"], ["--fusion"]),
    (["search", "--field", "status!", "=", "pu"], ["published"]),
    (["search", "--field", "'status>=pu"], ["status>=published"]),
    (["search", "--field", "status\\>", "=", "pu"], ["published"]),
]  # fmt: skip


def test_bash_offers_what_fits_where_the_cursor_is(in_bash):
    found = in_bash(*(typed for typed, _ in FITS))
    assert [(typed, offers) for (typed, _), offers in zip(FITS, found, strict=True)] == FITS


def test_bash_offers_files_and_folders_where_they_go(in_bash):
    everything = ["nota bene $HOME.md", "note.md", "notes and *"]
    wanted = [
        (("search", "-w", "not"), ["notes and *"]), (("init", ""), ["notes and *"]),
        (("get", "not"), everything), (("search", "--path", "not"), everything),
        (("why", "--workspace", "=", ".", "not"), everything), (("why", "note.md", "not"), []),
        (("eval", "--golden=note"), ["--golden=note.md", "--golden=notes and *"]),
    ]  # fmt: skip
    found = map(sorted, in_bash(*(typed for typed, _ in wanted)))
    assert [(typed, offers) for (typed, _), offers in zip(wanted, found, strict=True)] == wanted


@pytest.fixture(params=TYPING)
def typed(request, files):
    """Return a function: type a line with tabs in a real shell on a terminal, and see what memctl gets."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: apt install {shell}")
    command, beginning = TYPING[shell]
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        command,
        preexec_fn=lambda: os.login_tty(terminal),  # noqa: PLW1509 - fish wants it, no thread runs
        pass_fds=[terminal],
        env={"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(files), "INPUTRC": "/dev/null"},
    )
    os.close(terminal)

    def read_until(pattern):
        drawn = ""
        stop = time.monotonic() + 20 * PATIENCE
        while not (found := re.search(pattern, drawn)):
            assert select.select([controller], [], [], max(0, stop - time.monotonic()))[0], drawn
            drawn += os.read(controller, 65536).decode()
        return found

    def run(line):
        os.write(controller, line.encode())
        return read_until("GOT(.*)\x1fEND")[1].split("\x1f")

    # The shell shows what it is told: the word that is waited for must not stand in there.
    os.write(controller, f"{beginning}\nsource {SCRIPTS}/memctl.{shell}; echo 'NO''W'\n".encode())
    read_until("NOW")
    yield run
    process.kill()
    process.wait()
    os.close(controller)


def test_a_tab_in_a_real_shell_completes_the_word(typed):
    assert typed("memctl simi\tnota\t\n") == ["similar", "nota bene $HOME.md"]
    assert typed("memctl search --fus\t r\t --vim\t\n") == ["search", "--fusion", "rrf", "--vimgrep"]
    assert typed("memctl search --mode=k\t\n") == ["search", "--mode=keyword"]
    removed = typed("memctl workspaces rem\t notes\t\n")
    assert [word.rstrip("/") for word in removed] == ["workspaces", "remove", "notes and *"]
    assert typed("memctl get x:\\ \t\n") == ["get", "x: y.md"]
    assert typed("memctl get --workspace=. ./a=b@\t\n") == ["get", "--workspace=.", "./a=b@c.md"]
    assert typed("memctl help workspa\t\n") == ["help", "workspaces"]
    assert typed("memctl completions z\t\n") == ["completions", "zsh"]
    assert typed("memctl search note\t\n") == ["search", "note"]
    assert typed("memctl log --foll\t\n") == ["log", "--follow"]


def fish_offers(*typed):
    """Return what fish offers at the end of each command line."""
    asked = f"source {SCRIPTS}/memctl.fish; for typed in $argv; complete -C $typed; printf '\\f'; end"
    done = ran(["fish", "--no-config", "-c", asked, *typed])
    assert (done.returncode, done.stderr) == (0, "")
    offers = done.stdout.split("\f")[:-1]
    return [[line.partition("\t")[0] for line in lines.split("\n")[:-1]] for lines in offers]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed: apt install fish")
def test_fish_offers_what_fits(files):
    wanted = [
        ("memctl ", sorted([*COMMANDS, "help"])), ("memctl sea", ["search"]),
        ("memctl mcp -", ["--help", "--workspace", "-h", "-w"]), ("memctl search --mod", ["--mode"]),
        ("memctl search --mode ", ["hybrid", "keyword", "vector"]), ("memctl tatus", ["status"]),
        ("memctl search --fusion=", ["--fusion=rrf", "--fusion=weighted"]),
        ("memctl workspaces ", ["add", "configure", "list", "move", "remove"]),
        ("memctl workspaces remove --f", []), ("memctl workspaces add --f", ["--force"]),
        ("memctl search index --re", []), ("memctl init no", ["notes and */"]),
        ("memctl search no", []), ("memctl get note", ["note.md", "notes and */"]),
        ("memctl eval --golden=note.", ["--golden=note.md"]),
    ]  # fmt: skip
    found = map(sorted, fish_offers(*(typed for typed, _ in wanted)))
    assert [(typed, offers) for (typed, _), offers in zip(wanted, found, strict=True)] == wanted


HOSTILE = [
    "dra ft", "a$(touch ran)", "b`touch ran`", "c;touch ran", "d&touch ran", "e|touch ran", "f'x", 'g"x',
    "h<ran", "i*",
]  # fmt: skip
_SIGNS = [
    *"$`;&|<>(){}[]*?!#~'\"\\^%=:@, ", "$(touch ran)", "`touch ran`", ";touch ran;", "(touch ran)", "\n",
]  # fmt: skip


def generated(seed):
    """Return a text of signs that mean something to a shell."""
    chosen = random.Random(seed).choices(_SIGNS, k=6)
    return f"v{''.join(chosen)}".replace("\n", "")


def test_a_notes_text_that_a_tab_completes_runs_nothing(typed, files):
    """Values and keys, anybody's text, become one word of what memctl gets."""
    for value in HOSTILE:
        (files / "offer").write_text(f"status={value}\n")
        assert typed("memctl search --field status=\t x\n")[:3] == ["search", "--field", f"status={value}"]
        (files / "offer").write_text(f"k{value}=\n")
        assert typed("memctl search --field k\t\n")[:3] == ["search", "--field", f"k{value}="]
        (files / "offer").write_text(f"t{value}\n")
        assert typed("memctl search --tag t\t x\n")[:3] == ["search", "--tag", f"t{value}"]
    assert not (files / "ran").exists()


def test_generated_text_that_a_tab_completes_runs_nothing(typed, files):
    for seed in range(many(25)):
        (files / "offer").write_text(f"status={generated(seed)}\n")
        assert typed("memctl search --field status=\t x\n")[0] == "search", generated(seed)
        (files / "offer").write_text(f"{generated(seed)}=\n")
        assert typed("memctl search --field v\t\n")[0] == "search", generated(seed)
    assert not (files / "ran").exists()


def test_a_hostile_path_that_a_tab_completes_runs_nothing(typed, files):
    for value in [*HOSTILE, *map(generated, range(many(15)))]:
        note = files / f"p{value}.md"
        note.write_text("")
        assert typed("memctl get p\t\n")[:2] == ["get", note.name]
        note.unlink()
    assert not (files / "ran").exists()
