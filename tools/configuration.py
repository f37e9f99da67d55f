"""Writes docs/configuration.md and the JSON schemas of both configuration files from their structs.

    .venv/bin/python -m tools.configuration

A key without a meaning in MEANINGS is an error: what is undocumented is not released. A test fails if the page
or a schema is older than the structs.
"""

import json
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from memd.config import InputType, OpenAIServer, TeamConfig, UserConfig, Weights, WorkspaceConfig

ROOT = Path(__file__).parents[1]
COMMAND = ".venv/bin/python -m tools.configuration"
SCHEMAS = {"docs/config.schema.json": WorkspaceConfig, "docs/user-config.schema.json": UserConfig}
MEANINGS: dict[type, dict[str, str]] = {
    WorkspaceConfig: {
        "sources": "patterns of the files that are read, as in `.gitignore`",
        "ignore": "patterns of files that are not read",
        "agents_ignore": "patterns of files that you find and agents do not, on any channel",
        "chunk_words": "words of a chunk, the part of a note that is found and embedded",
        "chunk_overlap": "words that a chunk repeats of the one before; at most half of `chunk_words`",
        "provider": "what computes vectors: the shipped library, a server, or nothing",
        "model": "the shipped model, a folder of an ONNX export, or a server's name for a model ([Models](models.md))",
        "address": "of the server, for `ollama` and `openai`; your own configuration must allow it",
        "sidecars": "store vectors beside the notes, for [several machines](daemon.md#several-machines)",
        "fusion": "how the scores of words and of meaning are merged ([Explanations](explaining.md))",
        "weights": "of the two, for `weighted`",
        "half_life_days": "age at which a [diary](searching.md#the-score) has lost half of what it can lose",
        "decay_floor": "the share of its score that the oldest diary keeps; 1: age does not count",
        "decay": "patterns of other files that fade, if their names have a day",
        "min_score": "hits with a lower score are not shown",
        "southern_seasons": "whether spring begins in September where a question names a season",
        "languages": "languages whose word forms are found, too; `[]`: none",
        "max_results": "hits of an answer, if the question does not say how many",
        "core": "notes at the start of each `recall`; those that exist",
    },
    Weights: {"vector": "of meaning", "keyword": "of words; if both are 0, the configuration is refused"},
    UserConfig: {
        "models": "folders of models that a workspace may choose",
        "addresses": "of servers that a workspace may choose; your list replaces the default",
        "openai": "a table for each server with the OpenAI API; it also allows the address",
        "allow_remote": "allow addresses on other machines, to which the text of notes is then sent",
        "scripts": "scripts that models read which do not declare theirs, by Unicode's names; without the key: all",
        "team": "the store of a team, to which `memctl team publish` sends the text of workspaces; without the table: none",
    },
    OpenAIServer: {
        "api_key": "sent to this address only, never shown",
        "api_key_env": "the environment variable with the key, which goes before `api_key`",
        "query_prefix": "text before each question, which some models need",
        "document_prefix": "text before each chunk",
        "query_model": "the server's name of the model for questions, instead of `model`",
        "document_model": "that for chunks; both must put texts into the same vector space",
        "input_type": "values of a request's `input_type`, for a server that adds prefixes itself; not sent without it",
        "max_tokens": "tokens of one text that the model reads",
    },
    TeamConfig: {
        "uri": "of Milvus: `https://HOST:PORT`; `http://HOST:PORT` on this machine alone; `milvus+lite:///PATH`, a file for one daemon",
        "token_file": "file with the token, which only you may read (`chmod 600`)",
        "ca": "file with the certificate of the CA of the store's certificate; without it, those of the system are trusted",
        "database": "of Milvus; without it, its default",
        "collection": "the name that the machines of the team share; its vectors are of one model",
        "name": "of this machine, as hits show it; without it, the host's. For machines with the same login and host name",
        "share": "roots of the workspaces that are published; `memctl team publish` and `unpublish` change it",
    },
    InputType: {"query": "for questions", "document": "for chunks"},
}
HEAD = f"""# Configuration

Made of the structs that check the files (`{COMMAND}`).

Every key may be missing. A key that memd does not know, or a value of another type or outside its range, is an error that names
the file, the key and what is allowed. A workspace's file is read again when it is saved, and both files at SIGHUP.

Editors complete and check keys with the JSON schemas [config.schema.json](config.schema.json) and
[user-config.schema.json](user-config.schema.json), for example Taplo's (`#:schema PATH` on the first line).

## `memory/config.toml`

Of a workspace. It may come with a git clone, so it can only choose among the folders and addresses that your own file allows.
`memctl workspaces configure KEY=VALUE` changes a key and keeps your comments.

For a folder that cannot be written (a read-only mount, another user's notes), `memctl init` keeps this file in memd's state folder
and says where; `memctl status` does, too. There it is read at the next scan, or at `memctl sync`. The folder's file system and inode
number are then the sign that its disk is there: while another folder lies at its path, such as an empty mount point, the index goes
on answering, and no note counts as deleted. Once the folder can be written, `memctl init` moves the settings into it.
"""
USER = """
## `~/.config/memd/config.toml`

Your own, for all workspaces; `$XDG_CONFIG_HOME/memd/config.toml` if that variable is set.
"""
OTHERS = """
## Environment

| variable | meaning |
|---|---|
| `MEMD_WORKSPACE` | the workspace of memctl, unless `--workspace` names one |
| `MEMD_SOCKET` | the daemon's socket |
| `MEMD_HOOK_MS` | the time that a [hook](agents.md#hooks) may take, in milliseconds (1000) |
| `XDG_RUNTIME_DIR`, `XDG_STATE_HOME`, `XDG_CONFIG_HOME`, `XDG_DATA_HOME` | where [files are](daemon.md#where-things-are) |
| `MEMCTL_EDITOR`, `VISUAL`, `EDITOR` | the editor of `memctl open` and `find` |
| `MEMCTL_PAGER`, `PAGER` | the pager of long pages |
| `MEMCTL_HYPERLINK_FORMAT` | the program that links on a terminal open: `vscode`, `cursor`, `zed`, `none`, … |
| `NO_COLOR` | no colours |
| `HF_ENDPOINT` | the hub of `memctl models add` |

One daemon serves every shell, so it takes little from the one that starts it: `HOME`, `PATH`, `TMPDIR`, `TZ`, the locale, `XDG_*`,
`MEMD_*`, `SSL_CERT_FILE` and what `api_key_env` names. Names of files are UTF-8 in every locale, memd's own folders are private
whatever `umask` is, and soft limits (`ulimit -S`) are raised.
"""


def page() -> str:
    """Return docs/configuration.md."""
    server = '\n### `[openai."http://127.0.0.1:8080"]`\n'
    parts = [HEAD, _table(WorkspaceConfig), "\n### `[weights]`\n", _table(Weights), USER, _table(UserConfig)]
    kinds = '\n### `[openai."http://127.0.0.1:8080".input_type]`\n'
    team = ["\n### `[team]`\n", _table(TeamConfig)]
    return "".join([*parts, server, _table(OpenAIServer), kinds, _table(InputType), *team, OTHERS])


def schema(kind: type) -> str:
    """Return the JSON schema of one file, with the meaning of each key."""
    made = msgspec.json.schema(kind)
    structs = {one.__name__: meanings for one, meanings in MEANINGS.items()}
    for name, described in made["$defs"].items():
        described.pop("description", None)
        for key, value in described["properties"].items():
            value["description"] = structs[name][key].replace("`", "")
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema"} | made, indent=1) + "\n"


def generated() -> dict[Path, str]:
    """Return each file's path, relative to the checkout, with its text."""
    made = {Path(path): schema(kind) for path, kind in SCHEMAS.items()}
    return {Path("docs/configuration.md"): page()} | made


def _table(kind: type) -> str:
    hints = get_type_hints(kind, include_extras=True)
    rows = ["\n| key | value | default | meaning |\n|---|---|---|---|\n"]
    for field in msgspec.structs.fields(kind):
        said = MEANINGS[kind][field.name]
        rows.append(f"| `{field.name}` | {_value(hints[field.name])} | {_default(field)} | {said} |\n")
    return "".join(rows)


def _value(hint: Any) -> str:
    """Return how a table names a type: "0 to 1", "`onnx`, `none`", "list of text"."""
    metas = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, msgspec.Meta)]
    if metas:
        return _bounded(_value(hint.__origin__), metas[0])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        shown = ", ".join(f"`{one}`" for one in arguments)
        return shown if len(arguments) < 10 else f"one of {shown}"  # noqa: PLR2004 - arbitrary
    if origin is tuple:
        return f"list of {_value(arguments[0])}"
    if members := [one for one in arguments if one is not NoneType]:
        return "table" if origin is dict else _value(members[0])
    names = {str: "text", bool: "true or false", int: "whole number", float: "number"}
    return names.get(hint, "table")


def _bounded(value: str, meta: msgspec.Meta) -> str:
    low, high = meta.ge if meta.ge is not None else meta.gt, meta.le
    if low is None or high is None:
        return value
    above = "above " if meta.ge is None else ""
    return f"{value}, {above}{low:,} to {high:,}"


def _default(field: Any) -> str:
    default = field.default
    if field.required:
        return "required"
    if default is msgspec.NODEFAULT:
        default = field.default_factory()
    if isinstance(default, msgspec.Struct) or default == {}:
        return ""
    if default is None:
        return ""
    shown = json.dumps(list(default) if isinstance(default, tuple) else default)
    return f"`{shown}`"


if __name__ == "__main__":
    for path, text in generated().items():
        (ROOT / path).write_text(text, encoding="utf-8")
