"""Comparison of a daemon's answers with the disk, asked over its socket as any client asks."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon_process import Daemon

from live.disk import Truth
from memctl.client import Client, RpcError

PATIENCE_MS = 60_000
RETIRED = 30  # words that are no more, asked for at a comparison
READ = 3  # files that are read by `get`
SHOWN = 6  # differences
WORD = re.compile(r"q\d+z")


class FlawError(AssertionError):
    """The index is not what the disk is."""


class Answers:
    """What one daemon says of one workspace."""

    def __init__(self, daemon: Daemon, root: Path) -> None:
        self._daemon = daemon
        self._root = root
        self._client: Client | None = None
        self._ever: set[str] = set()  # words that were there once

    def close(self) -> None:
        """Give the connection up; the next question makes another one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, method: str, *, timeout_s: float = 30, **params: Any) -> Any:
        if self._client is None:
            self._client = self._daemon.client()
        return self._client.call(method, {"workspace": str(self._root), **params}, timeout_s=timeout_s)

    def compare(self, look: Callable[[], Truth]) -> None:
        """Compare all that can be asked with what *look* finds on the disk.

        At once after a sync what sync promises; where some changes send no event, all of it after a scan.

        Raises:
            FlawError: with what differs.
        """
        synced = self.ask("sync", timeout_s=PATIENCE_MS / 1000 + 5, timeout_ms=PATIENCE_MS)
        if not synced["synced"]:
            raise FlawError(f"it does not catch up: {synced}; {self.ask('status')['workspaces'][0]}")
        truth = look()
        self._expect(truth, truth.doubtful, "after a sync")
        if truth.doubtful:
            self.ask("index", timeout_s=PATIENCE_MS / 1000)
            self._expect(truth, set(), "after a scan")
        self._compare_whole(truth)
        self._ever.update(word for text in truth.texts.values() for word in WORD.findall(text))

    def _expect(self, truth: Truth, doubtful: set[str], when: str) -> None:
        holders: dict[str, set[str]] = {}
        for path, text in truth.texts.items():
            for word in WORD.findall(text):
                holders.setdefault(word, set()).add(path)
        retired = sorted(self._ever - holders.keys())
        asked = [*holders, *random.Random(len(self._ever)).sample(retired, min(RETIRED, len(retired)))]
        wrong = []
        for word in asked:
            found = self.ask("search", query=f'"{word}"', mode="keyword", limit=1000, min_score=0)
            places = [place for hit in found["hits"] for place in (hit, *hit["folded"])]
            paths = {place["path"] for place in places} - doubtful
            wanted = holders.get(word, set()) - doubtful
            if paths != wanted:
                wrong.append(f"{word}: missing {sorted(wanted - paths)!a}, stale {sorted(paths - wanted)!a}")
        if not doubtful:
            sources = self.ask("status")["workspaces"][0]["sources"]
            if sources != len(truth.texts):
                wrong.append(f"{sources} sources in the index, {len(truth.texts)} on the disk")
        if wrong:
            raise FlawError(f"{len(wrong)} differences {when}: {'; '.join(wrong[:SHOWN])}")

    def _compare_whole(self, truth: Truth) -> None:
        for path in random.Random(len(truth.texts)).sample(sorted(truth.texts), min(READ, len(truth.texts))):
            text = truth.texts[path].removesuffix("\n")
            if self.ask("get", path=path)["text"] != text:
                raise FlawError(f"get {path!a} is not what the disk holds")
        try:
            self.ask("get", path="a/never-there.md")
        except RpcError as error:
            if error.code != "MEMD_NOT_FOUND":
                raise
        else:
            raise FlawError("get finds what is not there")
        found = self.ask("check", timeout_s=PATIENCE_MS / 1000)["findings"]
        if found:
            raise FlawError(f"check finds {found[:SHOWN]}")
