"""Turns a CustomResourceDefinition into the resources that it defines."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import structs

from situate.server.apiextensions.columns import custom_printer
from situate.server.apiextensions.decoding import CustomDecoder
from situate.server.apiextensions.stored_form import Convert, CustomStoredForm, VersionSchema
from situate.server.apiextensions.strategy import custom_strategy
from situate.server.errors import unclassified
from situate.server.kinds.custom_version import CustomVersion, ScalePaths
from situate.server.kinds.kind import ALL_VERBS, Resource
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.wire.patching import CustomMerge
from situate.wire.schema import Decoded
from situate.wire.structural.merging import merge_schema_of
from situate.wire.structural.schema import structural

DIGEST_BYTES: Final = 12
DEPRECATED: Final = "{api_version} {kind} is deprecated"

WEBHOOK: Final = "Webhook"

ConvertBy: TypeAlias = Callable[[Object, Sequence[Object], str], Awaitable[list[Object]]]
"""Converts objects to an API version, by the webhook in the spec of their definition. Raises StatusError."""


class CompiledVersion(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What follows from one version of a definition alone."""

    schema: VersionSchema
    strategy: Strategy
    merge: Any
    has_status: bool
    scale: ScalePaths | None


NOTHING_COMPILED: Final[Mapping[str, CompiledVersion]] = MappingProxyType({})


async def no_webhooks(_spec: Object, objects: Sequence[Object], _wanted: str) -> list[Object]:
    """Of a registry that calls no webhooks."""
    named = f"{objects[0]['apiVersion']}, Kind={objects[0]['kind']}"
    raise unclassified(f"conversion webhook for {named} failed: this server calls no webhooks")


def condition_is_true(crd: Object, name: str) -> bool:
    found = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == name and one.get("status") == "True" for one in found)


def is_served(crd: Object) -> bool:
    """Once its names were accepted, a definition is served until it is gone."""
    return condition_is_true(crd, "Established")


def resources_of(crd: Object, convert: ConvertBy, known: Mapping[str, CompiledVersion]) -> tuple[Resource, ...]:
    """One for each version that is served. `known`: its `compiled_versions`."""
    spec, names = crd["spec"], _names(crd)
    group, versions = spec["group"], spec["versions"]
    compiled = {one["name"]: known[digest] for one, digest in zip(versions, version_digests(crd), strict=True)}
    storage = next(one["name"] for one in versions if one.get("storage"))
    served = tuple(f"{group}/{one['name']}" for one in versions if one.get("served"))
    converts = partial(convert, spec) if spec.get("conversion", {}).get("strategy") == WEBHOOK else None
    return tuple(
        _resource(crd, names, one, compiled, storage, served, converts) for one in versions if one.get("served")
    )


def as_stored(resource: Resource) -> Resource:
    """A custom kind for the server's own controllers, which read and write metadata, and have to go on when a
    conversion webhook does not answer: objects keep the version in which they are stored, and no schema is applied."""
    custom = resource.custom
    if custom is None or not custom.stored.has_webhook:
        return resource
    plain = Strategy(own_finalizers=False, counts_generation=True)
    found = structs.replace(
        custom, stored=custom.stored.as_stored(), original=custom.stored, strategy=plain, decode=_decode_any
    )
    return replace(resource, custom=found)


def _decode_any(body: bytes, _strict: bool) -> Decoded:
    return Decoded(msgspec.json.decode(body, type=dict[str, Any]), ())


def _names(crd: Object) -> Mapping[str, Any]:
    """Those that were accepted: others of the definition's names may be in use."""
    accepted: Mapping[str, Any] = (crd.get("status") or {}).get("acceptedNames") or {}
    return accepted if accepted.get("plural") and accepted.get("kind") else crd["spec"]["names"]


def version_digests(crd: Object) -> list[str]:
    """What each version is compiled from."""
    spec, kind = crd["spec"], _names(crd)["kind"]
    of_all = (spec["group"], kind, spec["names"]["kind"], bool(spec.get("preserveUnknownFields")))
    return [_digest((of_all, one)) for one in spec["versions"]]


def compiled_versions(
    crd: Object, known: Mapping[str, CompiledVersion] = NOTHING_COMPILED
) -> Mapping[str, CompiledVersion]:
    """Its versions by their digests: those of `known`, and others, which takes long if they are large. Raises whatever
    is wrong with the definition."""
    spec, kind = crd["spec"], _names(crd)["kind"]
    return {
        digest: known.get(digest) or _compiled(spec, one, kind)
        for one, digest in zip(spec["versions"], version_digests(crd), strict=True)
    }


def _compiled(spec: Mapping[str, Any], version: Mapping[str, Any], kind: str) -> CompiledVersion:
    source = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    schema, preserves = structural(source), bool(spec.get("preserveUnknownFields"))
    group, subresources = spec["group"], version.get("subresources") or {}
    decoder = CustomDecoder(f"{group}/{version['name']}", spec["names"]["kind"], schema, preserves=preserves)
    has_status, scale = "status" in subresources, _scale(subresources.get("scale"))
    return CompiledVersion(
        schema=VersionSchema(version["name"], _digest((source, preserves)), schema, decoder),
        strategy=custom_strategy(group, kind, schema, has_status=has_status, scale=scale),
        merge=merge_schema_of(schema),
        has_status=has_status,
        scale=scale,
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[: 2 * DIGEST_BYTES]


def _resource(
    crd: Object,
    names: Mapping[str, Any],
    version: Mapping[str, Any],
    compiled: Mapping[str, CompiledVersion],
    storage: str,
    served: tuple[str, ...],
    convert: Convert | None,
) -> Resource:
    spec, made = crd["spec"], compiled[version["name"]]
    own, schemas = made.schema, {name: one.schema for name, one in compiled.items()}
    group, kind = spec["group"], names["kind"]
    terminating = "deletionTimestamp" in crd["metadata"]
    custom = CustomVersion(
        list_kind=names.get("listKind") or f"{kind}List",
        schema=own.schema.source,
        strategy=made.strategy,
        printer=custom_printer(version.get("additionalPrinterColumns") or ()),
        merge=CustomMerge(made.merge, made.has_status, served, own.digest),
        decode=own.decoder.decode,
        stored=CustomStoredForm(group, kind, own.name, storage, schemas, convert),
        selectable=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
        scale=made.scale,
        warning=_warning(group, kind, version),
        is_terminating=terminating,
        generation=crd["metadata"].get("generation", 0),
    )
    return Resource(
        group=group,
        version=own.name,
        plural=names["plural"],
        kind=kind,
        singular=names.get("singular") or kind.lower(),
        namespaced=spec["scope"] == "Namespaced",
        verbs=tuple(verb for verb in ALL_VERBS if verb != "create") if terminating else ALL_VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(
            name for name, has in (("status", made.has_status), ("scale", made.scale is not None)) if has
        ),
        stored_as=f"{group}/{names['plural']}",
        storage_version=storage,
        custom=custom,
    )


def _scale(paths: Mapping[str, Any] | None) -> ScalePaths | None:
    if paths is None:
        return None
    return ScalePaths(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or "")


def _warning(group: str, kind: str, version: Mapping[str, Any]) -> str:
    if not version.get("deprecated"):
        return ""
    default = DEPRECATED.format(api_version=f"{group}/{version['name']}", kind=kind)
    return str(version.get("deprecationWarning") or default)
