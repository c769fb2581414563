"""Decodes a body of a custom kind: checks its metadata, and prunes what its schema does not specify."""

from __future__ import annotations

from typing import Any

import msgspec

from situate.wire.schema import Decoded, DecodeError, duplicate_fields
from situate.wire.schema.decoder import decode_free, other_version, refusal
from situate.wire.schema.object_meta import read_metadata
from situate.wire.schema.slow_decoder import MAX_PROBLEMS
from situate.wire.structural.embedded import CoercionError, coerce_embedded, has_embedded
from situate.wire.structural.numbers import go_numbers, may_have_odd_numbers
from situate.wire.structural.pruning import prune, prune_nulls
from situate.wire.structural.schema import Structural

MISSING_KIND = "Object 'Kind' is missing in '{body}'"
MISSING_VERSION = "Object 'apiVersion' is missing in '{body}'"
MAX_SHOWN = 2_000
"""Characters of a body to quote in an error."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _Paths(list[str]):
    """The fields to name of those that were removed."""

    def add(self, path: str) -> None:
        if len(self) < MAX_PROBLEMS:
            self.append(path)


class CustomDecoder:
    """Decodes bodies of one version of a custom kind."""

    __slots__ = ("_api_version", "_has_embedded", "_kind", "_preserves", "_schema")

    def __init__(self, api_version: str, kind: str, schema: Structural, *, preserves: bool) -> None:
        """`preserves`: the definition has `preserveUnknownFields`, which ended with v1beta1."""
        self._api_version = api_version
        self._kind = kind
        self._schema = schema
        self._preserves = preserves
        self._has_embedded = has_embedded(schema)

    def decode(self, body: bytes, strict: bool) -> Decoded:
        """Raises DecodeError."""
        try:
            found = _decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            found = decode_free(self._kind, body)
        self._check_head(found, body)
        problems = [*duplicate_fields(body)] if strict else []
        if may_have_odd_numbers(body):
            found = go_numbers(found)
        problems += [f'unknown field "{path}"' for path in self.coerce(found)]
        return Decoded(found, tuple(problems))

    def coerce(self, obj: dict[str, Any]) -> list[str]:
        """Prune an object, in place; returns the paths of what was removed. Raises DecodeError."""
        unknown: list[str] = []
        if "metadata" in obj:
            try:
                obj["metadata"], in_metadata = read_metadata(obj["metadata"])
            except DecodeError as error:
                raise DecodeError(refusal(self._api_version, self._kind, error.why), error.why) from None
            unknown += [f"metadata.{name}" for name in in_metadata]
        pruned = _Paths()
        if not self._preserves:
            prune(obj, self._schema, pruned.add)
            prune_nulls(obj, self._schema)
        unknown += sorted(pruned)
        if self._has_embedded:
            inner = _Paths()
            try:
                coerce_embedded(obj, self._schema, inner.add)
            except CoercionError as error:
                shown = _encode(error.value).decode() if not isinstance(error.value, str) else f'"{error.value}"'
                why = f"{error.path}: Invalid value: {shown}: {error}"
                raise DecodeError(refusal(self._api_version, self._kind, why), why) from None
            unknown += sorted(inner)
        return unknown

    def _check_head(self, found: dict[str, Any], body: bytes) -> None:
        for name, text in (("kind", MISSING_KIND), ("apiVersion", MISSING_VERSION)):
            if not isinstance(found.get(name, ""), str) or not found.get(name):
                why = text.format(body=body.decode(errors="replace")[:MAX_SHOWN])
                raise DecodeError(f"the object provided is unrecognized (must be of type {self._kind}): {why}", why)
        if found["apiVersion"] != self._api_version:
            raise DecodeError(other_version(found["apiVersion"], self._api_version))
