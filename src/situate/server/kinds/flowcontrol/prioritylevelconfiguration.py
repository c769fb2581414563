"""PriorityLevelConfiguration: a share of the server's concurrency. It is kept, and limits nothing here."""

from collections.abc import Mapping
from math import ceil, log2
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.flowcontrol.flowschema import EXEMPT
from situate.server.kinds.flowcontrol.status import WHY, drop_status, validate_status
from situate.server.kinds.kind import Kind
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

SHARES: Final = 30
QUEUING: Final = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}
TYPES: Final = ("Exempt", "Limited")
RESPONSES: Final = ("Queue", "Reject")
MOST_QUEUES: Final = 10_000_000
HASH_BITS: Final = 60
"""The bits of the hash that chooses a hand of queues."""
PRESERVED: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_PERCENT: Final = "must be between 0 and 100, inclusive"


def _default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if exempt is not None:
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    if limited is not None:
        limited.setdefault("nominalConcurrencyShares", SHARES)
        limited.setdefault("lendablePercent", 0)
        queuing = limited.setdefault("limitResponse", {}).get("queuing")
        if queuing is not None:
            for name, number in QUEUING.items():
                queuing[name] = queuing.get(name) or number


def _validate(obj: Object, causes: Causes) -> None:
    if PRESERVED in (obj["metadata"].get("annotations") or {}):
        causes.forbidden("metadata.annotations", f"annotation '{PRESERVED}' is forbidden")
    spec = obj.get("spec", {})
    kind = spec.get("type", "")
    if (obj["metadata"].get("name", "") == EXEMPT) != (kind == "Exempt"):
        causes.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        _exempt(spec, causes)
    elif kind == "Limited":
        _limited(spec, causes)
    else:
        causes.require_one_of(kind, TYPES, "spec.type")
    validate_status(obj, obj, causes)


def _exempt(spec: Mapping[str, Any], causes: Causes) -> None:
    if "limited" in spec:
        causes.forbidden("spec.limited", "must be nil if the type is not Limited")
    if "exempt" in spec:
        _shares(spec["exempt"], "spec.exempt", causes)
        _lendable(spec["exempt"], "spec.exempt", causes)


def _limited(spec: Mapping[str, Any], causes: Causes) -> None:
    if "exempt" in spec:
        causes.forbidden("spec.exempt", "must be nil if the type is Limited")
    limited = spec.get("limited")
    if limited is None:
        causes.required("spec.limited", "must not be empty when type is Limited")
        return
    _shares(limited, "spec.limited", causes)
    _response(limited.get("limitResponse", {}), "spec.limited.limitResponse", causes)
    _lendable(limited, "spec.limited", causes)
    if limited.get("borrowingLimitPercent", 0) < 0:
        path = "spec.limited.borrowingLimitPercent"
        causes.invalid(path, limited["borrowingLimitPercent"], "if specified, must be a non-negative integer")


def _shares(level: Mapping[str, Any], path: str, causes: Causes) -> None:
    shares = level.get("nominalConcurrencyShares", 0)
    if shares < 0:
        causes.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")


def _lendable(level: Mapping[str, Any], path: str, causes: Causes) -> None:
    percent = level.get("lendablePercent", 0)
    if not 0 <= percent <= 100:
        causes.invalid(f"{path}.lendablePercent", percent, _PERCENT)


def _response(response: Mapping[str, Any], path: str, causes: Causes) -> None:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            causes.forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind == "Queue":
        if queuing is None:
            causes.required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")
        else:
            _queuing(queuing, f"{path}.queuing", causes)
    else:
        causes.require_one_of(kind, RESPONSES, f"{path}.type")


def _queuing(queuing: Mapping[str, Any], path: str, causes: Causes) -> None:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        causes.invalid(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        causes.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > MOST_QUEUES:
        causes.invalid(f"{path}.queues", queues, f"must not be greater than {MOST_QUEUES}")
    if hand <= 0:
        causes.invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        causes.invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif ceil(log2(queues) * hand) > HASH_BITS:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        causes.invalid(f"{path}.handSize", hand, text)


def _validate_update(new: Object, _old: Object, causes: Causes) -> None:
    _validate(new, causes)


KIND: Final = Kind(
    "flowcontrol.apiserver.k8s.io/v1 prioritylevelconfigurations PriorityLevelConfiguration C - - | status",
    strategy=Strategy(
        default=_default,
        prepare_create=drop_status,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=validate_status,
        counts_generation=True,
        warnings=kept("PriorityLevelConfiguration", WHY),
    ),
    columns="""
        Name!, Type = spec.type, NominalConcurrencyShares = spec.limited.nominalConcurrencyShares|<none>,
        Queues = spec.limited.limitResponse.queuing.queues|<none>,
        HandSize = spec.limited.limitResponse.queuing.handSize|<none>,
        QueueLengthLimit = spec.limited.limitResponse.queuing.queueLengthLimit|<none>, Age
        """,
    description="PriorityLevelConfiguration limits the concurrency of a class of requests.",
)
