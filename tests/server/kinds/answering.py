"""The answers of the kinds' strategies to the cases of the corpus, without a registry around them."""

import copy
from functools import cache

from server.kinds.corpus import Case, Json, bases, causes_of, changed, told
from situate.server.errors import Cause, invalid
from situate.server.kinds import STRATEGIES, Strategy
from situate.server.kinds.metadata import validate_metadata, validate_metadata_update
from situate.wire.schema import DecodeError, normalised

NOW, UID, REVISION = "2026-01-01T00:00:00Z", "00000000-0000-0000-0000-000000000001", "7"
_BASES = bases()


@cache
def ours(case: Case) -> Json:
    """Treat it as read-only: it is computed once."""
    base = _BASES[case.base]
    strategy = STRATEGIES["/" + base["kind"]]
    try:
        if case.verb == "create":
            return created(changed(base, case.changes), strategy)
        kept = stored(case.base)
        return updated(changed(kept, case.changes), kept, strategy, case.verb)
    except DecodeError:
        return {"code": 400, "causes": []}


@cache
def stored(name: str) -> Json:
    """A base as the server keeps it."""
    base = _BASES[name]
    strategy = STRATEGIES["/" + base["kind"]]
    kept: Json = created(base, strategy, show=False)["object"]
    if "status" in base and base["kind"] != "Node":
        kept = updated({**copy.deepcopy(kept), "status": base["status"]}, kept, strategy, "status", show=False)[
            "object"
        ]
    return kept


def created(body: Json, strategy: Strategy, *, show: bool = True) -> Json:
    obj = normalised(body["apiVersion"], body["kind"], copy.deepcopy(body))
    meta = obj.setdefault("metadata", {})
    strategy.default(obj)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + "xxxxx"
    meta["uid"], meta["creationTimestamp"] = UID, NOW
    if strategy.counts_generation:
        meta["generation"] = 1
    strategy.prepare_create(obj)
    causes = validate_metadata(obj, strategy.name_rule, "namespace" in _scoped(body))
    strategy.validate(obj, causes)
    meta["resourceVersion"] = REVISION
    return _answer(201, obj, body, causes, show, strategy.warnings(obj))


def updated(body: Json, kept: Json, strategy: Strategy, verb: str, *, show: bool = True) -> Json:
    new = normalised(body["apiVersion"], body["kind"], copy.deepcopy(body))
    old = copy.deepcopy(kept)
    new["metadata"]["creationTimestamp"] = old["metadata"]["creationTimestamp"]
    strategy.default(new)
    if verb == "status":
        strategy.prepare_status(new, old)
    else:
        strategy.prepare_update(new, old)
        if strategy.counts_generation and _counted(new) != _counted(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    causes = validate_metadata_update(new, old)
    validate = strategy.validate_status if verb == "status" else strategy.validate_update
    validate(new, old, causes)
    return _answer(200, new, body, causes, show, [])


def _counted(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}


def _scoped(body: Json) -> Json:
    cluster_wide = body["kind"] in ("Node", "Namespace", "PersistentVolume")
    return {} if cluster_wide else {"namespace": ""}


def _answer(code: int, obj: Json, body: Json, causes: list[Cause], show: bool, warned: list[str]) -> Json:
    if causes:
        status = invalid(body["kind"], "", obj["metadata"].get("name", ""), causes)
        return {"code": status.code, "causes": causes_of(status.status())}
    if not show:
        return {"code": code, "object": {**obj, "apiVersion": body["apiVersion"], "kind": body["kind"]}}
    return {"code": code, "object": told(obj), "warnings": sorted(warned)}
