"""How does a setting get into config.toml without losing what the user wrote there?"""

import os
from pathlib import Path
from typing import Any

import tomlkit


def write(path: Path, settings: dict[str, Any]) -> None:
    """Set top-level keys; comments, order and all else stay. The file is replaced as a whole, durably."""
    document = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
    for key, value in settings.items():
        document[key] = value
    # A link (dotfiles are kept so) is written through, not replaced.
    target = path.resolve()
    fresh = target.with_name(f".{path.name}.tmp")
    with fresh.open("w", encoding="utf-8") as stream:
        stream.write(tomlkit.dumps(document))
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(target)
