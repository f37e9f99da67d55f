"""Processes of memctl and memd that need no start of Python: forked from one that has their modules loaded.

They are what `python -m memctl` and `python -m memd` are, with their own pid, streams, environment, folder
and exit status. What they spare is the interpreter's start and its imports, most of what a short command
costs, and reading the shipped model, half of what a small workspace costs. What is about these, or about
variables of Python's own, starts the interpreter (`subprocess`).
"""

import atexit
import functools
import gc
import importlib
import io
import os
import pickle
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = ("memctl", "memd")
AS_HERE = {("PYTHONPATH", str(Path(__file__).parents[1])), ("PYTHONUTF8", "1")}  # tells nothing new
MODULES = {
    "memctl": ("memctl.__main__", "memctl.arguments"),
    # With what a daemon imports once it listens, once it has a workspace, and for its first answer: a quarter
    # of a second of the processor, in each of some hundred daemons.
    "memd": (
        "memd.daemon", "memd.api.dispatch", "memd.api.methods", "memd.workspace.workspaces",
        "memd.workspace.open", "memd.embedding.onnx", "memd.search.search", "memd.search.why",
        "memd.search.recall", "memd.search.similar", "memd.sources.chunk", "memd.sources.daily", "numpy.ma",
        "onnxruntime", "Stemmer", "tokenizers", "watchfiles", "yaml",
    ),
}  # fmt: skip
MAX_REQUEST_BYTES = 100_000  # a packet's; what is larger starts the interpreter


class Request(NamedTuple):
    """What a process is to be."""

    program: str
    words: list[str]
    environment: dict[str, str]
    cwd: str
    umask: int
    new_session: bool


class Forked(subprocess.Popen[Any]):
    """`subprocess.Popen` of `[sys.executable, "-m", "memctl" or "memd", …]`."""

    def _execute_child(self, args: list[Any], *given: Any) -> None:
        """Fork where `subprocess` would execute; it gives its arguments by their places."""
        cwd, env, pipes, new_session = given[4], given[5], given[9:15], given[20]
        reading, _, _, writing, _, complaining = pipes
        os.umask(mask := os.umask(0o077))
        request = Request(
            args[2], [os.fsdecode(word) for word in args[3:]], dict(os.environ if env is None else env),
            os.fspath(cwd or Path.cwd()), mask, new_session,
        )  # fmt: skip
        ends, status = os.pipe()
        streams = [own if one == -1 else one for own, one in enumerate((reading, writing, complaining))]
        socket.send_fds(server(args[2]), [pickle.dumps(request)], [*streams, status])
        os.close(status)
        self._ends = os.fdopen(ends, "rb", buffering=0)
        self.pid = int(self._ends.read(10))
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Read what the server says of its child's end; it alone may wait for it."""
        if wait_flags & os.WNOHANG and not select.select([self._ends], [], [], 0)[0]:
            return 0, 0
        with self._ends:
            return self.pid, int(self._ends.read(10))

    def _internal_poll(self, *_args: object, **_options: object) -> int | None:
        with self._waitpid_lock:
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)
        return self.returncode


def popen(command: list[Any], **options: Any) -> subprocess.Popen[Any]:
    """Start *command*: forked, where that makes no difference."""
    return (Forked if _is_ours(command, options) else subprocess.Popen)(command, **options)


def run(
    command: list[Any], *, input: Any = None, timeout: float, check: bool = False,  # noqa: A002 - subprocess's
    capture_output: bool = False, **options: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Run *command* as `subprocess.run` does."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _is_ours(command: list[Any], options: dict[str, Any]) -> bool:
    told = (options.get("env") or {}).items()
    python_is_told = any(name.startswith("PYTHON") and (name, value) not in AS_HERE for name, value in told)
    unusual = options.keys() - {"env", "cwd", "stdin", "stdout", "stderr", "text", "start_new_session"}
    return (
        command[:2] == [sys.executable, "-m"]
        and command[2] in PROGRAMS
        and not python_is_told
        and not unusual
        and len(pickle.dumps(command)) < MAX_REQUEST_BYTES
    )


@functools.cache
def server(program: str) -> socket.socket:
    """Return the way to the process that forks *program*; it ends with this one."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    command = [sys.executable, __file__, program, str(its.fileno())]
    subprocess.Popen(
        command, env=environment, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, cwd="/"
    ).returncode = 0  # nobody waits for it
    its.close()
    return ours


def serve(program: str, control: socket.socket) -> None:
    """Fork for each request, and tell when its child has ended. Returns in the child, ready to run."""
    load(program)
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, int] = {}  # pid: where its end is told
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 1000)
            _tell_ends(children)
        if control not in ready:
            continue
        packet, files, _, _ = socket.recv_fds(control, 2 * MAX_REQUEST_BYTES, 4)
        if not packet:
            os._exit(0)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become(pickle.loads(packet), files)
            return
        *streams, status = files
        children[pid] = status
        os.write(status, b"%10d" % pid)
        for stream in streams:
            os.close(stream)


def _tell_ends(children: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            told = children.pop(ended[0])
            with suppress(BrokenPipeError):
                os.write(told, b"%10d" % ended[1])
            os.close(told)


def load(program: str) -> None:
    """Import and read what the program may need, before anything is forked."""
    for name in MODULES[program]:
        importlib.import_module(name)
    if program == "memctl":
        import httpx2  # noqa: F401 - what takes most of a download's start

        import memctl.commands

        for module in pkgutil.iter_modules(memctl.commands.__path__):
            importlib.import_module(f"memctl.commands.{module.name}")
    else:
        import onnxruntime

        from memd.embedding import onnx, tokenizer
        from memd.embedding.model_folder import SHIPPED, ModelFolder

        _keep(onnx, "_session", onnxruntime, SHIPPED.model_file, SHIPPED.model_file)
        pieces, load = tokenizer.WordPieces(SHIPPED.tokenizer_file).load(), tokenizer.WordPieces._load
        tokenizer.WordPieces._load = lambda own: pieces._read if own.path == pieces.path else load(own)
        _keep(ModelFolder, "fingerprint", SHIPPED)


def _keep(owner: Any, name: str, *given: object) -> None:
    """Call a function now, and have it return what it returned whenever it is given the same."""
    function = getattr(owner, name)
    kept = function(*given)
    setattr(owner, name, lambda *asked: kept if asked == given else function(*asked))


def become(request: Request, files: list[int]) -> None:
    """Take the streams, the environment and the folder that were asked for."""
    for number, stream in enumerate(files[:3]):
        os.dup2(stream, number)
    os.closerange(3, 1000)
    if request.new_session:
        os.setsid()
    os.chdir(request.cwd)
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update(request.environment)
    if request.program == "memd":
        importlib.reload(sys.modules["memd"])  # it sets variables for libraries
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout, sys.stderr = _text(0, sys.stdin), _text(1, sys.stdout), _text(2, sys.stderr)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.path[0] = request.cwd
    sys.argv[:] = ["", *request.words]
    sys.dont_write_bytecode = False


def _text(number: int, like: Any) -> io.TextIOWrapper:
    """Open a stream as Python does at its start."""
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    buffer: Any = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    is_by_line = number == 2 or raw.isatty()
    return io.TextIOWrapper(buffer, like.encoding, like.errors, line_buffering=is_by_line)


def main() -> None:
    """Serve; in a forked child, run the program as `python -m` does."""
    program, control = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    serve(program, control)
    control.detach()
    sys.modules.pop(f"{program}.__main__", None)
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if program == "memctl" and type(end.code or 0) is int:
            _end(end.code or 0)
        raise


def _end(status: int) -> None:
    """End as Python does, but do not take hundreds of modules apart, which is half of a short command's time.

    A stream that cannot be flushed is left to Python.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
