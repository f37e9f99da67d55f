"""The text of an answer of `why`: a sentence, what to do, and the scores."""

import re
from typing import Any

from memctl.output.explain import labelled, listed, off, score_lines
from memctl.output.marker import HEADING, Marker
from memctl.output.text import one_line
from memctl.relative_path import shown


def people(answer: dict[str, Any], *, cwd: str, colour: bool) -> str:
    """Return the verdict, the note's path as seen from *cwd*; *colour*: write SGR sequences."""
    marker = Marker("", colour=colour)
    facts = answer["facts"]
    lines = [f"{marker.paint(one_line(answer['stage']), HEADING)}: {_seen(answer, 'text', cwd)}"]
    if answer["advice"]:
        lines.append(_seen(answer, "advice", cwd))
    if explanation := facts.get("explanation"):
        found = score_lines(explanation, marker)
        found += [labelled(name, listed(facts[name]), marker) for name in ("has", "lacks") if facts.get(name)]
        if code := facts.get("vector_arm"):
            found.append(labelled("meaning", f"not looked for: {off(code)}", marker))
        lines += ["", *(f"    {line}" for line in found)]
    return "".join(f"{line}\n" for line in lines)


def _seen(answer: dict[str, Any], key: str, cwd: str) -> str:
    """Return a text of the verdict in which the note is called as it is from *cwd*."""
    path, text = answer["path"], one_line(answer[key])
    if path.startswith("/"):  # it is outside of the workspace
        return text
    name = shown(answer["workspace"], path, cwd)
    return re.sub(rf"(?<![\w/]){re.escape(one_line(path))}(?![\w/])", lambda _: name, text)
