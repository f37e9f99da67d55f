"""Makes the software bill of materials that a wheel carries (PEP 770), in CycloneDX's JSON.

It names this package, the model with hashes and licence, and each library that an installation needs, with
its licence as docs/licences.md has it. Libraries are not in the wheel; pip chooses their versions. The text
depends on the files of the repository alone, so that two builds are identical.
"""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

MODEL = "all-MiniLM-L6-v2"
MODEL_SOURCE = "sentence-transformers/all-MiniLM-L6-v2"
MODEL_LICENCE = "Apache-2.0"  # NOTICE beside the model has the conditions
MODEL_FILES = ("model.onnx", "tokenizer.json")
NAME = "memd-search.cdx.json"
# A row of the table: name, licence, what needs it.
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<licence>[^|]+) \| (?P<needed>[^|]+) \|$", re.MULTILINE)


def sbom(root: Path, version: str) -> str:
    """Return the document for the checkout at *root*; a missing file or row raises an error that names it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = licences(root)
    libraries = []
    for requirement in project["dependencies"]:
        name = normalized(re.split(r"[\[<>=!~; ]", requirement)[0])
        if name not in rows:
            raise ValueError(f"docs/licences.md has no row for {name!r}: add its licence")
        purl = f"pkg:pypi/{name}"
        properties = [{"name": "memd:requirement", "value": requirement}]
        libraries.append(
            {"type": "library", "bom-ref": purl, "name": name, "purl": purl, "scope": "required"}
            | {"licenses": [_licence(rows[name])], "properties": properties}
        )
    own = f"pkg:pypi/{project['name']}@{version}"
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": version,
                "purl": own,
                "licenses": [_licence(project["license"])],
            }
        },
        "components": [_model(root), *libraries],
        "dependencies": [{"ref": own, "dependsOn": [MODEL, *(one["bom-ref"] for one in libraries)]}],
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def licences(root: Path) -> dict[str, str]:
    """Return library → licence, of the table in docs/licences.md."""
    page = (root / "docs/licences.md").read_text(encoding="utf-8")
    return {row["name"]: row["licence"].strip() for row in ROW.finditer(page)}


def normalized(name: str) -> str:
    """Return the name of a distribution as package indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _model(root: Path) -> dict[str, Any]:
    folder = root / "memd" / "embedding" / "model"
    files = [
        {
            "type": "file",
            "name": f"memd/embedding/model/{name}",
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256((folder / name).read_bytes()).hexdigest()}
            ],
        }
        for name in MODEL_FILES
    ]
    return {
        "type": "machine-learning-model",
        "bom-ref": MODEL,
        "name": MODEL,
        "description": f"made of {MODEL_SOURCE}; memd/embedding/model/NOTICE says what was changed",
        "licenses": [_licence(MODEL_LICENCE)],
        "components": files,
    }


def _licence(expression: str) -> dict[str, str]:
    return {"expression": expression}
