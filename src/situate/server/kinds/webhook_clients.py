"""Validates how a webhook is reached: a URL, or a Service. Conversion and admission webhooks share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from situate.core.cel.libraries.go_urls import URLError, parse_url
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import port_number, subdomain

FORM: Final = "; desired format: https://host[/path]"
PORT: Final = 443
"""Of a Service that names none."""


def default_port(client: Mapping[str, Any] | None) -> None:
    if client and client.get("service") is not None:
        client["service"].setdefault("port", PORT)


def check_webhook_url(url: str, path: str, causes: Causes) -> None:
    try:
        found = parse_url(url)
    except URLError as error:
        causes.required(path, f"url must be a valid URL: {error}{FORM}")
        return
    if found.scheme != "https":
        causes.invalid(path, found.scheme, f"'https' is the only allowed URL scheme{FORM}")
    if not found.host:
        causes.invalid(path, "", f"host must be specified{FORM}")
    authority = url.partition("//")[2].partition("/")[0]
    if "@" in authority:
        causes.invalid(path, authority.rpartition("@")[0], "user information is not permitted in the URL")
    rest, _, fragment = url.partition("#")
    if fragment:
        causes.invalid(path, fragment, "fragments are not permitted in the URL")
    if query := rest.partition("?")[2]:
        causes.invalid(path, query, "query parameters are not permitted in the URL")


def check_webhook_service(service: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.require(service.get("name"), f"{path}.name")
    causes.require(service.get("namespace"), f"{path}.namespace")
    port = service.get("port", PORT)
    if problems := port_number(port):
        causes.invalid(f"{path}.port", port, f"port is not valid: {', '.join(problems)}")
    where, there = service.get("path") or "", f"{path}.path"
    if where in ("", "/"):
        return
    if where == "//":
        causes.invalid(there, where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        causes.invalid(there, where, "must start with a '/'")
    for at, step in enumerate(where[1:].removesuffix("/").split("/")):
        if not step:
            causes.invalid(there, where, f"segment[{at}] may not be empty")
        for problem in subdomain(step) if step else ():
            causes.invalid(there, where, f"segment[{at}]: {problem}")
