"""The long loop: ``python -m tests.live --seeds 100 --operations 10000``; --figures for what storms cost."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from live.command import main

    sys.exit(main())
