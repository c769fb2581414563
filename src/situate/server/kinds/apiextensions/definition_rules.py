"""Validates a CustomResourceDefinition, in kube-apiserver's words and order.

kube-apiserver checks an internal form, in which what all versions have in common is at the top. The paths in its errors
are those of that form: `spec.validation` for the schema of a definition with one version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.cel.libraries.go_urls import URLError, parse_request_uri
from situate.server.kinds.apiextensions.default_rules import check_defaults
from situate.server.kinds.apiextensions.expression_rules import check_expressions
from situate.server.kinds.apiextensions.schema_rules import check_schema
from situate.server.kinds.apiextensions.structural_rules import (
    EMBEDDED,
    INT_OR_STRING,
    MAP_KEYS,
    MAP_TYPE,
    has_unsupported_parts,
    schema_depth,
    structural_errors,
)
from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.names import dns_1035_label, subdomain
from situate.server.kinds.webhook_clients import check_webhook_service, check_webhook_url
from situate.server.objects import Object
from situate.wire.structural.schema import Structural, structural

MAX_SELECTABLE: Final = 8
MAX_DEPRECATION: Final = 256
MAX_DEPTH: Final = 64
"""Schemas inside of schemas. Kubernetes has no such limit; its own deepest definitions are far below it."""
APPROVED: Final = "api-approved.kubernetes.io"
SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = (
    "bsonobjectid",
    "byte",
    "creditcard",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
)
PRESERVE_IN_SCHEMA: Final = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_HOISTED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_FORBIDDEN_AT_ROOT: Final = (
    "id",
    "$schema",
    "$ref",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    EMBEDDED,
    INT_OR_STRING,
    MAP_KEYS,
    "x-kubernetes-list-type",
    MAP_TYPE,
)
_AT_ROOT: Final = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations]"
)


def name_rule_of(crd: Object, name: str) -> tuple[str, ...]:
    spec = crd.get("spec", {})
    wanted = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"
    problems = subdomain(name)
    return problems if name == wanted else (*problems, 'must be spec.names.plural+"."+spec.group')


def validate_definition(crd: Object, causes: Causes) -> None:
    meta, spec = crd["metadata"], crd["spec"]
    if meta.get("name"):
        for problem in name_rule_of(crd, meta["name"])[len(subdomain(meta["name"])) :]:
            causes.invalid("metadata.name", meta["name"], problem)
    _check_spec(spec, causes)
    validate_status(crd, causes)
    _check_approval(crd, None, causes)
    if spec.get("preserveUnknownFields"):
        causes.invalid("spec.preserveUnknownFields", True, PRESERVE_IN_SCHEMA)


def validate_definition_update(new: Object, old: Object, causes: Causes) -> None:
    spec, was = new["spec"], old["spec"]
    _check_spec(spec, causes)
    established = any(
        one["type"] == "Established" and one["status"] == "True" for one in old["status"].get("conditions") or ()
    )
    if established:
        _immutable(spec.get("scope", ""), was.get("scope", ""), "spec.scope", causes)
        _immutable(spec["names"].get("kind", ""), was["names"].get("kind", ""), "spec.names.kind", causes)
    _immutable(spec.get("group", ""), was.get("group", ""), "spec.group", causes)
    _immutable(spec["names"].get("plural", ""), was["names"].get("plural", ""), "spec.names.plural", causes)
    validate_status(new, causes)
    _check_approval(new, old, causes)
    if spec.get("preserveUnknownFields") and not was.get("preserveUnknownFields"):
        causes.invalid("spec.preserveUnknownFields", True, PRESERVE_IN_SCHEMA)


def _immutable(new: str, old: str, path: str, causes: Causes) -> None:
    if new != old:
        causes.invalid(path, new, IMMUTABLE)


def validate_status(crd: Object, causes: Causes) -> None:
    """The names that were accepted, and the versions in which objects may be stored."""
    status, versions = crd.get("status", {}), crd["spec"].get("versions") or ()
    _check_names(status.get("acceptedNames") or {}, "status.acceptedNames", causes)
    stored = status.get("storedVersions") or []
    if not stored:
        causes.invalid("status.storedVersions", None, "must have at least one stored version")
        return
    known = [one.get("name", "") for one in versions]
    for one in versions:
        if one.get("storage") and one.get("name", "") not in stored:
            causes.invalid("status.storedVersions", stored, f"must have the storage version {one.get('name', '')}")
    for at, name in enumerate(stored):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            causes.invalid(f"status.storedVersions[{at}]", name, detail)


# -- the spec ----------------------------------------------------------------------------------------------------------


def _check_spec(spec: Mapping[str, Any], causes: Causes) -> None:
    group, versions = spec.get("group", ""), spec.get("versions") or []
    if not group:
        causes.required("spec.group")
    elif problems := subdomain(group):
        causes.invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        causes.invalid("spec.group", group, "should be a domain with at least one dot")
    causes.require_one_of(spec.get("scope", ""), ("Cluster", "Namespaced"), "spec.scope")
    shared = {name: _shared(versions, name) for name in _HOISTED}
    if not shared["schema"] or (versions and not _schema_of(versions[0])):
        for at, one in enumerate(versions):
            if _schema_of(one) is None:
                causes.required(f"spec.versions[{at}].schema.openAPIV3Schema")
    for at, one in enumerate(versions):
        _check_version(one, f"spec.versions[{at}]", shared, causes)
    _check_version_names(versions, causes)
    _check_required_names(spec.get("names", {}), causes)
    if versions:
        _check_shared(versions, shared, causes)
    _check_conversion(spec.get("conversion"), spec, causes)


def _check_version_names(versions: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    names = [one.get("name", "") for one in versions]
    if len(dict.fromkeys(names)) != len(names):
        causes.invalid_struct("spec.versions", "must contain unique version names")
    if sum(1 for one in versions if one.get("storage")) != 1:
        causes.invalid_struct("spec.versions", "must have exactly one version marked as storage version")
    if names and (problems := dns_1035_label(names[0])):
        causes.invalid("spec.version", names[0], ",".join(problems))


def _check_shared(versions: Sequence[Mapping[str, Any]], shared: Mapping[str, bool], causes: Causes) -> None:
    """What all versions have in common."""
    first = versions[0]
    if shared["schema"]:
        has_status = any("status" in (one.get("subresources") or {}) for one in versions)
        _check_validation(first.get("schema"), has_status, "spec.validation", causes)
    if shared["subresources"]:
        _check_subresources(first.get("subresources"), "spec.subresources", causes)
    if shared["additionalPrinterColumns"]:
        _check_columns(first, "spec.additionalPrinterColumns", causes)
    if shared["selectableFields"]:
        _check_selectable(first, "spec.selectableFields", causes)


def _shared(versions: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether all versions have the same value."""
    return all(one.get(name) == versions[0].get(name) for one in versions)


def _schema_of(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _check_version(version: Mapping[str, Any], path: str, shared: Mapping[str, bool], causes: Causes) -> None:
    name = version.get("name", "")
    if problems := dns_1035_label(name):
        causes.invalid(f"{path}.name", name, ",".join(problems))
    warning = version.get("deprecationWarning")
    for problem in _deprecation_problems(bool(version.get("deprecated")), warning):
        causes.invalid(f"{path}.deprecationWarning", warning, problem)
    if not shared["schema"]:
        has_status = "status" in (version.get("subresources") or {})
        _check_validation(version.get("schema"), has_status, f"{path}.schema", causes)
    if not shared["subresources"]:
        _check_subresources(version.get("subresources"), f"{path}.subresources", causes)
    if not shared["additionalPrinterColumns"]:
        _check_columns(version, f"{path}.additionalPrinterColumns", causes)
    if not shared["selectableFields"]:
        _check_selectable(version, f"{path}.selectableFields", causes)


def _deprecation_problems(deprecated: bool, warning: str | None) -> list[str]:
    if warning is None:
        return []
    if not deprecated:
        return ["can only be set for deprecated versions"]
    found: list[str] = []
    if len(warning.encode()) > MAX_DEPRECATION:
        found.append(f"must be <= {MAX_DEPRECATION} characters long")
    if not warning:
        found.append("must not be an empty string")
    for at, char in enumerate(warning):
        if not char.isprintable():
            text = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            found.append(text)
            break
    return found


def _check_required_names(names: Mapping[str, Any], causes: Causes) -> None:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            causes.required(f"spec.names.{name}")
    _check_names(names, "spec.names", causes)


def _check_names(names: Mapping[str, Any], path: str, causes: Causes) -> None:
    for name in ("plural", "singular"):
        if (value := names.get(name)) and (problems := dns_1035_label(value)):
            causes.invalid(f"{path}.{name}", value, ",".join(problems))
    for name in ("kind", "listKind"):
        if (value := names.get(name)) and (problems := dns_1035_label(value.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            causes.invalid(f"{path}.{name}", value, detail)
    _check_each_name(names.get("shortNames") or (), f"{path}.shortNames", causes)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        causes.invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    _check_each_name(names.get("categories") or (), f"{path}.categories", causes)


def _check_each_name(values: Sequence[str], path: str, causes: Causes) -> None:
    for at, value in enumerate(values):
        if problems := dns_1035_label(value):
            causes.invalid(f"{path}[{at}]", value, ",".join(problems))


def _check_validation(given: Mapping[str, Any] | None, has_status: bool, path: str, causes: Causes) -> None:
    schema = (given or {}).get("openAPIV3Schema")
    if schema is None:
        return
    there = f"{path}.openAPIV3Schema"
    if schema_depth(schema) > MAX_DEPTH:
        causes.invalid_struct(there, f"schemas may be nested at most {MAX_DEPTH} levels deep")
        return
    if has_status:
        kind = schema.get("type", "")
        if kind and kind != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            causes.invalid(f"{there}.type", kind, detail)
        elif any(schema.get(name) not in (None, False) for name in _FORBIDDEN_AT_ROOT):
            detail = (
                f"only {_AT_ROOT} fields are allowed at the root of the schema if the status subresource is enabled"
            )
            causes.invalid_struct(there, detail)
    if schema.get("nullable"):
        causes.forbidden(f"{there}.nullable", "nullable cannot be true at the root")
    before = len(causes)
    if not has_unsupported_parts(schema):
        causes.extend(structural_errors(schema, there))
        if len(causes) == before:
            check_defaults(structural(schema), there, causes)
    check_schema(schema, there, causes)
    if len(causes) == before:
        check_expressions(structural(schema), there, causes, is_resource=True)


# -- subresources, columns and selectable fields -----------------------------------------------------------------------


def _check_subresources(given: Mapping[str, Any] | None, path: str, causes: Causes) -> None:
    scale = (given or {}).get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value, there = scale.get(name, ""), f"{path}.scale.{name}"
        if not value:
            causes.required(there)
        elif _is_simple_path(value, there, causes) and not value.startswith(root):
            causes.invalid(there, value, f"should be a json path under {root.removesuffix('.')}")
    if selector := scale.get("labelSelectorPath"):
        there = f"{path}.scale.labelSelectorPath"
        if _is_simple_path(selector, there, causes) and not selector.startswith((".spec.", ".status.")):
            causes.invalid(there, selector, "should be a json path under either .spec or .status")


def _is_simple_path(value: str, path: str, causes: Causes) -> bool:
    if value.startswith("."):
        return True
    causes.invalid(path, value, "must be a simple json path starting with .")
    return False


def _check_columns(version: Mapping[str, Any], path: str, causes: Causes) -> None:
    for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
        there = f"{path}[{at}]"
        causes.require(column.get("name"), f"{there}.name")
        detail = f"must be one of {','.join(COLUMN_TYPES)}"
        if not column.get("type"):
            causes.required(f"{there}.type", detail)
        elif column["type"] not in COLUMN_TYPES:
            causes.invalid(f"{there}.type", column["type"], detail)
        if (form := column.get("format")) and form not in COLUMN_FORMATS:
            causes.invalid(f"{there}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}")
        if not column.get("jsonPath"):
            causes.required(f"{there}.JSONPath")
        else:
            _is_simple_path(column["jsonPath"], f"{there}.JSONPath", causes)


def _check_selectable(version: Mapping[str, Any], path: str, causes: Causes) -> None:
    schema, seen = structural(_schema_of(version)), dict[str, None]()
    for at, one in enumerate(version.get("selectableFields") or ()):
        value, there = one.get("jsonPath", ""), f"{path}[{at}].jsonPath"
        if not value:
            causes.required(there)
            continue
        found, problem = _schema_at(schema, value)
        if found is None:
            causes.invalid(there, value, f"is an invalid path: {problem}")
            continue
        if value.startswith(".metadata"):
            causes.invalid(there, value, "must not point to fields in metadata")
        if found.type not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            causes.invalid(there, value, detail)
        if value in seen:
            causes.duplicate(there, value)
        seen[value] = None
    if len(seen) > MAX_SELECTABLE:
        causes.too_many(path, len(seen), MAX_SELECTABLE)


def _schema_at(schema: Structural, path: str) -> tuple[Structural | None, str]:
    """The schema of the field at a path, or what is wrong with the path."""
    if not path.startswith("."):
        return None, "must be a simple path starting with ."
    found: Structural | None = schema
    for name in path[1:].split("."):
        found = found.field(name) if found is not None else None
        if found is None:
            return None, "does not refer to a valid field"
    return found, ""


# -- conversion and approval -------------------------------------------------------------------------------------------


def _check_conversion(given: Mapping[str, Any] | None, spec: Mapping[str, Any], causes: Causes) -> None:
    if given is None:
        return
    path, strategy = "spec.conversion", given.get("strategy", "")
    if strategy != "None" and spec.get("preserveUnknownFields"):
        causes.invalid(f"{path}.strategy", strategy, "must be None if spec.preserveUnknownFields is true")
    causes.require_one_of(strategy, ("None", "Webhook"), f"{path}.strategy")
    webhook = given.get("webhook")
    client = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if client is not None:
            causes.forbidden(f"{path}.webhookClientConfig", detail)
        if versions:
            causes.forbidden(f"{path}.conversionReviewVersions", detail)
        return
    there = f"{path}.webhookClientConfig"
    if client is None:
        causes.required(there, "required when strategy is set to Webhook")
    elif ("url" in client) == ("service" in client):
        causes.required(there, "exactly one of url or service is required")
    elif "url" in client:
        check_webhook_url(client["url"], f"{there}.url", causes)
    else:
        check_webhook_service(client["service"], f"{there}.service", causes)
    _check_review_versions(versions, f"{path}.conversionReviewVersions", causes)


def _check_review_versions(versions: Sequence[str], path: str, causes: Causes) -> None:
    if not versions:
        causes.required(path)
        return
    for at, one in enumerate(versions):
        if one in versions[:at]:
            causes.invalid(f"{path}[{at}]", one, "duplicate version")
            continue
        for problem in dns_1035_label(one):
            causes.invalid(f"{path}[{at}]", one, problem)
    if not any(one in REVIEW_VERSIONS for one in versions):
        causes.invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


def _check_approval(crd: Object, old: Object | None, causes: Causes) -> None:
    """Kubernetes' own groups need an approval."""
    group = f".{crd['spec'].get('group', '')}"
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return
    state = _approval(crd)
    if old is not None and _approval(old) == state:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if state == "missing":
        causes.required(path, f'protected groups must have approval annotation "{APPROVED}", {SEE}')
    elif state == "invalid":
        wanted = 'with either a URL or a reason starting with "unapproved"'
        detail = f'protected groups must have approval annotation "{APPROVED}" {wanted}, {SEE}'
        causes.invalid(path, crd["metadata"]["annotations"][APPROVED], detail)


def _approval(crd: Object) -> str:
    note = (crd["metadata"].get("annotations") or {}).get(APPROVED, "")
    if not note:
        return "missing"
    if note.startswith("unapproved"):
        return "bypassed"
    try:
        url = parse_request_uri(note)
    except URLError:
        return "invalid"
    return "approved" if url.host and url.scheme else "invalid"
