"""The settings that an editor gives in initializationOptions or workspace/didChangeConfiguration."""

from typing import Any, NamedTuple


class Settings(NamedTuple):
    """What the user of an editor can choose; None: by the editor's name."""

    diagnostics: bool = True  # hints at broken and ambiguous links, and at superseded notes
    links: str = "auto"  # how completion writes a link: as the notes do, or one of `STYLES`
    symbols: str = "auto"  # workspace symbols: a live search, or names alone where the editor filters by name
    inlayHints: bool = False  # noqa: N815 - the editor's name; numbers of backlinks and related notes
    documentSymbols: bool | None = None  # noqa: N815
    documentLinks: bool | None = None  # noqa: N815


STYLES = ("wiki", "wiki-path", "markdown")
CHOICES = {"links": ("auto", *STYLES), "symbols": ("auto", "search", "names")}


def changed(settings: Settings, given: Any) -> tuple[Settings, list[str]]:
    """Return *settings* with what is given, alone or below `memd`, and what is wrong with the rest."""
    if isinstance(given, dict) and isinstance(given.get("memd"), dict):
        given = given["memd"]
    wrong = []
    for name, value in (given if isinstance(given, dict) else {}).items():
        if name not in Settings._fields:
            wrong.append(f"there is no setting {name!r}; there are {', '.join(Settings._fields)}")
        elif name in CHOICES and value not in CHOICES[name]:
            wrong.append(f"{name} is one of {', '.join(CHOICES[name])}")
        elif name not in CHOICES and not isinstance(value, bool):
            wrong.append(f"{name} is true or false")
        else:
            settings = settings._replace(**{name: value})
    return settings, wrong
