"""What one workspace or user never gets of another."""

import contextlib
import json
import os
import shutil
import socket
import stat

import pytest
from daemon_process import Daemon, folder_of
from every_call import NAMES, calls
from patience import PATIENCE

from memctl import exits
from memctl.client import RpcError
from memd.api.methods import METHODS


@pytest.fixture
def pair(daemon, tmp_path):
    """Two workspaces: the first knows of herons and weirs only, the second of badgers and setts."""
    roots = []
    for folder, words in (("first", "heronword weirword"), ("second", "badgerword settword")):
        text = f"---\ntags: [shared]\n---\n# About {words}\n\nThe same sentence in both, then {words}.\n"
        roots.append(daemon.add(folder_of(tmp_path / folder, dict.fromkeys(NAMES, text))))
    return daemon, *roots


def test_no_method_and_no_parameter_is_left_out():
    """A new one must be asked for the other workspace's words, too."""
    asked = list(calls("/root", "word"))
    assert {method for method, _ in asked} == set(METHODS)
    known = {field for method in METHODS.values() for field in method.params.__struct_fields__}
    assert {name for _, params in asked for name in params} == known - {"workspace"}


def text_of(daemon: Daemon, method: str, params: dict, root: str) -> str:
    try:
        told = []
        with daemon.client() as client:
            listen = told.append if params.get("progress") else None
            answer = client.call(
                method, {"workspace": root, **params}, timeout_s=60 * PATIENCE, on_progress=listen
            )
        return json.dumps([answer, told])
    except RpcError as error:
        return str(error)


def test_no_answer_or_error_of_one_shows_a_word_of_the_other(pair):
    daemon, first, second = pair
    for root, own, foreign in ((first, "heronword", "badgerword"), (second, "badgerword", "heronword")):
        for method, params in calls(root, foreign):
            answer = text_of(daemon, method, params, root)
            shown = (
                answer.replace(json.dumps(foreign), "")
                .replace(json.dumps(f'"{foreign}"'), "")
                .replace(f"'../{foreign}'", "")
            )
            assert foreign not in shown, (method, params)
        assert own in text_of(daemon, "search", {"query": own}, root)


NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_a_socket_folder_that_another_user_made_first_is_not_used(tmp_path):
    """Among temporary files anybody can take the name: memd does not start there, and nobody connects."""
    shared = folder_of(tmp_path / "shared")
    daemon = Daemon(folder_of(tmp_path / "home"))
    del daemon.environment["XDG_RUNTIME_DIR"]
    daemon.environment["TMPDIR"] = str(shared)
    squatted = shared / f"memd-{os.geteuid()}"
    squatted.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.chdir(squatted):  # a socket's path may be short only
            listener.bind("memd.sock")
        listener.listen()
        listener.settimeout(0)
        for path in (squatted, squatted / "memd.sock"):
            shutil.chown(path, NOBODY)
        shared.chmod(stat.S_ISVTX | 0o777)
        try:
            done = daemon.memctl("ping")
            assert done.returncode == exits.UNSAFE
            assert f"belongs to uid {NOBODY}" in done.stderr
            with pytest.raises(BlockingIOError):
                listener.accept()
        finally:
            daemon.close()
