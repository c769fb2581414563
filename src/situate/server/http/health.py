"""Serves /healthz, /livez and /readyz, with kube-apiserver's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from situate.loop.health import PING, Check, report_all, report_one
from situate.server.http.query import Query
from situate.server.http.responses import TEXT, Response
from situate.server.http.urls import no_such_path

_HEADERS: Final = "X-Content-Type-Options: nosniff\r\n"


class Health:
    def __init__(self, checks: Mapping[str, Sequence[Check]]) -> None:
        """`checks` by the first part of the path: healthz, livez, readyz."""
        names = ("healthz", "livez", "readyz")
        self._checks = {f"/{name}": (PING, *checks.get(name, ())) for name in names}

    def serves(self, path: str) -> bool:
        return path in self._checks or path.rpartition("/")[0] in self._checks

    def handle(self, path: str, query: Query) -> Response:
        path = path.removesuffix("/")
        if path in self._checks:
            exclude = [query["exclude"]] if query.get("exclude") else []
            return _text(*report_all(path[1:], self._checks[path], exclude, verbose="verbose" in query))
        root, _, name = path.rpartition("/")
        found = report_one(self._checks[root], name)
        if found is None:
            raise no_such_path()
        return _text(*found)


def _text(code: int, text: str) -> Response:
    return Response(code, text.encode(), TEXT, _HEADERS)
