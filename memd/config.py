"""The configuration: its structs, defaults and checks; the only reader of TOML.

There are two files: a workspace's ``memory/config.toml``, which may come with a git clone and is therefore
hardly trusted, and the user's own ``config.toml``, which alone may allow model folders and addresses.
"""

import json
import os
import shlex
import stat
import textwrap
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from memd import fsio
from memd.errors import ConfigError, UnsafeError
from memd.languages import Language
from memd.text import Script

Share = Annotated[float, Meta(ge=0, le=1)]
COMMENT_CHARS = 108  # of a line of the file that is written
MAX_CONFIG_BYTES = 1024 * 1024  # arbitrary; far above any real configuration


class Weights(Struct, frozen=True, forbid_unknown_fields=True):
    """The weights of the arms' scores; renormalized over the arms that scored a chunk."""

    vector: Share = 0.7
    keyword: Share = 0.3

    def __post_init__(self) -> None:
        """Reject weights that would make every score 0."""
        if self.vector + self.keyword == 0:
            raise ValueError("vector and keyword are both 0: give one of them a weight")


class WorkspaceConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``memory/config.toml``: all keys are optional, with the defaults that ``memctl init`` writes."""

    sources: tuple[str, ...] = ("**/*.md", "**/*.markdown")
    ignore: tuple[str, ...] = ()
    agents_ignore: tuple[str, ...] = ()
    # 20: a shorter chunk has no context. 1,000: far more than any shipped model reads at once.
    chunk_words: Annotated[int, Meta(ge=20, le=1000)] = 200
    chunk_overlap: Annotated[int, Meta(ge=0, le=500)] = 50
    provider: Literal["onnx", "ollama", "openai", "none"] = "onnx"
    model: Annotated[str, Meta(min_length=1)] = "all-MiniLM-L6-v2"
    address: str = "http://127.0.0.1:11434"
    sidecars: bool = False
    fusion: Literal["weighted", "rrf"] = "weighted"
    weights: Weights | None = None  # by default the matched words decide: `ranking.weights_matched`
    half_life_days: Annotated[float, Meta(gt=0, le=36500)] = 30.0
    # Recency breaks ties between nearly equal notes and does no more: with half, talks of the last year lose
    # a third of their nDCG.
    decay_floor: Share = 0.95
    decay: tuple[str, ...] = ()  # patterns of files that fade, too, if their names have a day
    min_score: Share = 0.1
    languages: tuple[Language, ...] = ("english",)  # whose word forms are looked for, too; (): none
    southern_seasons: bool = False
    max_results: Annotated[int, Meta(ge=1, le=1000)] = 10
    core: tuple[str, ...] = ("MEMORY.md", "memory/MEMORY.md")  # at the start of each recall

    def __post_init__(self) -> None:
        """Reject an overlap with which a chunk would never advance."""
        if self.chunk_overlap * 2 > self.chunk_words:
            raise ValueError(
                f"chunk_overlap = {self.chunk_overlap} is more than half of chunk_words = "
                f"{self.chunk_words}: use at most {self.chunk_words // 2}"
            )


# What `memctl init` writes above the defaults of these keys.
COMMENTS = {
    "sources ignore": "Which files are searched, and which of them are left out (gitignore patterns, "
    "relative to the workspace).",
    "agents_ignore": "Notes that no agent may see (patterns of the same kind), besides those with private: "
    "true in front matter.",
    "chunk_words chunk_overlap": "How long a chunk is, and how much of it is repeated in the next one, in "
    "words.",
    "provider model address": 'Which model turns text into vectors: "onnx" is in-process and offline; '
    '"ollama" asks a local server, "openai" one with the OpenAI embeddings API (llama.cpp, LM Studio, '
    'vLLM, TEI); "none" searches by keyword only. A model folder or another address must also be named in '
    "your own ~/.config/memd/config.toml, because this file may arrive with a git clone.",
    "sidecars": "Keep vectors in memory/index/vectors/ too, so that another machine that receives this "
    "folder by git or Dropbox embeds nothing again.",
    "languages": 'The languages of the notes, in which a word also finds its other forms ("inhibits" finds '
    '"inhibition"). A question that shows none of them is read in the first one. [] searches words exactly '
    "as typed.",
    "fusion weights": 'How the two arms are merged: "weighted" (scores) or "rrf" (ranks). Without weights, '
    "words count the more, the more words of the question a note has; weights are used as they are.",
    "decay_floor half_life_days": "A diary, as 2026-05-01.md or what begins with a day below memory/, always "
    "keeps the share decay_floor of its score, and loses half of the rest every half_life_days.",
    "decay": "Other files that fade, if their names have a day (patterns of the same kind as above).",
    "southern_seasons": 'Whether spring begins in September in a question like "what did we do last spring".',
    "min_score max_results": "Hits with a lower score before that decay are not shown; the default number "
    "of hits.",
    "core": "Notes at the head of each recall, within a quarter of its budget.",
}


EXAMPLES = {"weights": msgspec.to_builtins(Weights())}  # of settings that have no default


def config_template() -> str:
    """Return the text of a new ``memory/config.toml``: a comment for each key, and its default."""
    defaults = msgspec.to_builtins(WorkspaceConfig())
    parts = ["# The settings of memd for this folder. Every line is optional and shows the default."]
    parts += ['# Remove the "# " before a setting to change it; memd reads the file again when it is saved.']
    for keys, comment in COMMENTS.items():
        parts += ["", *(f"# {line}" for line in textwrap.wrap(comment, COMMENT_CHARS))]
        parts += [f"# {key} = {_toml(EXAMPLES.get(key, defaults[key]))}" for key in keys.split()]
    return "\n".join(parts) + "\n"


def _toml(value: object) -> str:
    """Return a default as TOML on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


class InputType(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The values of a request's `input_type`, from which a server chooses its own prefixes."""

    query: Annotated[str, Meta(min_length=1)]
    document: Annotated[str, Meta(min_length=1)]


class OpenAIServer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Access to one server with the OpenAI embeddings API, and its model."""

    api_key: str = ""
    api_key_env: str = ""  # the environment variable of the key; takes precedence over api_key
    query_prefix: str = ""
    document_prefix: str = ""
    query_model: str = ""  # "": the workspace's model
    document_model: str = ""  # in the same vector space as query_model
    input_type: InputType | None = None  # None: not sent
    # Word pieces of one text. 254: the shortest of the common models, as for an unknown model of Ollama.
    max_tokens: Annotated[int, Meta(ge=20, le=100_000)] = 254

    def __repr__(self) -> str:
        """Return a text without the key, so that a printed configuration does not show it."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__ if name != "api_key"}
        return f"OpenAIServer({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class TeamConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[team]``: the Milvus that the machines of a team share, and which workspaces this one publishes."""

    uri: Annotated[str, Meta(min_length=1)]
    token_file: str = ""  # "": no token
    ca: str = ""  # "": the certificates of the system
    database: str = ""  # "": the store's default
    collection: Annotated[str, Meta(min_length=1)] = "memd"
    name: Annotated[str, Meta(max_length=200)] = ""  # of this machine in hits; "": that of the host
    share: tuple[str, ...] = ()  # roots of workspaces; none is published by itself


class UserConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``~/.config/memd/config.toml``: what workspaces may choose from."""

    models: tuple[str, ...] = ()  # folders of ONNX exports, and names of installed models
    addresses: tuple[str, ...] = ("http://127.0.0.1:11434",)  # of Ollama and OpenAI-compatible servers
    openai: dict[str, OpenAIServer] = {}  # address → settings; also allows the address
    allow_remote: bool = False  # addresses other than loopback
    # Scripts of the models that do not declare theirs; None: all scripts.
    scripts: Annotated[tuple[Script, ...], Meta(min_length=1)] | None = None
    team: TeamConfig | None = None  # by `load_team_config` alone, so that a fault in it affects nothing else


SERVED = frozenset({"ollama", "openai"})  # providers on a server
BUILTIN_MODEL = "all-MiniLM-L6-v2"
TEAM_SCHEMES = ("https", "http", "milvus+lite")
MAX_TOKEN_BYTES = 8192  # arbitrary; tokens have some hundred bytes
Config = TypeVar("Config", WorkspaceConfig, UserConfig, TeamConfig)


def load_workspace_config(path: Path) -> WorkspaceConfig:
    """Read a workspace's configuration.

    Raises:
        ConfigError: one line with the file, the key, what is wrong with its value, and what is allowed.
    """
    return _convert(path, _table(path), WorkspaceConfig)


def load_user_config(path: Path) -> UserConfig:
    """Read the user's configuration, without [team]; a missing file means defaults."""
    if not path.exists():
        return UserConfig()
    return _convert(path, {key: value for key, value in _table(path).items() if key != "team"}, UserConfig)


def load_team_config(path: Path) -> TeamConfig | None:
    """Read [team] of the user's configuration; None if there is none.

    Raises:
        ConfigError: one line with the key, what is wrong with its value, and what to do.
    """
    table = _table(path).get("team") if path.exists() else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigError(f'{path}: team is no table: write [team] and uri = "https://HOST:PORT" below it')
    if "uri" not in table and table.keys() <= set(TeamConfig.__struct_fields__):
        raise ConfigError(f'{path}: [team] needs uri = "https://HOST:PORT"')
    try:
        config = _convert(path, table, TeamConfig)
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"{path}: ", f"{path}: [team] ", 1)) from error
    if fault := _team_fault(config):
        raise ConfigError(f"{path}: [team] {fault}")
    return config


def team_token(config: TeamConfig) -> str:
    """Return the token for the team's store; "" without one.

    Raises:
        ConfigError: its file cannot be read, or others can read it.
    """
    if not config.token_file:
        return ""
    path = Path(config.token_file).expanduser()
    what = f"[team] token_file = {config.token_file!r}"
    try:
        with fsio.regular(path) as descriptor:
            status = os.fstat(descriptor)
            if status.st_mode & 0o077 or status.st_uid not in {os.getuid(), 0}:
                mode = f"{stat.S_IMODE(status.st_mode):04o}"
                raise ConfigError(
                    f"{what} has mode {mode}: others may read it. chmod 600 {shlex.quote(str(path))}"
                )
            raw = os.read(descriptor, MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{what} cannot be read: {error.strerror}") from error
    try:
        token = raw.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or len(raw) > MAX_TOKEN_BYTES or not token.isprintable():
        raise ConfigError(f"{what} holds no token: expected one line of printable ASCII")
    return token


def with_settings(path: Path, settings: dict[str, Any]) -> WorkspaceConfig:
    """Return the configuration in *path* with some keys replaced; write nothing."""
    table = _table(path) | settings
    return _convert(path, table, WorkspaceConfig)


def check_allowed(path: Path, config: WorkspaceConfig, user: UserConfig, user_path: Path) -> None:
    """Reject a model folder or an address that the user's own configuration does not allow.

    Raises:
        ConfigError: with the line to add to the user's configuration.
    """
    if config.provider == "onnx" and config.model != BUILTIN_MODEL:
        folder = Path(config.model).expanduser()
        if folder not in [Path(known).expanduser() for known in user.models]:
            what = "an installed model" if is_installed_name(config.model) else "a folder"
            raise ConfigError(
                f"{path}: model = {config.model!r} is {what} that {user_path} does not name. A workspace "
                f"may only choose what you allow: add it there as models = [{config.model!r}]"
            )
    if config.provider not in SERVED:
        return
    named = {*user.addresses, *(user.openai if config.provider == "openai" else ())}
    if config.address not in named:
        raise ConfigError(
            f"{path}: address = {config.address!r} is not among those of {user_path}: "
            f"add it there as addresses = [{config.address!r}]"
        )
    if not (user.allow_remote or _is_loopback(config.address)):
        raise ConfigError(
            f"{path}: address = {config.address!r} leaves this machine: "
            f"set allow_remote = true in {user_path} if that is intended"
        )


def is_installed_name(model: str) -> bool:
    """Return whether *model* is the name of an installed model, not a folder."""
    return "/" not in model and not model.startswith(("~", "."))


def _team_fault(config: TeamConfig) -> str:  # noqa: PLR0911 - one line for each fault
    """Return what is wrong with the values of [team]; "" if nothing is."""
    if "@" in config.uri:
        return "uri holds a name or a password: a token belongs into token_file"
    try:
        uri = urlsplit(config.uri)
        port = uri.port
    except ValueError as error:
        return f"uri = {config.uri!r} is not an address: {error}"
    allowed = ", ".join(f"{scheme}://" for scheme in TEAM_SCHEMES)
    if uri.scheme not in TEAM_SCHEMES:
        return f"uri = {config.uri!r} begins with none of {allowed}"
    is_file = uri.scheme == "milvus+lite"
    if is_file and (uri.netloc or not uri.path.strip("/")):
        return f"uri = {config.uri!r} names no file: {uri.scheme}:///PATH"
    if not is_file and (not uri.hostname or uri.path.strip("/") or (port == 0)):
        return f"uri = {config.uri!r} names no host: {uri.scheme}://HOST:PORT"
    if uri.scheme == "http" and not _is_loopback(config.uri):
        return f"uri = {config.uri!r} would send notes readably over the network: use https://"
    if config.ca and uri.scheme != "https":
        return f"ca is set, but uri = {config.uri!r} does not use TLS"
    if config.ca and not Path(config.ca).expanduser().is_file():
        return f"ca = {config.ca!r} is no file"
    relative = next((root for root in config.share if not Path(root).expanduser().is_absolute()), None)
    if relative is not None:
        return f"share = {relative!r}: expected the absolute path of a workspace's root"
    return ""


def _is_loopback(address: str) -> bool:
    try:
        return urlsplit(address).hostname in {"127.0.0.1", "localhost", "::1"}
    except ValueError:
        return False


def _table(path: Path) -> dict[str, Any]:
    try:
        raw = fsio.read_regular(path, MAX_CONFIG_BYTES + 1)
    except OSError as error:
        cure = ". Move it away" if isinstance(error, fsio.NotRegularError) else ""
        raise ConfigError(f"{path}: cannot be read: {error.strerror}{cure}") from error
    if len(raw) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_CONFIG_BYTES} bytes: not a configuration")
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8: save it in that encoding") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {_one_line(error)}") from error


def _convert(path: Path, table: dict[str, Any], kind: type[Config]) -> Config:
    for key in table:
        if key not in kind.__struct_fields__:
            raise ConfigError(f"{path}: {key}: unknown key; allowed are {', '.join(kind.__struct_fields__)}")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_explain(str(error), table, kind)}") from error


def _explain(message: str, table: dict[str, Any], kind: type[Struct]) -> str:
    """Turn "Expected `int`, got `str` - at `$.limit`" into "limit = 'a': expected int, got str"."""
    fault, _, place = message.replace("`", "").rpartition(" - at ")
    if not fault:
        return _one_line(message)
    key = place.removeprefix("$.")
    if key.startswith("openai"):
        # Without the value, which may be an API key.
        return f"{key.replace('[...]', '')}: {fault[0].lower()}{_one_line(fault[1:])}"
    value: Any = table
    for step in key.replace("[", ".").replace("]", "").split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    if fault.startswith("Invalid enum value"):
        fault = "expected one of " + ", ".join(map(repr, allowed_texts(kind, key.partition("[")[0])))
    return f"{key} = {value!r}: {fault[0].lower()}{_one_line(fault[1:])}"


def allowed_texts(kind: type[Struct], key: str) -> list[str]:
    """Return the texts that a value, or each value of a list, may be; [] if there is no such key."""

    def texts(part: object) -> list[str]:
        return [part] if isinstance(part, str) else [text for one in get_args(part) for text in texts(one)]

    return texts(get_type_hints(kind).get(key))


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def write_shared(path: Path, root: str, *, is_shared: bool) -> None:
    """Add a workspace to `share` of [team], or take it out; comments, order and other keys stay.

    Raises:
        ConfigError: there is no [team].
        NoSpaceError, StorageError: it cannot be written; the old content remains.
    """
    import tomlkit  # noqa: PLC0415 - as below

    target = path.resolve()
    document: Any = tomlkit.parse(target.read_text(encoding="utf-8-sig")) if target.exists() else {}
    if "team" not in document:
        raise ConfigError(f'no team is configured: write [team] and uri = "https://HOST:PORT" into {path}')
    shared = [str(one) for one in document["team"].get("share", ())]
    others = [one for one in shared if str(Path(one).expanduser()) != root]
    document["team"]["share"] = [*others, root] if is_shared else others
    fsio.replace_users(target, tomlkit.dumps(document).encode())


def write_settings(root: Path, path: Path, settings: dict[str, Any]) -> None:
    """Set top-level keys; comments, order and other keys stay. The file is replaced atomically and durably.

    Raises:
        NoSpaceError, StorageError: it cannot be written; the old content remains.
        UnsafeError: *path* is a link out of *root*, to a file that may belong to something else.
    """
    target = path.resolve()
    if not target.is_relative_to(root):
        raise UnsafeError(f"{path} links to {target}, out of the workspace: change that file yourself")
    import tomlkit  # noqa: PLC0415 - settings are rarely written, and the daemon's start does not need it

    document = tomlkit.parse(target.read_text(encoding="utf-8-sig"))
    for key, value in settings.items():
        document[key] = value
    fsio.replace_users(target, tomlkit.dumps(document).encode())
