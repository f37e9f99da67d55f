import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from in_the_box import BOX, in_the_box

from memctl import service, systemd
from memctl.client import Unreachable
from memctl.protocol import API_LEVEL
from memctl.service import memd_command

HERE = Path(__file__).resolve().parent
TREE = HERE.parent

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
needs_box = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/lib/systemd/systemd").exists(),
    reason="systemd-box needs root and systemd: run as root after apt-get install systemd",
)

# A user's life with the service. Words in capitals are printed as each step is through.
LIFE = """
set -eu
place=$XDG_RUNTIME_DIR/memd
memctl() {{ {python} -m memctl "$@"; }}
answers() {{ for i in $(seq 20); do memctl ping && return; done; return 1; }}  # on a loaded machine, too
memctl service install
test "$(systemctl --user is-active memd.socket)" = active
stat -c 'MODE OF THE FOLDER %a' "$place"
stat -c 'MODE OF THE SOCKET %a' "$place/memd.sock"
test "$(systemctl --user is-active memd.service)" != active && echo NOT STARTED BEFORE IT IS NEEDED
answers && echo PING
cp -r tests/sample ~/notes && memctl init ~/notes
{find}
first=$(systemctl --user show -P MainPID memd.service)
kill -9 $first
answers && echo PING AFTER KILL
{find}
test "$(systemctl --user show -P MainPID memd.service)" != $first
{parse}
stat -c 'MODE OF THE FOLDER %a' "$place"
rm "$place/memd.sock"
answers && echo PING AFTER THE SOCKET WAS REMOVED
systemctl --user stop memd.service
test "$(systemctl --user is-active memd.socket)" = active && rm -r "$place"
answers && echo PING AFTER THE FOLDER WAS REMOVED
stat -c 'MODE OF THE FOLDER %a' "$place"
memctl stop
test "$(systemctl --user is-active memd.service)" = inactive && test ! -e "$place/memd.sock" && echo STOPPED
answers && echo PING AFTER STOP
memctl service uninstall
test ! -e ~/.config/systemd/user/memd.socket && test ! -e ~/.config/systemd/user/memd.service && echo REMOVED
for i in $(seq 600); do  # systemd forgets a unit when it comes to it
test -z "$(systemctl --user list-units --all --no-legend 'memd*')" && echo FORGOTTEN && break
sleep 0.1
done
"""
FOUND, PARSED = "FOUND BY MEANING", "PARSED IN A SANDBOX"
# A long note is parsed by another process; the unit allows it every limit that the kernel has.
PARSE = """{python} -c 'print("# Long" + 10_000 * " word")' > ~/notes/long.md
memctl sync --workspace ~/notes > ~/synced
memctl status --json | {python} -c '
import json, sys
from memd.sandbox import restrict
held = json.load(sys.stdin)["server"]["parser_sandbox"]
assert held == restrict(), held
print("{parsed}")'"""
# The hardened daemon reads, watches, embeds and answers: a fresh index, then the one that kill -9 left.
# A daemon that was just started answers by keyword until its model is loaded: hence the loop.
FIND = """for i in $(seq 600); do
memctl search --workspace ~/notes --json --limit 1 breast cancer gene | {python} -c '
import json, sys
answer = json.load(sys.stdin)
assert (answer["mode"], answer["degraded"]) == ("hybrid", []), answer
assert "BRCA1 mutation analysis" in answer["hits"][0]["snippet"], answer
print("{found}")' 2>/dev/null && break
sleep 0.1
done"""
STEPS = [
    "MODE OF THE FOLDER 700", "MODE OF THE SOCKET 600", "NOT STARTED BEFORE IT IS NEEDED", "PING", FOUND,
    "PING AFTER KILL", FOUND, PARSED, "MODE OF THE FOLDER 700", "PING AFTER THE SOCKET WAS REMOVED",
    "PING AFTER THE FOLDER WAS REMOVED", "MODE OF THE FOLDER 700", "STOPPED", "PING AFTER STOP", "REMOVED",
    "FORGOTTEN",
]  # fmt: skip


# The service's user updates the package.
UPDATE = """
set -eu
mkdir ~/installed && cp -a memd memctl systemd pyproject.toml ~/installed
level() {{ sed -i "s/^API_LEVEL = [0-9]*/API_LEVEL = $1/" ~/installed/memctl/protocol.py; }}
memctl() {{ (cd ~ && PYTHONPATH=~/installed PYTHONDONTWRITEBYTECODE=1 {python} -P -m memctl "$@"); }}
find() {{ for i in $(seq 20); do
memctl search --no-wait --mode keyword --files -w ~/notes heron 2> ~/said | grep -q heron.md && return
done; return 1; }}
level {older}
memctl service install
mkdir ~/notes && echo 'The heron fishes.' > ~/notes/heron.md
for i in $(seq 20); do memctl init ~/notes && break; done
find && test ! -s ~/said
cat ~/.config/systemd/user/memd.* > ~/units
first=$(systemctl --user show -P MainPID memd.service)
level {newer}
find && test "$(systemctl --user show -P MainPID memd.service)" = $first && echo THE OLDER ONE ANSWERS
grep -q 'restart it: systemctl --user restart memd.service' ~/said && echo THE COMMAND IS SAID
$(sed -n 's/.*restart it: //p' ~/said)
find && test ! -s ~/said && echo THE NEW ONE ANSWERS
cat ~/.config/systemd/user/memd.* | cmp - ~/units && echo THE UNITS ARE THE SAME
memctl uninstall --purge --yes
left=$(command find ~/.config ~/.local "$XDG_RUNTIME_DIR" -name "*memd*" 2>/dev/null || true)
test -z "$left" && echo NOTHING IS LEFT || echo "left: $left"
"""
UPDATE_STEPS = [
    "THE OLDER ONE ANSWERS", "THE COMMAND IS SAID", "THE NEW ONE ANSWERS", "THE UNITS ARE THE SAME",
    "NOTHING IS LEFT",
]  # fmt: skip


# The units that memd 0.1.0 wrote, with this memd in the place of that.
FIRST_VERSION = """
set -eu
memctl() {{ {python} -m memctl "$@"; }}
units=~/.config/systemd/user
mkdir -p $units ~/.local/bin
cp tests/first_version/memd.service tests/first_version/memd.socket $units
printf '#!/bin/sh\\nPYTHONPATH=%s exec {python} -P -m memd "$@"\\n' "$PWD" > ~/.local/bin/memd
chmod 755 ~/.local/bin/memd
systemctl --user daemon-reload
systemctl --user enable --now memd.socket
for i in $(seq 20); do memctl ping && echo PING && break; done
test "$(systemctl --user is-active memd.service)" = active && echo STARTED BY ITS UNITS
mkdir ~/notes && echo 'The heron fishes.' > ~/notes/heron.md
memctl init ~/notes && memctl sync -w ~/notes
memctl search --mode keyword --files -w ~/notes heron | grep -q heron.md && echo IT SEARCHES
memctl service install
grep -q landlock_restrict_self $units/memd.service && memctl ping && echo REPLACED
memctl uninstall --purge --yes
left=$(find ~/.config "$XDG_RUNTIME_DIR" ~/.local/state -name "*memd*" 2>/dev/null || true)
test -z "$left" && echo NOTHING IS LEFT || echo "left: $left"
"""
FIRST_STEPS = ["PING", "STARTED BY ITS UNITS", "IT SEARCHES", "REPLACED", "NOTHING IS LEFT"]


def box(script, steps=STEPS):
    """Run a shell script in the box; return its output's lines that are steps."""
    return [line for line in in_the_box(script).splitlines() if line in steps]


@needs_box
def test_the_service_lives_under_a_real_systemd():
    find = FIND.format(python=sys.executable, found=FOUND)
    parse = PARSE.format(python=sys.executable, parsed=PARSED)
    assert box(LIFE.format(python=sys.executable, find=find, parse=parse)) == STEPS


@needs_box
def test_the_service_goes_on_after_an_update():
    script = UPDATE.format(python=sys.executable, older=API_LEVEL - 1, newer=API_LEVEL)
    assert box(script, UPDATE_STEPS) == UPDATE_STEPS


@needs_box
def test_the_units_of_the_first_version_start_this_memd():
    assert box(FIRST_VERSION.format(python=sys.executable), FIRST_STEPS) == FIRST_STEPS


@needs_box
def test_the_box_shows_nothing_of_the_machines_temporary_files():
    with NamedTemporaryFile(dir="/tmp") as outside:
        # The checkout itself may lie there.
        others = f"find /tmp -path {shlex.quote(str(Path.cwd()))} -prune -o -type f -print"
        script = f'test ! -e {outside.name} && test -z "$({others})" && echo STOPPED'
        assert box(script) == ["STOPPED"]
        assert Path(outside.name).exists()


@needs_box
def test_the_box_refuses_to_carry_in_all_of_tmp():
    """Else a systemd that cleans up would clean the machine's."""
    done = subprocess.run([str(BOX), "true"], capture_output=True, text=True, cwd="/tmp", check=False)
    assert done.returncode == 125
    assert "won't carry in all of /tmp" in done.stderr


@needs_systemd
def test_systemd_finds_no_fault_in_the_units(tmp_path, monkeypatch):
    """`systemd-analyze verify` prints nothing, also with spaces, percent signs and dollars in paths."""
    program = tmp_path / "ä 100% $HOME" / "memd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / '50% "state" $x'))
    (tmp_path / systemd.SOCKET).write_text(systemd.template(systemd.SOCKET))
    text = service._with_command(systemd.template(systemd.SERVICE), [str(program)])
    (tmp_path / systemd.SERVICE).write_text(text)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    command = [
        "systemd-analyze", "--user", "verify", str(tmp_path / systemd.SOCKET),
        str(tmp_path / systemd.SERVICE),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_service_has_nothing_that_breaks_it():
    """Each of these options was seen to delete the socket, move the state or keep the unit from starting."""
    lines = systemd.template(systemd.SERVICE).splitlines()
    names = {line.partition("=")[0] for line in lines if line and not line.startswith(("#", "["))}
    forbidden = {
        "RuntimeDirectory", "StateDirectory", "Nice", "CapabilityBoundingSet", "MemoryMax", "MemoryHigh",
    }  # fmt: skip
    assert not names & forbidden
    assert "Environment=ORT_DISABLE_TELEMETRY=1" in lines
    assert "RestrictAddressFamilies=AF_UNIX" in lines


def test_the_installed_unit_names_this_installations_memd(monkeypatch):
    """And the folders that this shell would use, since systemd does not know them."""
    monkeypatch.setenv("XDG_STATE_HOME", "/data/state")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    text = service._with_command("[Service]\nExecStart=x\nRestart=no\n", memd_command())
    assert f'ExecStart="{memd_command()[0]}"' in text
    assert 'Environment="XDG_STATE_HOME=/data/state"' in text
    assert "XDG_CONFIG_HOME" not in text
    assert Path(memd_command()[0]).is_file()


def test_without_a_systemd_for_this_user_install_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with pytest.raises(Unreachable, match="loginctl enable-linger"):
        service.install()
    assert list(tmp_path.iterdir()) == []
    assert not service.uninstall()
    assert service.status() == {
        "installed": False, "units": [], "enabled": False, "socket": "unknown", "service": "unknown",
    }  # fmt: skip


@pytest.mark.parametrize(("variable", "managed"), [(None, True), ("MEMD_SOCKET", False)])
def test_systemd_is_the_starter_only_of_its_own_socket(monkeypatch, tmp_path, variable, managed):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    for name in ("XDG_CONFIG_HOME", "MEMD_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "run" / "systemd" / "private").mkdir(parents=True)
    assert not systemd.managed()
    systemd.unit_dir().mkdir(parents=True)
    (systemd.unit_dir() / systemd.SOCKET).touch()
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "own.sock"))
    assert systemd.managed() is managed
