"""The threads of the matrix product are told to sleep before they are started."""

import os
import subprocess
import sys

CODE = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
            sys.meta_path.remove(self)
sys.meta_path.insert(0, Watch())
import memd.daemon, memd.embedding.onnx
memd.embedding.onnx.OnnxEmbedder().close()
"""


def settings(**more: str) -> str:
    """Return how long threads may look for work when a daemon loads numpy: 2 to that, in cycles."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment | more, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_threads_sleep_soon_after_a_scan():
    """Whoever imports numpy first: what is set later is not read any more."""
    assert settings() == "16"


def test_the_users_own_setting_stays():
    assert settings(OPENBLAS_THREAD_TIMEOUT="20") == "20"
