"""The service: a drop-in where a workspace wants it, nothing without systemd, and what is installed twice."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memctl import exits, service, systemd
from memctl.__main__ import main
from memctl.commands.uninstall import program_removal
from memctl.versions import install_line

TREE = Path(service.__file__).parents[1]
BOX = TREE / "tests" / "systemd-box"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
needs_box = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/lib/systemd/systemd").exists(),
    reason="systemd-box needs root and systemd: run as root after apt-get install systemd",
)
# A server that answers as Ollama does, for memd's own questions.
OLLAMA = """
import http.server, json
class Ollama(http.server.BaseHTTPRequestHandler):
    def answer(self, known):
        body = json.dumps(known).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer({"models": [{"name": "all-minilm:latest", "digest": "0123456789abcdef0123"}]})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"] if isinstance(asked.get("input"), list) else [asked.get("input", "")]
        self.answer({"embeddings": [[1.0, 0.0, 0.0] for _ in texts]})
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 11434), Ollama)
print("listening", flush=True)
server.serve_forever()
"""
# Prints the state of the workspace's model once it is there and loaded, and the families that systemd allows.
LIFE = """
set -eu
memctl() {{ {python} -m memctl "$@"; }}
state() {{ for i in $(seq 200); do
    found=$(memctl status --json | {python} -c '
import json, sys
models = json.load(sys.stdin)["server"]["models"]
print(models[0]["provider"], models[0]["state"]) if models else print("none")')
    case $found in *loading | none) sleep 0.1 ;; *) break ;; esac  # none: the workspace is not open yet
done; echo "$1: $found"; }}
families() {{ echo "$1 families: $(systemctl --user show -P RestrictAddressFamilies memd.service |
    tr ' ' '\\n' | sort | xargs)"; }}
{python} {server} > ~/ollama.log & ollama=$!
trap 'kill $ollama' EXIT
mkdir -p ~/notes && echo '# Heron' > ~/notes/heron.md
memctl init ~/notes > /dev/null
memctl service install > /dev/null
families walled
memctl workspaces configure -w ~/notes provider=ollama model=all-minilm > /dev/null 2> ~/advice || true
grep -o 'memctl service install' ~/advice | tail -1
state walled
memctl service install | grep -c ollama.conf
families open
memctl ping > /dev/null
state open
mkdir ~/bin
cat > ~/bin/journalctl <<'END'
#!/bin/sh
# The box's user manager is no user@.service, so journald does not know its units by name.
test "$1 $2" = "--user-unit memd.service" && shift 2
exec /usr/bin/journalctl _SYSTEMD_CGROUP=/system.slice/box-manager.service/app.slice/memd.service "$@"
END
chmod 755 ~/bin/journalctl
PATH=~/bin:$PATH memctl log -n 1000 | grep -c '^20..-..-.. ..:..:..  info     ready  '
memctl workspaces configure -w ~/notes provider=none > /dev/null
memctl service install | grep -c ollama.conf || true
families closed
memctl service uninstall
test ! -e ~/.config/systemd/user/memd.service.d && echo gone
"""


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Folders of units and state of a user without any workspace."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MEMD_SOCKET", raising=False)
    (tmp_path / "run").mkdir()
    systemd.unit_dir().mkdir(parents=True)
    (tmp_path / "state/memd").mkdir(parents=True, exist_ok=True)
    return systemd.unit_dir(), tmp_path / "state/memd"


def register(state, *configs):
    """Register a workspace for each text of a configuration; None: its folder is gone. Return the roots."""
    roots = [state.parent / f"notes {number} 100%" for number in range(len(configs))]
    for root, config in zip(roots, configs, strict=True):
        shutil.rmtree(root, ignore_errors=True)
        if config is not None:
            (root / "memory").mkdir(parents=True, exist_ok=True)
            (root / "memory/config.toml").write_text(config)
    listed = {"workspaces": [{"root": str(root)} for root in roots]}
    (state / "workspaces.json").write_text(json.dumps(listed))
    return roots


@pytest.mark.parametrize(
    "configs",
    [
        [], ['provider = "onnx"'], ['# provider = "ollama"'], ['[other]\nprovider = "ollama"'],
        ["not = = toml"], [None], ["", 'model = "ollama"'],
    ],
)  # fmt: skip
def test_without_a_workspace_that_asks_ollama_there_is_no_drop_in(places, configs):
    folder, state = places
    register(state, 'provider = "ollama"')
    assert systemd.update()
    register(state, *configs)
    assert systemd.update() == []
    assert list(folder.iterdir()) == []


def test_a_registry_that_cannot_be_read_opens_nothing(places):
    """A daemon that is asked says what is wrong with it."""
    _, state = places
    for text in ("", "[]", '{"workspaces": [{}]}', '{"workspaces": 3}'):
        (state / "workspaces.json").write_text(text)
        assert systemd.update() == []


def test_the_drop_in_says_for_whom_it_is_and_adds_no_more_than_it_must(places):
    folder, state = places
    roots = register(state, 'provider = "onnx"', '\ufeffprovider = "ollama"\nmodel = "nomic-embed-text"')
    assert systemd.update() == [folder / "memd.service.d/ollama.conf"]
    text = systemd.drop_in().read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["[Service]", "RestrictAddressFamilies=AF_INET AF_INET6"]
    assert str(roots[1]) in text
    assert str(roots[0]) not in text
    assert "# Reason: " in text


def test_a_folders_name_does_not_get_out_of_its_comment(places):
    text = systemd.text([Path("/notes\nExecStart=/bin/false")])
    assert "ExecStart" not in [line.partition("=")[0] for line in text.splitlines()]


def test_drop_ins_of_the_user_stay(places):
    folder, state = places
    register(state, 'provider = "ollama"')
    systemd.update()
    own = folder / "memd.service.d/override.conf"
    own.write_text("[Service]\nNice=5\n")
    systemd.remove()
    assert list(own.parent.iterdir()) == [own]


@needs_systemd
def test_systemd_finds_no_fault_in_the_unit_with_its_drop_in(places, tmp_path):
    """`systemd-analyze verify` prints nothing, and a mistake in the drop-in would be seen."""
    folder, state = places
    register(state, 'provider = "ollama"')
    program = tmp_path / "memd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (folder / systemd.SOCKET).write_text(systemd.template(systemd.SOCKET))
    text = service._with_command(systemd.template(systemd.SERVICE), [str(program)])
    (folder / systemd.SERVICE).write_text(text)
    systemd.update()
    command = ["systemd-analyze", "--user", "verify", str(folder / systemd.SERVICE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with systemd.drop_in().open("a") as drop_in:
        drop_in.write("RestrictAddressFamilies=AF_NONSENSE\n")
    assert "AF_NONSENSE" in subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_a_server_of_the_openai_api_needs_the_drop_in_too(places):
    """It is asked over TCP as Ollama is."""
    _, state = places
    roots = register(state, 'provider = "openai"', 'provider = "onnx"')
    assert systemd.update() == [systemd.drop_in()]
    assert systemd.using_network() == roots[:1]


def test_the_service_status_names_the_drop_in(places):
    _, state = places
    register(state, 'provider = "ollama"')
    systemd.update()
    assert service.status()["units"] == [str(systemd.drop_in())]


def configured(folder, root, provider, monkeypatch):
    """Let systemd look after memd, and set the provider; return the exit code."""
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    (runtime / "systemd/private").mkdir(parents=True, exist_ok=True)
    (runtime / "memd").mkdir(mode=0o700, exist_ok=True)
    (folder / systemd.SOCKET).touch()
    if not (runtime / "memd/memd.sock").is_symlink():
        (runtime / "memd/memd.sock").symlink_to(root / "s")
    monkeypatch.setenv("MEMD_WORKSPACE", str(root))
    monkeypatch.delenv("MEMD_SOCKET", raising=False)
    return main(["workspaces", "configure", f"provider={provider}"])


def test_who_changes_a_provider_under_systemd_hears_what_to_do(peer, places, root, capsys, monkeypatch):
    folder, state = places
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    peer(workspace__configure={"root": str(root), "config": {}})
    for provider, drop_in, advice in (
        ("ollama", False, "may not open network sockets"),
        ("ollama", True, ""),
        ("none", True, "but needs none"),
        ("none", False, ""),
    ):
        register(state, 'provider = "ollama"' if drop_in else "")
        systemd.update()
        register(state, f'provider = "{provider}"')
        assert configured(folder, root, provider, monkeypatch) == 0
        err = capsys.readouterr().err
        assert (advice in err) if advice else (err == "")
        assert ("memctl service install" in err) == bool(advice)


@needs_box
def test_a_real_systemd_lets_memd_ask_ollama_only_after_install(tmp_path):
    """Walled in, the model fails and memctl says what to do; then it answers; then the wall is back."""
    server = tmp_path / "ollama.py"
    server.write_text(OLLAMA)
    # As root, because the box keeps no journals of other users, and the log is looked at, too.
    keep = os.pathsep.join([sys.prefix, sys.base_prefix, str(tmp_path)])
    environment = {**os.environ, "BOX_KEEP": keep, "BOX_USER": "root"}
    for name in ("MEMD_SOCKET", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    script = LIFE.format(python=sys.executable, server=server)
    done = subprocess.run(
        [str(BOX), "bash", "-c", script],
        capture_output=True, text=True, cwd=TREE, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    walled, advice, failed, written, opened, ready, ready_lines, again, closed, removed, gone = (
        done.stdout.splitlines()
    )
    assert (walled, opened) == ("walled families: AF_UNIX", "open families: AF_INET AF_INET6 AF_UNIX")
    assert (advice, failed) == ("memctl service install", "walled: ollama failed")
    assert (written, ready, again) == ("1", "open: ollama ready", "0")
    assert int(ready_lines) >= 2
    assert (closed, removed, gone) == ("closed families: AF_UNIX", "removed", "gone")


def test_on_macos_install_says_that_memctl_starts_memd(root, capsys, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert main(["service", "install"]) == exits.UNREACHABLE
    assert "memctl starts memd when needed" in capsys.readouterr().err


def test_uninstall_removes_an_agent_that_was_installed(tmp_path, capsys, monkeypatch):
    """It is stopped in the user's own graphical session, as launchctl(1) says, and its file is deleted."""
    program = tmp_path / "bin/launchctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    agent = tmp_path / service.LAUNCHD_AGENT
    agent.parent.mkdir(parents=True)
    agent.touch()
    for said in ("removed", "no unit of memd was installed"):
        assert main(["service", "uninstall"]) == exits.OK
        assert capsys.readouterr().out == f"{said}\n"
    assert not agent.exists()
    assert (tmp_path / "asked").read_text() == f"bootout gui/{os.getuid()}/local.memd\n"


HEALTHY = {"ok": True, "checks": [], "server": {}}


@pytest.fixture
def another(tmp_path, monkeypatch):
    """An installed distribution of other people with a package memd."""
    metadata = tmp_path / "site" / "memd_engine-0.5.2.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: memd-engine\nVersion: 0.5.2\n")
    (metadata / "RECORD").write_text("memd/__init__.py,,\nmemd_engine-0.5.2.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(str(metadata.parent))


def test_health_names_it_on_stderr(another, peer, capsys):
    peer(health=HEALTHY)
    assert main(["health", "--json"]) == exits.OK
    out, err = capsys.readouterr()
    assert json.loads(out) == HEALTHY
    assert "memd-engine 0.5.2" in err
    assert "uv tool install ." in err


def test_debug_names_it_in_the_report(another, peer, capsys):
    peer(debug={"version": "0.2.0"})
    assert main(["status", "--debug"]) == exits.OK
    report = json.loads(capsys.readouterr().out)
    assert report["version"] == "0.2.0"
    assert "memd-engine 0.5.2" in report["other_distributions"]


def test_nobody_looks_for_it_at_a_start():
    """Reading the files of every installed distribution would take longer than a search."""
    script = "import sys; from memctl.__main__ import main; main(['--version']); import memd"
    check = "; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script + check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("prefix", "removal", "addition"),
    [
        (
            "/home/me/.local/share/pipx/venvs/memd-search",
            "pipx uninstall memd-search",
            "pipx inject memd-search 'pymilvus>=2.6.17,<2.7'",
        ),
        (
            "/home/me/.local/share/uv/tools/memd-search",
            "uv tool uninstall memd-search",
            f"uv pip install --python {sys.executable} 'pymilvus>=2.6.17,<2.7'",
        ),
        (
            "/home/me/memd/.venv",
            f"{sys.executable} -m pip uninstall memd-search",
            f"{sys.executable} -m pip install 'pymilvus>=2.6.17,<2.7'",
        ),
    ],
)
def test_advice_names_the_command_of_whatever_installed_memd(monkeypatch, prefix, removal, addition):
    """To remove the package, and to add a library; uv puts no pip into a tool's environment."""
    monkeypatch.setattr(sys, "prefix", prefix)
    assert program_removal() == removal
    assert install_line("pymilvus>=2.6.17,<2.7") == addition
