"""How patient the tests are: a shared or throttled core is several times slower than a quiet one.

A wait that is longer than needed costs nothing where the test passes.
"""

from typing import Final

PATIENCE: Final = 4  # times what a quiet machine with much to do may take
