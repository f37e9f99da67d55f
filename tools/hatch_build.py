"""Hatch's build hook: generates memctl's files before a wheel, an sdist or an editable install is built."""

import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GenerateHook(BuildHookInterface[Any]):
    """Runs `python -m tools.generate` with the sources being packaged, not with an installed memd."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's signature
        """Write the files; `artifacts` in pyproject.toml includes them although git ignores them."""
        sys.path.insert(0, self.root)
        from tools import generate

        generate.write()
