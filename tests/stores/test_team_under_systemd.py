"""A real systemd lets memd reach the team's store where [team] names one, and not before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stores.team_support import Server

TREE = Path(__file__).parents[2]
BOX = TREE / "tests" / "systemd-box"
needs_box = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/lib/systemd/systemd").exists(),
    reason="systemd-box needs root and systemd: run as root after apt-get install systemd",
)
# The box has the network of this machine, and so the loopback address at which the store listens.
LIFE = """
set -eu
memctl() {{ {python} -m memctl "$@"; }}
mkdir -p ~/notes/memory ~/.config/memd
echo '# Heron' > ~/notes/heron.md
echo 'provider = "none"' > ~/notes/memory/config.toml
memctl service install > /dev/null
memctl init ~/notes > /dev/null 2> ~/init
echo {token} > ~/.config/memd/team-token
chmod 600 ~/.config/memd/team-token
cat > ~/.config/memd/config.toml <<'END'
[team]
uri = "{uri}"
token_file = "~/.config/memd/team-token"
END
memctl health > ~/walled 2>&1 || true
grep -c 'Address family not supported' ~/walled
grep -o 'memctl service install' ~/walled
memctl service install | grep -c ollama.conf
for i in $(seq 100); do
    memctl health > ~/open || true
    grep -q 'team.*answered' ~/open && break || sleep 0.1
done
grep -c 'team.*answered' ~/open
memctl team publish ~/notes --yes
memctl search -w ~/notes --team heron | grep -o 'heron.md'
"""


@needs_box
def test_the_drop_in_lets_memd_publish_to_a_store_on_the_network(tmp_path):
    """Walled in, `health` says what is missing; after the drop-in a note is published and found."""
    server = Server(tmp_path / "server", port=0).start()
    keep = os.pathsep.join([sys.prefix, sys.base_prefix, str(tmp_path)])
    environment = {**os.environ, "BOX_KEEP": keep, "BOX_USER": "root"}
    for name in ("MEMD_SOCKET", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    [token] = server.settings["tokens"]
    script = LIFE.format(python=sys.executable, uri=server.uri, token=token)
    try:
        done = subprocess.run(
            [str(BOX), "bash", "-c", script],
            capture_output=True, text=True, cwd=TREE, env=environment, check=False,
        )  # fmt: skip
    finally:
        server.close()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    walled, advice, written, answers, published, *found = done.stdout.splitlines()
    assert (walled, advice, written, answers) == ("1", "memctl service install", "1", "1")
    assert published.endswith("notes: published, 1 source")
    assert found[0] == "heron.md"
