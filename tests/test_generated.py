"""What memctl knows of memd is made of memd's tables, wherever it is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import generate

ROOT = Path(__file__).parents[1]
# Fails where anything is imported beyond the standard library, msgspec and this checkout.
WITHOUT_LIBRARIES = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "msgspec", "memd", "memctl", "tools"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
from tools import generate
print(len(generate.generated()))
"""


@pytest.mark.parametrize("path", generate.generated(), ids=str)
def test_a_generated_file_is_what_its_sources_say(path):
    """After a change of a struct, of the methods or of the filters, or a pull of one."""
    made = ROOT / path
    is_current = made.is_file() and made.read_text(encoding="utf-8") == generate.generated()[path]
    assert is_current, f"{path} is older than its sources: run {generate.COMMAND}"


def test_generating_needs_msgspec_alone():
    """Where a wheel is built there is no SQLite of ours, no numpy and no runtime of the model."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARIES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{len(generate.generated())}\n", done.stderr
