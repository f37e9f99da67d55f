"""A stand-in for the HTTP interfaces of the models that agents' clients speak with, on a local port.

It records each request, and answers by a script: call memd's tools one after the other, as soon as the client
offers them, then say one sentence. The interfaces, streamed: Anthropic's Messages, OpenAI's Responses and
Chat Completions.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SAID = "That is all I know."  # the stand-in's last word


Arguments = dict[str, Any]
# What the tool's name ends with, and its arguments, or what returns them once the calls before are answered.
Call = tuple[str, Arguments | Callable[[], Arguments]]


class ModelApi:
    """Serves until it is closed."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.requests: list[dict[str, Any]] = []  # bodies, in order; "path" is added
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                path = self.path.partition("?")[0]
                api.requests.append(body | {"path": path})
                self.answer(api.answer(path, body))

            def do_GET(self) -> None:
                self.answer([json.dumps({"data": [], "object": "list", "models": []})])

            def do_HEAD(self) -> None:
                self.answer([])

            def answer(self, parts: Iterator[str] | list[str]) -> None:
                parts = list(parts)
                is_stream = bool(parts) and parts[0].startswith(("event:", "data:"))
                raw = "".join(parts).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def asked(self) -> str:
        """Return all that was sent to the model, as JSON text."""
        return json.dumps(self.requests, ensure_ascii=False)

    def is_done(self) -> bool:
        """Tell whether every call of the script was made and answered."""
        return f'"{_call_id(len(self.calls) - 1)}"' in self.asked()

    def results(self) -> list[Any]:
        """Return what the tools answered, in the order of the script; of Anthropic's Messages alone."""
        found = {}
        for request in self.requests:
            for message in request.get("messages", ()):
                for block in message["content"] if isinstance(message["content"], list) else ():
                    if block.get("type") == "tool_result":
                        found[block["tool_use_id"]] = json.loads(_text(block["content"]))
        return [found[_call_id(number)] for number in range(len(self.calls))]

    def answer(self, path: str, body: dict[str, Any]) -> Iterator[str]:
        """Return the parts of an answer."""
        sent = json.dumps(body)
        done = sum(f'"{_call_id(number)}"' in sent for number in range(len(self.calls)))
        call = None
        if done < len(self.calls):
            name, given = self.calls[done]
            offered = [tool for tool in _tool_names(body) if tool.endswith(name)]
            if offered:
                call = (_call_id(done), offered[0], given() if callable(given) else given)
        if path.endswith("/count_tokens"):
            return iter([json.dumps({"input_tokens": 10})])
        if path.endswith("/messages"):
            return _messages(body, call)
        if path.endswith("/responses"):
            return _responses(call)
        return _chat(call)


Called = tuple[str, str, dict[str, Any]] | None  # id, tool, arguments; None: say the last word


def _messages(body: dict[str, Any], call: Called) -> Iterator[str]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    block: dict[str, Any] = (
        {"type": "tool_use", "id": call[0], "name": call[1], "input": call[2]}
        if call
        else {"type": "text", "text": SAID}
    )
    reason = "tool_use" if call else "end_turn"
    # Claude Code takes answers with the same id for one, and compacts no conversation of one.
    message = {
        "id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant",
        "model": body.get("model", "m"), "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": usage,
    }  # fmt: skip
    if not body.get("stream"):
        yield json.dumps(message | {"content": [block], "stop_reason": reason})
        return
    yield _event("message_start", message=message)
    if call:
        yield _event("content_block_start", index=0, content_block=block | {"input": {}})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
    else:
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        delta = {"type": "text_delta", "text": SAID}
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _responses(call: Called) -> Iterator[str]:
    item: dict[str, Any] = (
        {"type": "function_call", "id": f"fc_{call[0]}", "call_id": call[0],
         "name": call[1].rpartition(".")[2], "arguments": json.dumps(call[2]), "status": "completed"}
        | ({"namespace": call[1].rpartition(".")[0]} if "." in call[1] else {})
        if call
        else {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{"type": "output_text", "text": SAID, "annotations": []}]}
    )  # fmt: skip
    answer = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    usage = {
        "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    yield _event("response.created", response=answer)
    yield _event("response.output_item.added", output_index=0, item=item)
    yield _event("response.output_item.done", output_index=0, item=item)
    done = answer | {"status": "completed", "output": [item], "usage": usage}
    yield _event("response.completed", response=done)


def _chat(call: Called) -> Iterator[str]:
    delta: dict[str, Any] = {"role": "assistant"}
    if call:
        function = {"name": call[1], "arguments": json.dumps(call[2])}
        delta["tool_calls"] = [{"index": 0, "id": call[0], "type": "function", "function": function}]
    else:
        delta["content"] = SAID
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
    yield _data(frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield _data(frame | {"choices": [end], "usage": usage})
    yield "data: [DONE]\n\n"


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def _call_id(number: int) -> str:
    return f"callmemd{number}x"  # letters and digits: some clients take all else out


def _tool_names(body: dict[str, Any]) -> Iterator[str]:
    for tool in body.get("tools") or ():
        name = tool.get("name") or tool.get("function", {}).get("name") or ""
        if tool.get("type") == "namespace":
            yield from (f"{name}.{inner.get('name')}" for inner in tool.get("tools", ()))
        else:
            yield name


def _event(kind: str, **content: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | content)}\n\n"


def _data(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content)}\n\n"
