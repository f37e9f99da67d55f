"""A stranger follows the README: a fresh account under systemd, a fresh copy, one command after the other.

Tests are offline: venv, pip and uv are stand-ins, and memctl is that of the copy.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from in_the_box import in_the_box

TREE = Path(__file__).resolve().parents[1]
README = (TREE / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```sh\n(.*?)^```$", README)
SHOWN = re.findall(r"(?ms)^```console\n\$ memctl search (.*?)\n(.*?)^```$", README)
# What may be on stderr: the README or the line itself says what it means.
EXPLAINED = re.compile(
    r"memctl: (?:(?:weak match; )?meaning: \d+ % of the notes(?:, about \S+ \S+ left)?|weak match"
    r"|this is the first index of this workspace; waiting for its words .*|(?:indexing|embedding) \d+/\d+"
    r"|[\w./-]+ is a workspace in another workspace.*|keyword only: .*|still indexing: .*|Go on\?.*)"
    r"|.*\[y/N\] ?|Created symlink .*|\s*"
)
PREPARED = """
set -u
mkdir -p ~/bin ~/memd/.venv/bin ~/.claude
cp -a memd memctl systemd README.md pyproject.toml ~/memd
mkdir ~/memd/tests && cp -r tests/sample ~/memd/tests/sample && cp -r tests/sample ~/notes
printf '#!/bin/sh\\nPYTHONPATH=%s:{libraries} exec {python} -m memctl "$@"\\n' ~/memd > ~/bin/memctl
printf '#!/bin/sh\\nPYTHONPATH=%s:{libraries} exec {python} -m memd "$@"\\n' ~/memd > ~/bin/memd
printf '#!/bin/sh\\nexit 0\\n' | tee ~/bin/python3 ~/bin/uv > ~/memd/.venv/bin/pip
chmod +x ~/bin/* ~/memd/.venv/bin/pip
cp ~/bin/memctl ~/memd/.venv/bin/memctl
export PATH=~/bin:$PATH PYTHONDONTWRITEBYTECODE=1
cd ~/memd
"""
# A command that asks gets a terminal, on which somebody says yes.
STEP = """
echo '== {name}'
{command} > ~/out 2> ~/err
echo "exit $?"
sed 's/^/out: /' ~/out
sed 's/^/err: /' ~/err
"""


def steps() -> list[str]:
    """Return the README's commands, in their order: those of its sh blocks, then how to go."""
    lines = [
        re.sub(r"\s+#.*$", "", line)
        for text in BLOCKS
        for line in text.splitlines()
        if ".ci/check" not in line  # runs this test
    ]
    gone = re.search(r"Uninstall: `(memctl uninstall --purge) && uv tool uninstall memd-search`", README)
    assert gone
    return [*lines, "memctl health", gone[1]]


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/lib/systemd/systemd").exists() or not shutil.which("script"),
    reason="systemd-box needs root, systemd and script: apt-get install systemd util-linux bsdutils",
)
def test_every_command_of_the_readme_works_in_a_fresh_account():
    asking = ("memctl agents install", "memctl uninstall")
    libraries = ":".join(path for path in sys.path if "site-packages" in path)
    script = PREPARED.format(python=sys.executable, libraries=libraries)
    for step in steps():
        quoted = step.replace("'", "'\\''")
        command = f"bash -c '{quoted}'"
        if step.startswith(asking):
            command = f"printf 'y\\ny\\n' | script -qec '{quoted}' /dev/null"
        script += STEP.format(name=quoted, command=command)
    script += "echo '== what is left'; cd ~; find .local .config .claude notes/memory -type f 2>/dev/null\n"
    done = in_the_box(script)
    told = dict(re.findall(r"(?ms)^== (.*?)$\n(.*?)(?=^== |\Z)", done))
    left = told.pop("what is left").split()
    assert list(told) == steps()
    assert {step: text for step, text in told.items() if not text.startswith("exit 0\n")} == {}
    unexplained = [
        (step, line)
        for step, text in told.items()
        for line in re.findall(r"(?m)^err: (.*)$", text)
        if not EXPLAINED.fullmatch(line)
    ]
    assert unexplained == []
    [(query, shown)] = SHOWN
    first = next(text for step, text in told.items() if step.endswith(query) and "init" in step)
    assert _comparable(shown) in _comparable("".join(re.findall(r"(?m)^out: (.*\n)", first)))
    assert [path for path in left if not path.startswith("notes/memory/")] == []
    assert "notes/memory/config.toml" in left


def _comparable(printed: str) -> str:
    """Return what memctl prints without its folder, its day and its score, which differs between machines."""
    return re.sub(r"/\S+/(?=decisions/)|\d{4}-\d\d-\d\d|\b0\.\d\d\b", "", printed)
