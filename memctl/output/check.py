"""The text of a check: a line a finding, and a verdict."""

from typing import Any

from memctl.output.status import counted
from memctl.output.text import one_line


def lines(answer: dict[str, Any]) -> str:
    """Return a line a finding: its kind, what it is, and whether it is mended."""
    return "".join(f"{_line(finding)}\n" for finding in answer["findings"])


def verdict(answer: dict[str, Any], *, repair: bool) -> str:
    """Return what was compared and how it stands now, on one line."""
    amounts = _amounts(dict(answer.get("checked") or {}))
    checked = f"{amounts or 'everything'} checked in {answer['took_ms'] / 1000:.1f} s"
    left = sum(not finding.get("repaired") for finding in answer["findings"])
    if answer["ok"]:
        mended = len(answer["findings"]) - left
        return f"{checked}: {counted(mended, 'finding') + ' repaired' if mended else 'nothing is wrong'}"
    way_out = "memctl index --rebuild makes the index anew" if repair else "memctl check --repair mends it"
    return f"{checked}: {counted(left, 'finding')} left; {way_out}"


def _amounts(checked: dict[str, int]) -> str:
    """Return what was compared; of rows also why they are fewer than the chunks."""
    sharing, rowless = checked.pop("sharing", 0), checked.pop("rowless", 0)
    reasons = [f"{counted(sharing, 'chunk')} of a text that has one already"] if sharing else []
    reasons += [f"{counted(rowless, 'chunk')} without one"] if rowless else []
    fewer = {"rows": f" ({', '.join(reasons)})"} if reasons else {}
    return ", ".join(f"{amount:,} {one_line(noun)}{fewer.get(noun, '')}" for noun, amount in checked.items())


def _line(finding: dict[str, Any]) -> str:
    text = f"{one_line(str(finding['kind']))}: {one_line(str(finding['text']))}"
    return f"{text} (repaired)" if finding.get("repaired") else text
