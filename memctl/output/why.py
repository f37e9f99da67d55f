"""The text of an answer of `why`: a sentence, what to do, and the scores."""

from typing import Any

from memctl.output.explain import labelled, listed, off, score_lines
from memctl.output.marker import HEADING, Marker
from memctl.output.text import one_line


def people(answer: dict[str, Any], *, colour: bool) -> str:
    """Return the verdict; *colour*: write SGR sequences."""
    marker = Marker("", colour=colour)
    facts = answer["facts"]
    lines = [f"{marker.paint(one_line(answer['stage']), HEADING)}: {one_line(answer['text'])}"]
    if answer["advice"]:
        lines.append(one_line(answer["advice"]))
    if explanation := facts.get("explanation"):
        found = score_lines(explanation, marker)
        found += [labelled(name, listed(facts[name]), marker) for name in ("has", "lacks") if facts.get(name)]
        if code := facts.get("vector_arm"):
            found.append(labelled("meaning", f"not looked for: {off(code)}", marker))
        lines += ["", *(f"    {line}" for line in found)]
    return "".join(f"{line}\n" for line in lines)
