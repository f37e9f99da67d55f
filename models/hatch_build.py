"""Hatch's build hook: adds a bill of materials to wheels (PEP 770, CycloneDX), with a hash of each file.

It refuses to build without these files, which build.py makes and git does not have.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "memd_model_multilingual"
FILES = ("config.json", "memd.json", "memd.sentencepiece", "model.onnx", "model.onnx_data")
MODEL = "multilingual-e5-small"
LIBRARIES = {"sentencepiece": "Apache-2.0"}  # name → what it states itself


class BillHook(BuildHookInterface[Any]):
    """Hands the bill to hatch, which puts it into the wheel's metadata."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's signature
        """Write the bill; it depends on the package's files alone, so that two builds are identical."""
        folder = Path(self.root) / PACKAGE
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"{folder} has no {', '.join(missing)}: run python models/build.py")
        if self.target_name != "wheel":
            return
        self._made = tempfile.TemporaryDirectory(prefix="memd-build-")
        path = Path(self._made.name) / f"{self.metadata.name}.cdx.json"
        path.write_text(_bill(folder, self.metadata.name, self.metadata.version), encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatch's signature
        """Delete what was made for a wheel, which has it by now."""
        if self.target_name == "wheel":
            self._made.cleanup()


def _bill(folder: Path, name: str, version: str) -> str:
    own = f"pkg:pypi/{name}@{version}"
    files = [
        {
            "type": "file",
            "name": f"{PACKAGE}/{file}",
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256((folder / file).read_bytes()).hexdigest()}
            ],
        }
        for file in FILES
    ]
    model = {
        "type": "machine-learning-model",
        "bom-ref": MODEL,
        "name": MODEL,
        "description": f"made of intfloat/{MODEL}; {PACKAGE}/NOTICE says of which copy, and how",
        "licenses": [{"expression": "MIT"}],
        "components": files,
    }
    libraries = [
        {"type": "library", "bom-ref": f"pkg:pypi/{library}", "name": library, "purl": f"pkg:pypi/{library}"}
        | {"scope": "required", "licenses": [{"expression": licence}]}
        for library, licence in LIBRARIES.items()
    ]
    component = {"type": "application", "bom-ref": own, "name": name, "version": version, "purl": own}
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component | {"licenses": [{"expression": "MIT"}]}},
        "components": [model, *libraries],
        "dependencies": [{"ref": own, "dependsOn": [MODEL, *(one["bom-ref"] for one in libraries)]}],
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
