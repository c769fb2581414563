"""Reports of simulations: HTML that we made, kept in memory for the login that asked, shown in a frame of the page.

A report has a style of its own and no script. Its policy allows that style, by its hash, and nothing else; the sandbox
makes it a stranger to the page around it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from typing import Final

from aiohttp import web

from situate.web.guard import LOGIN, refusal
from situate.web.limits import MAX_REPORT_BYTES, MAX_REPORTS_PER_LOGIN
from situate.web.logins import Login
from situate.wire.errors import InputError

TOO_LARGE: Final = f"the report has more than {MAX_REPORT_BYTES >> 20} MiB: simulate less, or with `situate simulate`"
_NAME_BYTES: Final = 16
_STYLE: Final = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def keep_report(login: Login, html: str) -> str:
    """Its name. The oldest gives way. Raises InputError."""
    body = html.encode()
    if len(body) > MAX_REPORT_BYTES:
        raise InputError(TOO_LARGE)
    while len(login.reports) >= MAX_REPORTS_PER_LOGIN:
        del login.reports[next(iter(login.reports))]
    name = secrets.token_urlsafe(_NAME_BYTES)
    login.reports[name] = body
    return name


async def report(request: web.Request) -> web.Response:
    body = request[LOGIN].reports.get(request.match_info["name"])
    if body is None:
        return refusal(404, "this report is not kept any more; simulate again")
    return web.Response(
        body=body,
        headers={
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": _policy(body),
            "X-Frame-Options": "SAMEORIGIN",
        },
    )


def _policy(body: bytes) -> str:
    hashes = (base64.b64encode(hashlib.sha256(style).digest()).decode() for style in _STYLE.findall(body)[:1])
    style = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return (
        f"default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"
    )
