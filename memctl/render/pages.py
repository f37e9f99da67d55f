"""How do facts about the daemon read where no terminal is?"""

from typing import Any

from memctl.render import facts
from memctl.render.facts import Section
from memctl.render.text import one_line

_LABEL_WIDTH = 12  # the longest label and two spaces


def status(answer: dict[str, Any]) -> str:
    """Return all that `status` knows, a line a fact."""
    sections = [facts.server(answer), *map(facts.workspace, answer["workspaces"])]
    return "\n".join(map(_section, sections)) + ("" if answer["workspaces"] else f"\n{NO_WORKSPACES}\n")


def health(answer: dict[str, Any]) -> str:
    """Return a line a check, then the verdict."""
    lines = [
        f"{'ok  ' if ok else 'FAIL'}  {name}  {detail}".rstrip() for ok, name, detail in facts.checks(answer)
    ]
    return "\n".join([*lines, "healthy" if answer["ok"] else "not healthy", ""])


def workspaces(answer: dict[str, Any]) -> str:
    """Return a line a workspace: root, state, sources, chunks, parted by tabs."""
    if not answer["workspaces"]:
        return f"{NO_WORKSPACES}\n"
    return "".join(
        f"{one_line(known['root'])}\t{one_line(known['state'])}"
        f"\t{facts.counted(known.get('sources'), 'source')}\t{facts.counted(known.get('chunks'), 'chunk')}\n"
        for known in answer["workspaces"]
    )


NO_WORKSPACES = "no workspaces yet. Make one: memctl init DIR"


def _section(section: Section) -> str:
    return "\n".join(
        [section.title, *(f"  {label:<{_LABEL_WIDTH}}{value}" for label, value in section.facts), ""]
    )
