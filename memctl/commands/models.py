"""`memctl models`: download models from the hub, list, use and remove them."""

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memctl import exits, launch, model_store, systemd, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.progress import Progress
from memctl.text import one_line
from memctl.versions import install_line

MAX_LISTING_BYTES = 32 * 1024 * 1024  # a list of 10,000 files has about 3 MB
ANSWER_TIMEOUT_S = 30.0  # longest time without a byte
MEASURE_TIMEOUT_S = 300.0  # six chunks are embedded; a large model on a small machine takes seconds for one


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    added = actions.add_parser("add", help="download a model; the only command of memd that downloads")
    added.add_argument("repo", metavar="REPO", help="on the hub, as intfloat/multilingual-e5-small")
    from_files = "(default: from the model's files)"
    added.add_argument("--query-prefix", metavar="TEXT", help=f"put before a query {from_files}")
    added.add_argument("--document-prefix", metavar="TEXT", help=f"put before a text {from_files}")
    added.add_argument(
        "--scripts", metavar="NAMES", help="scripts it reads, as Latin,Cyrillic (default: from your config)"
    )
    flag(added, "--yes", "do not ask")
    shown = actions.add_parser("list", help="print each model that was added or installed (the default)")
    flag(shown, "--json", "one object")
    used = actions.add_parser("use", help="allow a model in your user config.toml, and set it in a workspace")
    used.add_argument("name", metavar="NAME", help="as list prints it")
    workspace_option(used)
    removed = actions.add_parser("remove", help="delete what add downloaded, and no longer allow the model")
    removed.add_argument("name", metavar="NAME", help="as list prints it")
    parser.epilog = """\
examples:
  memctl models add intfloat/multilingual-e5-small --query-prefix 'query: ' --document-prefix 'passage: '
  memctl models use multilingual-e5-small -w ~/notes
  memctl models use multilingual -w ~/notes      # built and installed from a clone of memd: docs/models.md
HF_ENDPOINT names another hub. No token is sent.
"""


def run(args: Namespace) -> int:
    """Run the named action; the default is list."""
    return {"add": _add, "use": _use, "remove": _remove}.get(args.action, _list)(args)


def _add(args: Namespace) -> int:
    folder = model_store.folder_of(args.repo.rpartition("/")[2])
    if args.repo.count("/") != 1:
        raise CommandError(f"{args.repo!r} is not OWNER/NAME, as intfloat/multilingual-e5-small")
    if folder.exists():
        raise CommandError(f"{folder} is there already: memctl models remove {folder.name}")
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise CommandError(
            f"downloading models needs a library that is missing: {install_line('huggingface_hub>=2')}"
        ) from None
    hub = HfApi(library_name="memd")
    from huggingface_hub import hf_hub_url

    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _hub_errors(args.repo):
        listed = _listed(hub, args.repo)
        files = {each.rfilename: each for each in listed.siblings or []}
        names = model_store.wanted(set(files), args.repo)
        sizes_bytes = {name: _size(files[name]) for name in names}
        licence = str((listed.card_data or {}).get("license") or "not stated")
    size_bytes = sum(sizes_bytes.values())
    what = f"download {args.repo}: {size_bytes / 1e6:.1f} MB, licence {one_line(licence)}"
    if not args.yes and not common.agreed(what, f"This will {what}. Go on?"):
        return exits.NONE
    with _hub_errors(args.repo), model_store.staging() as made:
        staged = made / folder.name
        urls = {
            name: hf_hub_url(args.repo, name, revision=listed.sha, endpoint=hub.endpoint) for name in names
        }
        _download(urls, staged, sizes_bytes)
        sums = {}
        for name in names:
            hub_s = files[name]
            sha256 = hub_s.lfs.sha256 if hub_s.lfs else None
            sums[name] = model_store.check_file(staged / name, hub_s.size, sha256, hub_s.blob_id)
        given = {  # as memd reads them from the model's record
            "query_prefix": args.query_prefix, "document_prefix": args.document_prefix,
            "scripts": [name.strip() for name in args.scripts.split(",")] if args.scripts else None,
        }  # fmt: skip
        record = {
            "repo": args.repo, "revision": listed.sha, "license": licence, "size_bytes": size_bytes,
            "files": sums, **{key: value for key, value in given.items() if value is not None},
        }  # fmt: skip
        _write_record(staged, record)
        _write_record(staged, record | _measured(staged))
        staged.rename(folder)
    print(f"added: {folder}\nuse it: memctl models use {folder.name} -w FOLDER")
    return exits.OK


@contextmanager
def _hub_errors(repo: str) -> Iterator[None]:
    """Convert errors of the hub's library, also those about malformed answers, to `CommandError`."""
    from httpx2 import HTTPError  # base class of the errors of the hub's library
    from huggingface_hub.errors import HFValidationError

    try:
        yield
    except (HTTPError, HFValidationError, OSError) as error:
        raise CommandError(f"{repo} could not be downloaded: {one_line(str(error))}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise CommandError(
            f"{repo} could not be downloaded: the answer is not from a model hub "
            f"({one_line(str(error)) or type(error).__name__}). HF_ENDPOINT sets another hub"
        ) from error


def _listed(hub: Any, repo: str) -> Any:
    """Return the hub's `ModelInfo` of a repository, with its files and their sizes."""
    from huggingface_hub import hf_api

    _hub_utils().validate_repo_id(repo)
    url = f"{hub.endpoint}/api/models/{repo}?blobs=true"
    raw = b"".join(_body(url, MAX_LISTING_BYTES, f"the list of files of {repo}"))
    model_info: Any = hf_api.ModelInfo
    return model_info(**json.loads(raw))


def _download(urls: dict[str, str], folder: Path, sizes_bytes: dict[str, int]) -> None:
    """Download files to *folder*, each at most as large as listed, and show the progress."""
    done_bytes, total_bytes = 0, sum(sizes_bytes.values())
    with Progress() as progress:
        for name, url in urls.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for part in _body(url, sizes_bytes[name], path.name):
                    file.write(part)
                    done_bytes += len(part)
                    progress({"stage": "download", "done": done_bytes >> 10, "total": total_bytes >> 10})


def _body(url: str, most_bytes: int, what: str) -> Iterator[bytes]:
    """Yield the body of an answer of at most *most_bytes*; the hub's own client sets no limit."""
    utils = _hub_utils()
    headers = utils.build_hf_headers(token=False, library_name="memd") | {"Accept-Encoding": "identity"}
    left = most_bytes
    with utils.get_session().stream(
        "GET", url, headers=headers, follow_redirects=True, timeout=ANSWER_TIMEOUT_S
    ) as answer:
        utils.hf_raise_for_status(answer)
        for part in answer.iter_bytes():
            left -= len(part)
            if left < 0:
                raise CommandError(
                    f"{what} is larger than the hub listed: more than {most_bytes:,} bytes. Nothing was kept",
                    exits.STORAGE,
                )
            yield part


def _size(listed: Any) -> int:
    if type(listed.size) is not int or listed.size < 0:
        raise ValueError(f"no size of {listed.rfilename}")
    return listed.size


def _hub_utils() -> Any:
    """Return `huggingface_hub.utils` untyped: it does not mark its public names as exported."""
    from huggingface_hub import utils

    return utils


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    (folder / model_store.RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _measured(folder: Path) -> dict[str, Any]:
    import subprocess  # 8 ms, and only here

    command = [*launch.python_module("memd.embedding.measure"), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MEASURE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"memd did not embed six chunks within {MEASURE_TIMEOUT_S:g} s, nothing was kept: choose a "
            "smaller model"
        ) from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CommandError(f"memd cannot use this model, nothing was kept: {one_line(lines[-1])}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _list(args: Namespace) -> int:
    known, installed = model_store.records(), model_store.installed()
    fresh = {name: record for name, record in installed.items() if name not in known}
    if getattr(args, "json", False):
        common.print_json({"models": [{"name": name} | one for name, one in (known | fresh).items()]})
    else:
        for name, record in (fresh | known).items():
            origin, facts = record.get("repo"), f"{record['size_bytes'] / 1e6:.1f} MB"
            if name in known:
                facts += f"  {record['ms_per_chunk']:g} ms a chunk"
            else:
                origin = f"package {record['package']} {record['version']}"
            print(one_line(f"{name}  {origin}  {facts}  licence {record['license']}"))
        if not (known or installed):
            common.note(f"only the shipped {model_store.SHIPPED}: memctl models add OWNER/NAME adds others")
    return exits.OK if known or installed else exits.NONE


def _use(args: Namespace) -> int:
    model = model_store.setting_of(args.name)
    root = workspaces.find(args.workspace)
    if model != model_store.SHIPPED:
        model_store.allow(model, allowed=True)
    settings = {"provider": "onnx", "model": model}
    answer = common.asked("workspace.configure", {"workspace": root, "settings": settings})
    print(f"{one_line(answer['root'])}: notes are embedded with {args.name} from now on")
    return exits.OK


def _remove(args: Namespace) -> int:
    if args.name == model_store.SHIPPED:
        raise CommandError(f"{args.name} comes with memd: it cannot be removed")
    model = model_store.setting_of(args.name)
    for root in systemd.using_model(model):
        raise CommandError(
            f"{args.name} is the model of {root}. First: "
            f"memctl workspaces configure -w {root} model={model_store.SHIPPED}"
        )
    model_store.allow(model, allowed=False)
    if model == args.name:  # installed: its files are those of a package
        package = model_store.installed()[model]["package"]
        print(f"no longer allowed: {model}\ndelete its files: pip uninstall {package}")
        return exits.OK
    folder = Path(model)
    stays = model_store.delete(folder, model_store.record_of(args.name))
    print(f"removed: {folder}")
    for path in stays:
        print(f"kept, because it was not downloaded: {one_line(path)}")
    return exits.OK
