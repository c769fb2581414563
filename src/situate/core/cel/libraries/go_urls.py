"""URLs, parsed as Go's net/url does, with its messages."""

import re
from dataclasses import dataclass, field
from typing import Final

from situate.core.cel.formatting import go_quote
from situate.core.cel.libraries.addresses import AddressError, parse_address

_UNRESERVED: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
_HOST: Final = frozenset((_UNRESERVED + "!$&'()*+,;=:[]<>\"").encode())
_PATH: Final = frozenset((_UNRESERVED + "$&+,/:;=@").encode())
_VALID_PATH: Final = _PATH | frozenset(b"!$&'()*+,;=:@[]%")
_USER: Final = frozenset(_UNRESERVED + ":!$&'()*+,;=%@")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")


class URLError(ValueError):
    """Not a URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class ParsedURL:
    scheme: str = ""
    opaque: str = ""
    user: tuple[str, ...] = ()
    host: str = ""
    path: bytes = b""
    raw_path: str = ""
    query: str = ""
    fragment: str = ""
    flags: tuple[bool, bool] = field(default=(False, False))  # a bare "?" at the end; no host before the path

    @property
    def escaped_path(self) -> str:
        raw = self.raw_path.encode()
        if raw and all(byte in _VALID_PATH for byte in raw):
            return self.raw_path
        return "*" if self.path == b"*" else _escape(self.path)

    @property
    def host_and_port(self) -> tuple[str, str]:
        before, colon, port = self.host.rpartition(":")
        host, found = self.host, ""
        if colon and _PORT.fullmatch(":" + port):
            host, found = before, port
        return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), found

    def query_values(self) -> dict[str, list[str]]:
        values: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.partition("=")
            try:
                name, found = (_unescape(part.replace("+", " "), "query") for part in (key, value))
            except URLError:
                continue
            values.setdefault(name.decode(errors="replace"), []).append(found.decode(errors="replace"))
        return values


def _escape(path: bytes) -> str:
    return "".join(chr(byte) if byte in _PATH else f"%{byte:02X}" for byte in path)


def _unescape(text: str, mode: str) -> bytes:
    raw = text.encode()
    position = 0
    while position < len(raw):
        byte = raw[position]
        if byte == ord("%"):
            if not _ESCAPE.match(raw, position):
                raise URLError(f"invalid URL escape {go_quote(raw[position : position + 3].decode(errors='replace'))}")
            escape = raw[position : position + 3].decode()
            if mode == "host" and escape != "%25" and int(escape[1], 16) < 8:
                raise URLError(f"invalid URL escape {go_quote(escape)}")
            if mode == "zone" and escape not in ("%25", "%20") and int(escape[1:], 16) not in _HOST:
                raise URLError(f"invalid URL escape {go_quote(escape)}")
            position += 3
            continue
        if mode in ("host", "zone") and byte < 0x80 and byte not in _HOST:
            raise URLError(f"invalid character {go_quote(chr(byte))} in host name")
        position += 1
    return _ESCAPE.sub(lambda found: bytes((int(found.group()[1:], 16),)), raw)


def parse_request_uri(text: str) -> ParsedURL:
    """Raises URLError."""
    try:
        return _parse(text, True)
    except URLError as error:
        raise URLError(f"parse {go_quote(text)}: {error}") from None


def parse_url(text: str) -> ParsedURL:
    """Raises URLError."""
    before, _, fragment = text.partition("#")
    try:
        parsed = _parse(before, False)
    except URLError as error:
        raise URLError(f"parse {go_quote(before)}: {error}") from None
    try:
        _unescape(fragment, "fragment")
    except URLError as error:
        raise URLError(f"parse {go_quote(text)}: {error}") from None
    return ParsedURL(
        parsed.scheme, parsed.opaque, parsed.user, parsed.host, parsed.path, parsed.raw_path, parsed.query, fragment,
        parsed.flags,
    )  # fmt: skip


def _parse(text: str, via_request: bool) -> ParsedURL:
    if _CONTROL.search(text):
        raise URLError("net/url: invalid control character in URL")
    if not text and via_request:
        raise URLError("empty url")
    if text == "*":
        return ParsedURL(path=b"*")
    scheme, rest = _scheme(text)
    force_query, query = False, ""
    if rest.endswith("?") and rest.count("?") == 1:
        force_query, rest = True, rest[:-1]
    else:
        rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return ParsedURL(scheme, opaque=rest, query=query, flags=(force_query, False))
        if via_request:
            raise URLError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    user: tuple[str, ...] = ()
    host, omit_host = "", False
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, after = rest[2:].partition("/")
        rest = slash + after
        user, host = _authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        omit_host = True
    path = _unescape(rest, "path")
    raw_path = "" if rest == _escape(path) else rest
    return ParsedURL(scheme, "", user, host, path, raw_path, query, flags=(force_query, omit_host))


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise URLError("missing protocol scheme")
    found = _SCHEME.fullmatch(text)
    return (found[1].lower(), found[2]) if found else ("", text)


def _authority(scheme: str, authority: str) -> tuple[tuple[str, ...], str]:
    user, at, rest = authority.rpartition("@")
    host = _host(scheme, rest)
    if not at:
        return (), host
    if not set(user) <= _USER:
        raise URLError("net/url: invalid userinfo")
    parts = tuple(_unescape(part, "user").decode(errors="replace") for part in user.split(":", 1))
    return ("@", *parts), host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise URLError("invalid IP-literal")
    if bracket == 0:
        return _literal(host)
    colon = host.find(":")
    if colon >= 0:
        last = host.rfind(":")
        if last != colon and scheme not in ("http", "https"):
            colon = last
        if not _PORT.fullmatch(host[colon:]):
            raise URLError(f"invalid port {go_quote(host[colon:])} after host")
    return _unescape(host, "host").decode(errors="replace")


def _literal(host: str) -> str:
    close = host.rfind("]")
    if close < 0:
        raise URLError("missing ']' in host")
    port = host[close + 1 :]
    if not _PORT.fullmatch(port):
        raise URLError(f"invalid port {go_quote(port)} after host")
    inner = host[1:close]
    zone = inner.find("%25")
    name = _unescape(inner if zone < 0 else inner[:zone], "host")
    if zone >= 0:
        name += _unescape(inner[zone:], "zone")
    text = name.decode(errors="replace")
    try:
        address = parse_address(text)
    except AddressError as error:
        raise URLError(f"invalid host: {error}") from None
    if address.bits == 32:
        raise URLError("invalid IP-literal")
    return f"[{text}]{port}"
