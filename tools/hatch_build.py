"""Hatch's build hook: what a package has and git has not.

Generates memctl's files before a wheel, an sdist or an editable install is built, and adds manual pages and
the bill of materials to wheels.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GenerateHook(BuildHookInterface[Any]):
    """Runs `tools` with the sources being packaged, not with an installed memd."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's signature
        """Write the files; `artifacts` in pyproject.toml includes them although git ignores them."""
        sys.path.insert(0, self.root)
        from tools import generate

        generate.write()
        if self.target_name != "wheel":
            return
        from tools import man_pages, sbom

        self._made = TemporaryDirectory(prefix="memd-build-")
        folder = Path(self._made.name)
        for name, text in man_pages.pages().items():
            (folder / name).write_text(text, encoding="utf-8")
            build_data["shared_data"][str(folder / name)] = f"share/man/man1/{name}"
        bill = folder / sbom.NAME
        bill.write_text(sbom.sbom(Path(self.root), self.metadata.version), encoding="utf-8")
        build_data["sbom_files"].append(str(bill))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatch's signature
        """Delete what was made for a wheel, which has it by now."""
        if self.target_name == "wheel":
            self._made.cleanup()
