"""The pages of `status`, `health` and `workspaces`: facts and tables, which memctl.output.page draws.

A fact is a (label, value) pair.
"""

import shlex
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from memctl.output.caveats import RENEWED, embedding, reasons
from memctl.output.marker import FAINT, HEADING
from memctl.output.page import Cell, PageBlock
from memctl.text import one_line
from memctl.versions import with_install_line

SKIPPED_SHOWN = 5  # --json has all that memd stores
NUMBERS = ("files", "chunks", "vectors", "pending")
COLUMNS = ("workspace", "state", *NUMBERS, "model")  # of the table of several workspaces
LISTED = ("workspace", "state", "sources", "chunks")  # of the table of `memctl workspaces`
_LABEL_WIDTH = 10  # of the longest label, so that the facts of all sections are aligned

# SGR numbers: green, yellow, bold red.
_GOOD, _BUSY, _BAD = "32", "33", "1;31"
_STATE_STYLES = {"ready": _GOOD} | dict.fromkeys(("busy", "scanning", "starting"), _BUSY)
_STATE_STYLES |= dict.fromkeys(("missing", "error", "stuck"), _BAD)
_LABEL_STYLES = {"error": _BAD, "degraded": _BUSY}

NO_WORKSPACES = "no workspaces yet. Make one: memctl init DIR"
NONE_YET = PageBlock("", [(Cell(NO_WORKSPACES),)])


def status(answer: dict[str, Any]) -> list[PageBlock]:
    """Return the facts of the daemon and of each workspace; several workspaces are compared in a table."""
    known = answer["workspaces"]
    if len(known) <= 1:
        return [server(answer), *(map(workspace, known) if known else [NONE_YET])]
    table = PageBlock("", [_row(entry) for entry in known], COLUMNS, frozenset(NUMBERS))
    return [server(answer), table, *(block for entry in known if (block := _beyond_row(entry)).rows)]


def health(answer: dict[str, Any]) -> list[PageBlock]:
    """Return a row for each check, then the verdict."""
    ok = bool(answer["ok"])
    verdict = Cell("healthy", f"{HEADING};{_GOOD}") if ok else Cell("not healthy", _BAD)
    rows = [
        (
            Cell("ok  ", _GOOD) if check["ok"] else Cell("FAIL", _BAD),
            Cell(one_line(check["name"])),
            Cell(with_install_line(one_line(str(check.get("detail") or ""))), FAINT),
        )
        for check in answer["checks"]
    ]
    return [PageBlock("", rows), PageBlock("", [(verdict,)])]


def workspaces(answer: dict[str, Any]) -> list[PageBlock]:
    """Return a table of the workspaces."""
    rows = [
        (
            Cell(one_line(entry["root"])),
            _state_cell(one_line(entry["state"])),
            *(Cell(f"{entry.get(key) or 0:,}") for key in ("sources", "chunks")),
        )
        for entry in answer["workspaces"]
    ]
    kept = [
        _facts(one_line(one["root"]), [("config", _kept(one))])
        for one in answer["workspaces"]
        if "config" in one
    ]
    return [PageBlock("", rows, LISTED, frozenset(LISTED[2:])) if rows else NONE_YET, *kept]


def _kept(known: dict[str, Any]) -> str:
    return f"{one_line(known['config'])}, as the folder is read-only"


def workspace_lines(answer: dict[str, Any]) -> list[str]:
    """Return the workspaces as programs read them: a line for each, with tabs."""
    return [
        f"{one_line(entry['root'])}\t{one_line(entry['state'])}"
        f"\t{counted(entry.get('sources'), 'source')}\t{counted(entry.get('chunks'), 'chunk')}"
        + (f"\tconfig: {_kept(entry)}" if "config" in entry else "")
        for entry in answer["workspaces"]
    ] or [NO_WORKSPACES]


def _facts(title: str, facts: Iterable[tuple[str, str]]) -> PageBlock:
    return PageBlock(
        title,
        [
            (
                Cell(f"{label:<{_LABEL_WIDTH}}", FAINT),
                _state_cell(value) if label == "state" else Cell(value, _LABEL_STYLES.get(label, "")),
            )
            for label, value in facts
        ],
    )


def _state_cell(text: str) -> Cell:
    return Cell(text, _STATE_STYLES.get(text.partition(",")[0], ""))


def server(status: dict[str, Any]) -> PageBlock:
    """Return the facts of the daemon itself."""
    about = status["server"]
    memory_mb, lag_ms = about.get("memory_mb"), about.get("loop_lag_ms")
    until, limits = about.get("paused_until"), about.get("parser_sandbox")
    of_model = ("state", "provider", "id", "error")
    held = f"the parser of long notes is limited: {', '.join(limits)}" if limits else "none for the parser"
    if limits and (missing := [limit for limit in SANDBOX_LIMITS if limit not in limits]):
        held += f"; missing: {', '.join(missing)}"
    return _facts(
        f"memd {one_line(str(about.get('version', '')))}",
        [
            ("process", f"{about.get('pid')}, up {duration(about.get('uptime_s') or 0)}"),
            ("memory", "not known on this system" if memory_mb is None else f"{memory_mb:.0f} MB"),
            *([("loop lag", f"{lag_ms:.1f} ms")] if lag_ms is not None else []),
            *(
                ("model", one_line(", ".join(str(model[key]) for key in of_model if model.get(key))))
                for model in about.get("models") or ()
            ),
            *([("sandbox", held)] if limits is not None else []),
            *([("embedding", f"paused until {moment(until)}: memctl pause --off ends it")] if until else []),
            *([("team", _team(about["team"]))] if about.get("team") else []),
            *(("error", one_line(str(error))) for error in about.get("errors") or ()),
        ],
    )


def _team(team: dict[str, Any]) -> str:
    """Return one line about the team's store."""
    if not team["address"]:
        return one_line(team["error"])
    known = team["workspaces"]
    if not any(one["stage"] != "unknown" for one in known):
        return f"{one_line(team['address'])}: no workspace is published (memctl team publish ROOT)"
    shared = f"the text of {counted(len(known), 'workspace')} is published to {one_line(team['address'])}"
    waiting = f"; {counted(team['waiting'], 'source')} to be sent" if team["waiting"] else ""
    return f"{shared}{waiting}" + (f"; {with_install_line(one_line(team['error']))}" if team["error"] else "")


def team_lines(team: dict[str, Any]) -> list[str]:
    """Return the page of `memctl team status`."""
    if not team["address"]:
        return [f"error: {one_line(team['error'])}"]
    reached = {None: "not asked yet", True: "answers", False: "does not answer"}[team["reachable"]]
    if team["reachable"] and team["error"]:  # also without its client: then nobody was asked
        reached = "cannot be used now"
    lines = [f"{one_line(team['address'])} ({one_line(team['collection'])}): {reached}"]
    if team["last_acknowledged"]:
        lines.append(f"last sent: {moment(team['last_acknowledged'])}")
    if team["error"] or team["last_error"]:
        kind = "error" if team["error"] else "last error"
        lines.append(f"{kind}: {with_install_line(one_line(team['error'] or team['last_error']))}")
    if not team["workspaces"]:
        lines.append("no workspace is published: memctl team publish ROOT")
    lines += [line for one in team["workspaces"] for line in _team_workspace(one)]
    return lines + [
        f"{one_line(one['root'])}: may still be in {one_line(one['address'])}, which [team] named before: "
        f"name it again, then memctl team unpublish {one_line(one['root'])}"
        for one in team.get("elsewhere", ())
    ]


def _team_workspace(one: dict[str, Any]) -> list[str]:
    saying = {
        "published": "published",
        "publishing": "is being published",
        "withdrawing": "will be removed from the store when it answers",
        "closed": "is not open: memctl status",
        "unknown": "share names it, but no workspace has this root: memctl init, or memctl team unpublish",
        "refused": "is not published",
        "left": "left in the store by this login and machine: memctl team unpublish "
        + shlex.quote(one_line(one["root"])),
    }
    line = f"{one_line(one['root'])}: {saying[one['stage']]}"
    if one["stage"] in {"published", "publishing"}:
        line += f", {counted(one['sources'], 'source')} in the store"
        line += f", {one['waiting']:,} to be sent" if one["waiting"] else ""
    more = [f"  by words only: {one_line(one['words_only'])}"] if one["words_only"] else []
    return [line, *more, *(f"  not taken: {one_line(reason)}" for reason in one["refused"])]


def workspace(known: dict[str, Any]) -> PageBlock:
    """Return the facts of one workspace."""
    errors = [("error", one_line(str(error))) for error in known.get("errors") or ()]
    if "sources" not in known:  # it could not be opened: only the reason is known
        return _facts(one_line(known["root"]), [("state", _state(known)), *errors])
    amounts = [counted(known.get(f"{noun}s"), noun) for noun in ("source", "chunk", "vector")]
    checked = known.get("last_check") or {}
    found = "no problems" if checked.get("ok") else "problems found: memctl check"
    verdict = f"{moment(checked.get('at'))}, {one_line(str(checked.get('detail') or found))}"
    # When all was searchable; what is indexed already can be searched before that.
    when = known.get("last_index")
    facts = [
        ("state", _state(known)),
        ("content", ", ".join(amounts)),
        ("pending", _pending(known)),
        # Chunks that get no vector, with the reasons.
        *[
            (label, f"{counted(count, 'chunk')}: {why}")
            for label, why in (("unreadable", NOT_READ), ("beyond", TOO_FAR))
            if (count := known.get(label))
        ],
        *([("model", model_of(known))] if model_of(known) else []),
        *([("config", _kept(known))] if "config" in known else []),
        *_unusual(known),
        ("last scan", moment(known.get("last_scan"))),
        ("last index", "not complete yet" if when is None and known.get("chunks") else moment(when)),
        *([("last check", verdict)] if checked else []),
        ("size", size(known.get("size_bytes"))),
    ]
    facts += [("degraded", reasons(known["degraded"]))] if known.get("degraded") else []
    folders = [("left out", f"{one_line(folder)} (templates)") for folder in known.get("templates") or ()]
    facts += errors + _first(
        known, "skipped", "skipped",
        lambda file: f"{file['path']} ({': '.join(filter(None, (file['reason'], file.get('detail'))))})",
    )  # fmt: skip
    facts += folders + _first(known, "copies", "copy", lambda path: f"{path} (of a sync conflict)")
    facts += _first(known, "warnings", "warning", lambda file: f"{file['path']} ({file['warning']})")
    return _facts(one_line(known["root"]), facts)


def _row(known: dict[str, Any]) -> tuple[Cell, ...]:
    """Return a workspace as a row under `COLUMNS`; its numbers are empty if it could not be opened."""
    numbers = [
        f"{known.get(key) or 0:,}" if "sources" in known else ""
        for key in ("sources", "chunks", "vectors", "pending")
    ]
    state = one_line(str(known.get("state") or "unknown"))
    return Cell(one_line(known["root"])), _state_cell(state), *map(Cell, numbers), Cell(model_of(known))


def _beyond_row(known: dict[str, Any]) -> PageBlock:
    """Return the facts that a row under `COLUMNS` lacks."""
    in_row = {"content", "model"}
    in_row |= set() if known.get("pending") else {"pending"}
    in_row |= set() if known.get("lag_ms") else {"state"}
    block = workspace(known)
    return PageBlock(block.title, [row for row in block.rows if row[0].text.strip() not in in_row])


def duration(seconds: float) -> str:
    """Return a time span in its two largest units."""
    whole = int(seconds)
    for unit, length, small, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length} {unit} {whole % length // part} {small}"
    return f"{whole} s"


def size(bytes_: int | None) -> str:
    """Return a size with an SI unit."""
    amount = float(bytes_ or 0)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 (SI)
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def moment(when: float | str | None) -> str:
    """Return a timestamp (Unix seconds, or text that is passed through) in local time."""
    if when is None:
        return "never"
    if isinstance(when, str):
        return one_line(when)
    return datetime.fromtimestamp(when, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def counted(number: int | None, noun: str) -> str:
    """Return *number* and *noun*, the noun in the plural unless the number is 1."""
    return f"{number or 0:,} {noun}{'' if number == 1 else 's'}"


def model_of(known: dict[str, Any]) -> str:
    """Return the model or provider of a workspace's vectors; "" if memd is too old to send it."""
    provider, model_id = str(known.get("provider") or ""), str(known.get("model_id") or "")
    # Ids of models on a server contain the name; the others are checksums, which mean nothing to people.
    served = model_id.startswith(("ollama:", "openai:"))
    named = model_id.partition(":")[2].rpartition("@")[0] if served else ""
    return one_line(named or provider)


def _state(known: dict[str, Any]) -> str:
    state = one_line(str(known.get("state") or "unknown"))
    lag_ms = known.get("lag_ms") or 0
    return f"{state}, oldest change not searched yet: {duration(lag_ms / 1000)} ago" if lag_ms else state


def _pending(known: dict[str, Any]) -> str:
    files, vectors = known.get("pending_files") or 0, known.get("pending_vectors") or 0
    if not (files or vectors):
        return "nothing"
    share = f"; {embedding(vectors, known)}" if vectors else ""
    return f"{counted(files, 'file')}, {counted(vectors, 'vector')}{share}"


def _unusual(known: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the facts that are shown only if they are unusual."""
    facts = []
    if watching := _WATCHING.get(known.get("watching") or "events"):
        facts.append(("watching", watching))
    if renewed := RENEWED.get(known.get("renewed") or ""):
        facts.append(("index", renewed))
    if building := known.get("building"):
        done, total = building.get("done") or 0, building.get("total") or 0
        model = one_line(str(building.get("model_id") or ""))
        facts.append(("building", f"{done:,} of {total:,} vectors of the new model {model}".rstrip()))
    if rebuilding := known.get("rebuilding"):
        done, total = rebuilding.get("done") or 0, rebuilding.get("total") or 0
        kind = {"index": "files", "embed": "vectors"}.get(str(rebuilding.get("stage")))
        amount = f"{done:,} of {total:,} {kind}" if kind else "scanning the folder"
        facts.append(("rebuilding", f"{amount} of the index that will replace the current one"))
    if gone := known.get("gone"):
        kept = f"{counted(gone, 'source')}, kept for a day: memctl index --purge deletes it now"
        facts.append(("gone", one_line(known.get("held") or kept)))
    facts += [("set aside", f"{one_line(path)}: {SET_ASIDE}") for path in known.get("set_aside") or ()]
    if (sidecars := known.get("sidecars")) and any(sidecars.values()):
        parts = [f"{sidecars.get(key) or 0:,} {key}" for key in ("read", "written")]
        ignored = (sidecars.get("ignored") or {}).items()
        parts += [f"{count:,} ignored ({one_line(why)})" for why, count in ignored]
        facts.append(("sidecars", ", ".join(parts)))
    return facts


_WATCHING = {
    "polling": "by polling: this folder gives no reliable events",
    "none": "not at the moment: the next scan finds changes",
}


def _first(known: dict[str, Any], key: str, label: str, text: Callable[[Any], str]) -> list[tuple[str, str]]:
    """Return the first of the files that are listed under *key*, and how many more there are."""
    facts = [(label, one_line(text(one))) for one in (known.get(key) or ())[:SKIPPED_SHOWN]]
    more = (known.get(f"{key}_total") or len(facts)) - len(facts)
    return [*facts, (label, f"{more} more: memctl status --json")] if more > 0 else facts


SANDBOX_LIMITS = ("privileges", "files", "sockets", "calls")
SET_ASIDE = "an older index, with the text of notes at that time; memctl index --purge deletes it"
NOT_READ = "the model does not read their script; found by words only"
TOO_FAR = "beyond the first parts of a long note; found by words only"
