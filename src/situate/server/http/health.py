"""/healthz, /livez and /readyz, in Kubernetes' own text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

from situate.server.http.ports import Check
from situate.server.http.query import Query
from situate.server.http.responses import TEXT, Answer
from situate.server.http.urls import no_such_path

__all__ = ["PING", "Health"]

PING: Final = Check("ping", lambda: "")
_HEADERS: Final = "X-Content-Type-Options: nosniff\r\n"


class Health:
    def __init__(self, checks: Mapping[str, Sequence[Check]]) -> None:
        """`checks` by the first part of the path: healthz, livez, readyz."""
        names = ("healthz", "livez", "readyz")
        self._checks = {f"/{name}": (PING, *checks.get(name, ())) for name in names}

    def serves(self, path: str) -> bool:
        return path in self._checks or path.rpartition("/")[0] in self._checks

    def answer(self, path: str, query: Query) -> Answer:
        path = path.removesuffix("/")
        if path in self._checks:
            return self._all(path, query)
        root, _, name = path.rpartition("/")
        for check in self._checks[root]:
            if check.name == name:
                problem = check.problem()
                return _text(500, f"internal server error: {problem}\n") if problem else _text(200, "ok")
        raise no_such_path()

    def _all(self, path: str, query: Query) -> Answer:
        """All checks of one kind: `ok`, or a line for each."""
        excluded = query.get("exclude", "")
        lines, failed = [], False
        for check in self._checks[path]:
            if check.name == excluded:
                lines.append(f"[+]{check.name} excluded: ok\n")
            elif check.problem():
                failed = True
                lines.append(f"[-]{check.name} failed: reason withheld\n")
            else:
                lines.append(f"[+]{check.name} ok\n")
        name = path[1:]
        if failed:
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"{''.join(lines)}{name} check failed\n")
        if "verbose" in query:
            return _text(HTTPStatus.OK, f"{''.join(lines)}{name} check passed\n")
        return _text(HTTPStatus.OK, "ok")


def _text(code: int, text: str) -> Answer:
    return Answer(code, text.encode(), TEXT, _HEADERS)
