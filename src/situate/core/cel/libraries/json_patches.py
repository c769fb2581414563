"""Keys in the paths of JSON patches."""

from typing import Final

from situate.core.cel.functions import Function, Library, overload
from situate.core.cel.types import STRING


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


LIBRARY: Final = Library(
    (Function("jsonpatch.escapeKey", (overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escape_key),)),)
)
