"""Encoding of results, errors and events as frames that every client can read.

Errors are `[0 | 1, "CODE: text"]`, the one shape whose text Neovim shows. What nobody foresaw is told
by its class and place alone: an exception's text may quote a note, and this peer may not know it.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from memctl.protocol import FrameTooLargeError, Notification, Response, pack, pack_answer, pack_value
from memd.errors import InvalidError, MemdError
from memd.logs import log_unforeseen

log = structlog.get_logger()


Result = TypeVar("Result")
Made = TypeVar("Made", bound=msgspec.Struct)
_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Packed(Generic[Result]):
    """A result that is MessagePack already: the thread that made it has encoded it, too."""

    result: bytes


def packed(result: Made) -> Packed[Made]:
    """Return a struct as it travels: MessagePack of a map; what is UNSET has no key."""
    try:
        return Packed(_ENCODER.encode(result))
    except UnicodeEncodeError:  # a file's name that is no UTF-8: it travels as the bytes that it is
        return Packed(pack_value(msgspec.to_builtins(result)))


def wire_error(error: BaseException, method: str) -> list[object]:
    """Return the error's form on the wire."""
    if isinstance(error, MemdError):
        return [int(error.callers_fault), f"{error.code}: {error}"]
    text = (
        f"{MemdError.code}: {method} failed with {type(error).__name__}. This is a bug in memd; "
        "its log names the place (journalctl --user -u memd, or memd.log in the state directory)"
    )
    return [0, text]


def frame_of(response: Response, method: str) -> bytes:
    """Return the reply's bytes; where it can't be sent as it is, those of an error that says why."""
    try:
        if isinstance(response.result, Packed):
            return pack_answer(response.id, response.result.result)
        return pack(response)
    except FrameTooLargeError as error:
        ask = "ask for less: a smaller limit, or lines instead of a whole source"
        return pack(
            Response(response.id, wire_error(InvalidError(f"the answer is {error}; {ask}"), method), None)
        )
    except Exception as error:  # noqa: BLE001 - a bug in one method must not cost the connection
        log_unforeseen(error, method)
        return pack(Response(response.id, wire_error(error, method), None))


def event_frame(fields: dict[str, Any]) -> bytes:
    """Return an event's bytes; none for one that can't be sent, which is a bug and costs that event alone."""
    try:
        return pack(Notification("event", fields))
    except Exception as error:  # noqa: BLE001 - whoever told of the event is in the middle of other work
        log_unforeseen(error, "event")
        return b""
