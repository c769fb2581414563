"""The files of the page, as they are in the package: read once, served from memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Final

from aiohttp import web

TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
PAGE: Final = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    content_type: str
    tag: str


def read_assets() -> dict[str, Asset]:
    """By name."""
    found = {}
    for file in resources.files("situate.web").joinpath("static").iterdir():
        kind = TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            body = file.read_bytes()
            found[file.name] = Asset(body, kind, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return found


def respond(asset: Asset, request: web.Request) -> web.Response:
    """The browser asks each time, and gets the file only if it is another than the one it has."""
    headers = {"Content-Type": asset.content_type, "ETag": asset.tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == asset.tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.body, headers=headers)
