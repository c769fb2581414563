"""URLs in expressions."""

from typing import Any, Final

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.libraries.go_urls import ParsedURL, URLError, parse_request_uri, parse_url
from situate.core.cel.libraries.quantity import parse_cost
from situate.core.cel.meter import one
from situate.core.cel.types import BOOL, STRING, list_of, map_of, struct
from situate.core.cel.values import ExtensionValue, StringMap, Value

URL: Final = struct("kubernetes.URL")


class URLValue(ExtensionValue):
    __slots__ = ("url",)
    type_name = "kubernetes.URL"
    go_name = "URL"

    def __init__(self, url: ParsedURL) -> None:
        self.url = url

    def equal(self, other: Value) -> Value:
        return self.url == other.url if isinstance(other, URLValue) else no_such_overload()


def _url(text: str) -> Any:
    try:
        parse_request_uri(text)
        return URLValue(parse_url(text))
    except URLError as error:
        return ErrorValue(f"URL parse error during conversion from string: {error}")


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except URLError:
        return False
    return True


def _get_query(value: URLValue) -> Any:
    found: dict[str, Value] = {key: list(values) for key, values in value.url.query_values().items()}
    return StringMap(found)


def _get(name: str, overload_id: str, code: Any) -> Function:
    return Function(name, (member(overload_id, (URL,), STRING, code),), cost=one)


LIBRARY = Library(
    (
        Function("url", (overload("string_to_url", (STRING,), URL, _url),), cost=parse_cost),
        _get("getScheme", "url_get_scheme", lambda value: value.url.scheme),
        _get("getHost", "url_get_host", lambda value: value.url.host),
        _get("getHostname", "url_get_hostname", lambda value: value.url.host_and_port[0]),
        _get("getPort", "url_get_port", lambda value: value.url.host_and_port[1]),
        _get("getEscapedPath", "url_get_escaped_path", lambda value: value.url.escaped_path),
        Function("getQuery", (member("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _get_query),), cost=one),
        Function("isURL", (overload("is_url_string", (STRING,), BOOL, _is_url),)),
    )
)
