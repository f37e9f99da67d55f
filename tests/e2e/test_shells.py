"""It does not matter which shell has started the daemon, or which one asks it."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, hurried, until
from patience import PATIENCE, ran

from memctl import exits

OWL = "käuzchen 🦉.md"
DECOY = "raise SystemExit('the module of another project')\n"

# What a shell has that starts the daemon: a line of sh before memctl, and variables. What has nothing to do
# with each other is had by one.
SHELLS = {
    "LC_ALL=C, umask 000": ("umask 000;", {"LC_ALL": "C"}),
    "ISO-8859-1, another TZ": ("", {"LC_ALL": "de_DE", "LOCPATH": "{home}", "TZ": "Pacific/Auckland"}),
    "ulimit -v, soft": ("ulimit -S -v 300000;", {}),
    "ulimit -n 64, proxies": (
        "ulimit -n 64;", {"http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9"},
    ),
    "umask 777, a key and a library": (
        "umask 777;", {"AWS_SECRET_ACCESS_KEY": "s", "LD_LIBRARY_PATH": "/x"},
    ),
    "PYTHONPATH": ("", {"PYTHONPATH": ":{home}/x", "PYTHONSTARTUP": "/x", "PYTHONHASHSEED": "0"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def latin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a locale whose encoding is not UTF-8."""
    folder = tmp_path_factory.mktemp("locale")
    if shutil.which("localedef"):
        subprocess.run(["localedef", "-i", "de_DE", "-f", "ISO-8859-1", folder / "de_DE"], check=False)
    return folder


@pytest.mark.parametrize("name", SHELLS)
def test_a_daemon_of_any_shell_answers_every_other_one(unstarted: Daemon, latin: Path, name):
    line, given = SHELLS[name]
    home = unstarted.home
    variables = {key: value.format(home=home) for key, value in given.items()}
    if "LOCPATH" in variables:
        if not (latin / "de_DE").exists():
            pytest.skip("localedef or its sources are not installed")
        variables["LOCPATH"] = str(latin)
    folder_of(home, {"x/structlog.py": DECOY})
    root = folder_of(home / "büro")
    (root / OWL).write_text("# Kauz\n\nA little owl.\n")
    (home / ".env").write_text("MEMD_SOCKET=/nowhere\n")
    unstarted.environment.pop("XDG_STATE_HOME")
    begun = in_shell(unstarted, line, ["init", "."], variables, cwd=root)
    assert begun.returncode == 0, begun.stderr

    assert OWL in unstarted.memctl("search", "--wait", "--files", "owl", cwd=root).stdout
    there = in_shell(unstarted, line, ["get", OWL], variables, cwd=root)
    assert (there.returncode, "little owl" in there.stdout) == (0, True), there.stderr
    state = home / ".local" / "state" / "memd"
    for folder in (state, state.parent, unstarted.socket.parent, *state.glob("*/")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    pid = unstarted.call("ping")["pid"]
    inherited = Path(f"/proc/{pid}/environ")
    if inherited.exists():
        names = {entry.partition(b"=")[0].decode() for entry in inherited.read_bytes().split(b"\0")}
        assert names.isdisjoint({"http_proxy", "ALL_PROXY", "PYTHONSTARTUP", "AWS_SECRET_ACCESS_KEY",
                                 "LD_LIBRARY_PATH", "PYTHONHASHSEED"})  # fmt: skip
    assert unstarted.memctl("stop").stdout == "stopped\n"


def test_a_limit_of_memory_that_cannot_be_raised_is_one_line(unstarted):
    done = in_shell(unstarted, "ulimit -v 300000;", ["start"], {})
    assert done.returncode == exits.UNSAFE
    assert "292 MB, and memd needs 1024" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not unstarted.listens()


def test_without_memory_for_a_connection_the_daemon_ends(daemon):
    """It would look alive and answer nobody; the next memctl starts another one."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("only Linux sets another's limit")
    pid = daemon.process.pid
    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))

    def asked() -> bool:
        daemon.memctl("status", "--debug")
        return daemon.process.poll() is not None

    until(asked, 60)
    assert daemon.process.returncode in {75, -signal.SIGABRT}
    assert daemon.memctl("ping").returncode == 0


def test_a_daemon_that_does_not_answer_is_ended_by_its_lock(unstarted):
    """As one whose loop hangs, which hears no SIGTERM, either."""
    process = unstarted.start().process
    process.send_signal(signal.SIGSTOP)
    hasty = "import memctl.launch as it, memctl.__main__ as main; it.ANSWER_S = it.HANGING_S = 1.0; "
    command = [sys.executable, "-c", hasty + "raise SystemExit(main.main(['restart']))"]
    done = ran(command, env=unstarted.environment)
    assert done.returncode == 0, done.stderr
    assert process.wait(timeout=5 * PATIENCE) == -signal.SIGKILL
    assert unstarted.listens()


def test_a_daemon_without_a_socket_is_stopped_by_its_lock(daemon):
    daemon.socket.unlink()
    assert daemon.memctl("stop").stdout == "stopped\n"
    assert daemon.process.wait(timeout=5 * PATIENCE) == 0


def test_the_time_zone_of_the_machine_is_followed(unstarted, tmp_path):
    here, zones = tmp_path / "localtime", Path("/usr/share/zoneinfo/Etc")
    if not zones.exists() or not Path("/etc/localtime").exists() or not shutil.which("unshare"):
        pytest.skip("no zones are installed, or no /etc/localtime can be put in place of this machine's")
    shutil.copyfile(zones / "GMT+12", here)
    os.utime(here, (0, 0))  # the C library tells a changed file by whole seconds
    mounted = ["unshare", "-Urm", "sh", "-c", f'mount --bind {here} /etc/localtime && exec "$@"', "sh"]
    unstarted.start(under=[*mounted, *hurried("memd.daemon.LOOK_S = 0.2")])
    root = unstarted.add_notes(tmp_path / "notes", {})

    def offset_of(title: str) -> str:
        entry = {"workspace": root, "topic": "birds", "title": title, "content": f"A {title}."}
        path = unstarted.call("extract_memory", **entry)["path"]
        created = unstarted.call("get", workspace=root, path=path)["text"].partition("created: ")[2]
        return created.partition("\n")[0].strip("'")[-6:]

    assert offset_of("heron") == "-12:00"
    with here.open("r+b") as zone:  # never empty meanwhile
        zone.write((zones / "GMT-14").read_bytes())
    until(lambda: "time_zone_changed" in unstarted.log())
    assert offset_of("bittern") == "+14:00"


def test_a_memd_of_another_home_is_named(daemon, tmp_path):
    """Two HOMEs with one socket: its answers are its own, and one line says whose they are."""
    root = tmp_path / "notes"
    daemon.add_notes(root, {"heron.md": "A heron.\n"})
    other = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "another")}
    for command in (["search", "heron"], ["status"], ["start"]):
        done = daemon.memctl(*command, cwd=root, env=other)
        assert done.returncode == 0, done.stderr
        told = f"its workspaces are those of {daemon.state}, not of {tmp_path}/another/memd"
        assert done.stderr.count(told) == 1, done.stderr
        assert "another HOME" not in daemon.memctl(*command, cwd=root).stderr
    assert not (tmp_path / "another").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
@pytest.mark.parametrize("is_known", [False, True])
def test_root_in_the_home_of_another_user_starts_nothing(unstarted, is_known):
    """As `sudo memctl` where sudo keeps HOME: no folder is made there, or given to root."""
    home = unstarted.home
    unstarted.environment.pop("XDG_STATE_HOME")
    state = home / ".local" / "state" / "memd"
    if is_known:
        state.mkdir(parents=True, mode=0o700)
        shutil.chown(state, 65534)
    shutil.chown(home, 65534)
    before = sorted(home.rglob("*"))
    try:
        for command in (["start"], ["ping"], ["init", str(home)]):
            done = unstarted.memctl(*command, cwd="/")
            assert done.returncode == exits.UNSAFE
            assert "is the home of nobody, and you are root. Run it as that user, without sudo" in done.stderr
            assert "chown" not in done.stderr
        assert not unstarted.listens()
        assert sorted(home.rglob("*")) == before
    finally:
        shutil.chown(home, 0)
        if is_known:
            state.rmdir()


def in_shell(daemon: Daemon, line: str, words: list[str], variables: dict[str, str], **options):
    """Run memctl in a shell with limits or variables of its own."""
    return subprocess.run(
        ["/bin/sh", "-c", f'{line} exec "$@"', "sh", sys.executable, "-m", "memctl", *words],
        env=daemon.environment | variables,
        capture_output=True, text=True, timeout=60 * PATIENCE, check=False, **options,
    )  # fmt: skip
