"""The errors of a client: no daemon that answers, or an answer that is an error."""


class Unreachable(Exception):  # noqa: N818 - reads better in callers: except Unreachable
    """No daemon listens at the socket, or it ended, or it does not answer."""


class NoDaemonError(Unreachable):
    """Nothing listens at the socket: a daemon may be started."""


class RpcError(Exception):
    """The daemon's answer is an error.

    Attributes:
        code: a code for programs, as MEMD_NOT_FOUND; docs/protocol.md lists all codes.
        message: a text for people: what failed, with which value, what to do.
        callers_fault: whether the request is wrong, so that repeating it does not help.
    """

    def __init__(self, code: str, message: str, callers_fault: bool) -> None:  # noqa: FBT001 - an exception's args
        super().__init__(code, message, callers_fault)
        self.code = code
        self.message = message
        self.callers_fault = callers_fault

    def __str__(self) -> str:
        return self.message
