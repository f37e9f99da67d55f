"""Models that are installed as packages: each names itself by an entry point of the group ``memd.models``.

The entry point's name is that of the model, its value the package, whose folder has the model's files. No
code of the package runs.
"""

from importlib import invalidate_caches
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from memd.config import is_installed_name
from memd.embedding import MODEL_FAILED, UnavailableError

GROUP = "memd.models"


def folder_of(model: str) -> Path:
    """Return the folder of a model by its name, or the folder that *model* is. Raises UnavailableError."""
    if not is_installed_name(model):
        return Path(model).expanduser()
    invalidate_caches()  # it may have been installed since memd started
    for point in entry_points(group=GROUP, name=model):
        spec = find_spec(point.module) if point.module.isidentifier() else None
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0])
    raise UnavailableError(
        MODEL_FAILED,
        f"The model {model!r} is not installed with memd. memctl models list names those that are; "
        "docs/models.md says how to build and install one.",
    )
