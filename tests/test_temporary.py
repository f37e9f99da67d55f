import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memd.errors import StorageError
from memd.process import private_folder, remove_abandoned

HOLD = """
import sys, time
from pathlib import Path
from memd.process import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "inner").mkdir()
    print(folder, flush=True)
    time.sleep(60)
"""


def test_a_private_folder_is_gone_after_the_block(tmp_path):
    def fail():
        with private_folder(tmp_path) as folder:
            (folder / "inner").mkdir()
            (folder / "inner" / "note.md").write_text("heron")
            raise ValueError(oct(folder.stat().st_mode))

    with pytest.raises(ValueError, match="700"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_abandoned_when_its_process_was_killed(tmp_path):
    (tmp_path / "0123456789abcdef").mkdir()
    (tmp_path / "eval-link").symlink_to(tmp_path / "0123456789abcdef")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
    ) as holder:
        held = holder.stdout.readline().strip()
        remove_abandoned(tmp_path)
        stays = Path(held).is_dir()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        remove_abandoned(tmp_path)
    assert stays
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0123456789abcdef", "eval-link"]


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"), private_folder(tmp_path / "file"):
        pass
