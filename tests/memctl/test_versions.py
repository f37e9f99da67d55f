"""Another distribution with a package memd or memctl is named where somebody looks for a fault."""

import json
import subprocess
import sys

import pytest

from memctl import exits
from memctl.__main__ import main
from memctl.commands.uninstall import program_removal
from memctl.versions import install_line

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
