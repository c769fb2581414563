"""A client that sends whatever it is given, and notes every answer that no client should get."""

import asyncio
import json
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from server.tls_session import TlsSession

ANSWER_S = 10.0
"""Without an answer for so long, a request counts as not answered."""
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, asyncio.IncompleteReadError)
JSON = "application/json"
SHOWN = 4_000

AS_KUBERNETES = ("Too large resource version", "more than one PodDisruptionBudget")
"""In the answers of 5xx that kube-apiserver gives, too, and clients know: they are counted apart."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        text = "" if self.body is None else self.body[:SHOWN].decode(errors="replace")
        return f"{self.method} {self.path}\nContent-Type: {self.content_type}\n{text}"


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer of 5xx, or none (code 0)."""

    subject: int
    request: Request
    code: int
    said: str


@dataclass(slots=True)
class Tally:
    requests: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    as_kubernetes: int = 0
    failures: list[Failure] = field(default_factory=list)


class Client:
    """`url` says where the server is now. While `up` is not set, the server is being started: nobody asks."""

    def __init__(self, url: Callable[[], str], tls: ssl.SSLContext) -> None:
        self._url = url
        self.tls = tls
        self.up = asyncio.Event()
        self.up.set()
        self.starts = 0
        """How often the server was started anew: an answer that was lost in between is nobody's fault."""
        self.tally = Tally()
        self._session: TlsSession | None = None

    async def __aenter__(self) -> "Client":
        self._session = TlsSession(self.tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, request: Request, subject: int = -1) -> tuple[int, Any]:
        """The code and the decoded answer; code 0: none came."""
        await self.up.wait()
        starts = self.starts
        self.tally.requests += 1
        code, said, text = 0, None, ""
        began = time.monotonic()
        try:
            code, text = await self._send(request)
            said = json.loads(text) if text.startswith("{") else text
        except BROKEN as error:
            text = f"{error!r} after {time.monotonic() - began:.1f} s"
        except ValueError:
            said = text
        except AttributeError:  # aiohttp's, when the connection breaks between an answer's head and its reader
            if self.starts == starts and self.up.is_set():
                raise
        if self.starts != starts or not self.up.is_set():
            return code, said
        self.tally.codes[code] += 1
        if code == 0 or code >= 500:
            self._failed(Failure(subject, request, code, text[:SHOWN]))
        return code, said

    def _failed(self, failure: Failure) -> None:
        if failure.code and any(text in failure.said for text in AS_KUBERNETES):
            self.tally.as_kubernetes += 1
        else:
            self.tally.failures.append(failure)

    async def _send(self, request: Request) -> tuple[int, str]:
        if self._session is None:
            raise RuntimeError("not entered")
        headers = {"Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        url = URL(self._url() + request.path, encoded=True)
        limit = aiohttp.ClientTimeout(total=ANSWER_S)
        async with self._session.http.request(
            request.method, url, data=request.body, headers=headers, timeout=limit
        ) as answer:
            return answer.status, (await answer.read()).decode(errors="replace")
