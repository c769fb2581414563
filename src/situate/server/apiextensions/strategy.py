"""The strategy of a custom kind: defaults, validation and warnings that its schema implies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from situate.core.model.field_errors import quoted
from situate.core.model.names import qualified_name_problems
from situate.server.errors import StatusError, invalid
from situate.server.kinds.apiextensions.schema_causes import add_rule_errors, add_schema_errors
from situate.server.kinds.apiextensions.structural_rules import walk_schemas
from situate.server.kinds.custom_version import ScalePaths
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.metadata import validate_metadata
from situate.server.kinds.names import dns_1035_label, path_segment
from situate.server.kinds.strategy import Strategy, drop_status, keep_status
from situate.server.objects import Object, go_type, shown_name
from situate.wire.schema.values import INT32_MAX
from situate.wire.structural.checks import MISSING, NO_PATH, SchemaChecks, SchemaError
from situate.wire.structural.defaulting import TooManyDefaultsError, fill_defaults, has_defaults
from situate.wire.structural.embedded import embedded_in, has_embedded
from situate.wire.structural.list_types import has_list_types, list_errors
from situate.wire.structural.patterns import PatternWorkError
from situate.wire.structural.rules import rule_checks
from situate.wire.structural.schema import Structural, values_in

UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_BLOCKING: Final = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
"""Reasons of errors that keep rules from being checked."""
FEW_ALTERNATIVES: Final = 1_000
"""Of a schema with so many schemas inside of `allOf` and its like, no object is too large."""
MAX_WORK: Final = 5_000_000
"""Values of an object times such schemas."""
TOO_MUCH_WORK: Final = f"the object has too many values for a schema of so many alternatives: limit is {MAX_WORK}"
_STANDARD: Final = ("kubernetes", "orphan", "foregroundDeletion")
PREFER_DOMAIN: Final = (
    "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
)
PREFER_PATH: Final = (
    "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer "
    "writers"
)


def _alternatives(schema: Mapping[str, Any]) -> int:
    """How many schemas are inside of `allOf` and its like."""
    found = 0
    for one in walk_schemas(schema):
        found += sum(len(one.get(name, ())) for name in ("allOf", "anyOf", "oneOf")) + ("not" in one)
    return found


def _too_large(text: str) -> StatusError:
    return StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", text)


def _errors(checks: SchemaChecks, value: Any, old: Any = MISSING) -> Sequence[SchemaError]:
    try:
        return checks.errors(value, old)
    except PatternWorkError as error:
        raise _too_large(str(error)) from None


class _CustomRules:
    """The rules of one version of a custom kind; the steps of a Strategy are its methods."""

    def __init__(
        self,
        group: str,
        kind: str,
        schema: Structural,
        *,
        has_status: bool,
        scale: ScalePaths | None,
    ) -> None:
        self._group = group
        self._kind = kind
        self._schema = schema
        self._has_status = has_status
        self._scale = scale
        self._rules = rule_checks(schema, is_resource=True)
        self._checks = SchemaChecks(schema.source)
        in_status = schema.source.get("properties", {}).get("status")
        self._status_checks = SchemaChecks(in_status) if in_status is not None else None
        self._has_lists = has_list_types(schema)
        self._has_embedded = has_embedded(schema)
        self._has_defaults = has_defaults(schema)
        self._alternatives = _alternatives(schema.source)

    def default(self, obj: Object) -> None:
        """413 for an object that its defaults would make too large."""
        if not self._has_defaults:
            return
        try:
            fill_defaults(obj, self._schema)
        except TooManyDefaultsError as error:
            raise _too_large(str(error)) from None

    def prepare_create(self, obj: Object) -> None:
        self._check_head(obj)
        if self._has_status:
            drop_status(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        self._check_head(new)
        if self._has_status:
            keep_status(new, old)

    def _check_head(self, obj: Object) -> None:
        """An object of another kind is refused before anything else is said about it."""
        if obj.get("kind") != self._kind:
            causes = Causes()
            causes.invalid("kind", obj.get("kind", ""), f"must be {self._kind}")
            raise invalid(self._kind, self._group, shown_name(obj), causes)

    def validate(self, obj: Object, causes: Causes) -> None:
        self._check_work(obj)
        add_schema_errors(_errors(self._checks, obj), "", causes)
        self._check_parts(obj, causes)
        if self._has_lists:
            _check_lists(obj, self._schema, causes)
        self._check_rules(obj, None, causes)

    def _check_work(self, obj: Object) -> None:
        """413 for an object that would take too long to check: each value is compared with each alternative."""
        if self._alternatives > FEW_ALTERNATIVES and self._alternatives * values_in(obj) > MAX_WORK:
            raise _too_large(TOO_MUCH_WORK)

    def validate_update(self, new: Object, old: Object, causes: Causes) -> None:
        self._check_work(new)
        add_schema_errors(_errors(self._checks, new, old), "", causes)
        self._check_parts(new, causes)
        self._check_lists_after(new, old, causes)
        self._check_rules(new, old, causes)

    def validate_status(self, new: Object, old: Object, causes: Causes) -> None:
        self._check_work(new)
        if self._status_checks is not None and "status" in new:
            errors = _errors(self._status_checks, new["status"], old.get("status", MISSING))
            add_schema_errors(errors, "status", causes)
        _check_scale(new, self._scale, causes, whole=False)
        self._check_lists_after(new, old, causes)
        self._check_rules(new, old, causes)

    def _check_parts(self, obj: Object, causes: Causes) -> None:
        _check_scale(obj, self._scale, causes, whole=True)
        if self._has_embedded:
            _check_embedded(obj, self._schema, causes)

    def _check_lists_after(self, new: Object, old: Object, causes: Causes) -> None:
        """Duplicates are refused, unless there were some before."""
        if self._has_lists and next(list_errors(old, self._schema), None) is None:
            _check_lists(new, self._schema, causes)

    def _check_rules(self, new: Object, old: Object | None, causes: Causes) -> None:
        if self._rules is None:
            return
        if any(one.reason in _BLOCKING for one in causes):
            causes.invalid(NO_PATH, None, UNCHECKED)
        else:
            add_rule_errors(self._rules.errors(new, old), "", causes)


def custom_strategy(
    group: str,
    kind: str,
    schema: Structural,
    *,
    has_status: bool,
    scale: ScalePaths | None,
) -> Strategy:
    made = _CustomRules(group, kind, schema, has_status=has_status, scale=scale)
    return Strategy(
        default=made.default,
        prepare_create=made.prepare_create,
        prepare_update=made.prepare_update,
        validate=made.validate,
        validate_update=made.validate_update,
        validate_status=made.validate_status,
        warnings=lambda obj: _finalizer_warnings(_finalizers(obj)),
        update_warnings=_new_finalizer_warnings,
        own_finalizers=False,
        counts_generation=True,
        unconditional_update=False,
    )


def _check_lists(obj: Object, schema: Structural, causes: Causes) -> None:
    for one in list_errors(obj, schema):
        if one.text:
            causes.invalid(one.path, one.value, one.text)
        else:
            causes.duplicate(one.path, one.value)


# -- embedded objects --------------------------------------------------------------------------------------------------


def _check_embedded(obj: Object, schema: Structural, causes: Causes) -> None:
    for path, inner in embedded_in(obj, schema):
        for name in ("apiVersion", "kind"):
            if name not in inner:
                causes.required(f"{path}.{name}")
        for name in inner:
            match name:
                case "apiVersion":
                    _check_api_version(inner[name], f"{path}.apiVersion", causes)
                case "kind":
                    _check_kind(inner[name], f"{path}.kind", causes)
                case "metadata":
                    meta = {"name": "fakename", **inner["metadata"]}
                    named = {"metadata": {**meta, "name": meta["name"] or "fakename"}}
                    namespaced = bool(meta.get("namespace"))
                    causes.extend(
                        validate_metadata(named, path_segment, namespaced, f"{path}.metadata", own_finalizers=False)
                    )


def _check_api_version(value: Any, path: str, causes: Causes) -> None:
    if not isinstance(value, str):
        causes.invalid(path, value, "must be a string")
    elif not value:
        causes.invalid(path, value, "must not be empty")
    elif value.count("/") > 1:
        causes.invalid(path, value, f"unexpected GroupVersion string: {value}")


def _check_kind(value: Any, path: str, causes: Causes) -> None:
    if not isinstance(value, str):
        causes.invalid(path, value, "must be a string")
    elif not value:
        causes.invalid(path, value, "must not be empty")
    elif problems := dns_1035_label(value.lower()):
        causes.invalid(path, value, f"may have mixed case, but should otherwise match: {','.join(problems)}")


# -- the scale subresource ---------------------------------------------------------------------------------------------


def _check_scale(obj: Object, scale: ScalePaths | None, causes: Causes, *, whole: bool) -> None:
    if scale is None:
        return
    if whole:
        _check_replicas(obj, scale.replicas, causes)
    _check_replicas(obj, scale.observed, causes)
    if scale.selector:
        found = _nested(obj, scale.selector)
        if isinstance(found, _WrongType):
            causes.invalid(scale.selector, "", found.text)
        elif found is not None and not isinstance(found, str):
            causes.invalid(scale.selector, "", _accessor_error(scale.selector, found, "string"))


def _check_replicas(obj: Object, path: str, causes: Causes) -> None:
    found = _nested(obj, path)
    if isinstance(found, _WrongType):
        causes.invalid(path, 0, found.text)
    elif found is None:
        return
    elif not isinstance(found, int) or isinstance(found, bool):
        causes.invalid(path, 0, _accessor_error(path, found, "int64"))
    elif found < 0:
        causes.invalid(path, found, "should be a non-negative integer")
    elif found > INT32_MAX:
        causes.invalid(path, found, f"should be less than or equal to {INT32_MAX}")


class _WrongType:
    def __init__(self, text: str) -> None:
        self.text = text


def _nested(obj: Any, path: str) -> Any:
    names = path.removeprefix(".").split(".")
    for at, name in enumerate(names):
        if not isinstance(obj, dict):
            return _WrongType(_accessor_error("." + ".".join(names[:at]), obj, "map[string]interface {}"))
        if name not in obj:
            return None
        obj = obj[name]
    return obj


def _accessor_error(path: str, value: Any, wanted: str) -> str:
    shown = value if isinstance(value, str) else "true" if value is True else "false" if value is False else value
    return f"{path} accessor error: {shown} is of the type {go_type(value)}, expected {wanted}"


# -- finalizers --------------------------------------------------------------------------------------------------------


def _finalizers(obj: Object) -> Sequence[str]:
    found: Sequence[str] = obj["metadata"].get("finalizers", ())
    return found


def _new_finalizer_warnings(new: Object, old: Object) -> list[str]:
    before = _finalizers(old)
    return _finalizer_warnings([one for one in _finalizers(new) if one not in before])


def _finalizer_warnings(names: Iterable[str]) -> list[str]:
    found: list[str] = []
    for name in sorted(dict.fromkeys(names)):
        where = f"metadata.finalizers: {quoted(name)}"
        found += [f"{where}: {problem}" for problem in qualified_name_problems(name)]
        if "/" not in name and name not in _STANDARD:
            found.append(f"{where}: {PREFER_PATH if '.' in name else PREFER_DOMAIN}")
    return found
