"""Writes through a kind's strategy, as the registry makes them: decode, default, prepare, validate; nothing is kept."""

import copy
from dataclasses import dataclass

from server.kinds.checking import found_by
from server.kinds.corpus_groups import Case, Json, merged
from situate.server.errors import Cause
from situate.server.kinds import STRATEGIES
from situate.server.kinds.metadata import validate_metadata, validate_metadata_update
from situate.server.kinds.strategy import Strategy
from situate.server.resources import BY_KIND, Resource
from situate.wire.schema import normalised

UID = "UID"


def strategy_of(resource: Resource) -> Strategy:
    return STRATEGIES[f"{resource.group}/{resource.kind}"]


@dataclass(frozen=True, slots=True)
class Written:
    object: Json
    causes: list[Cause]
    warnings: list[str]


def _decoded(resource: Resource, strategy: Strategy, body: Json) -> Json:
    obj = normalised(resource.api_version, resource.kind, copy.deepcopy(body))
    obj |= {"apiVersion": resource.api_version, "kind": resource.kind}
    strategy.default(obj)
    return obj


def created(body: Json) -> Written:
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    strategy = strategy_of(resource)
    obj = _decoded(resource, strategy, body)
    obj["metadata"]["uid"] = UID
    if resource.namespaced:
        obj["metadata"]["namespace"] = "default"
    strategy.prepare_create(obj)
    if strategy.counts_generation:
        obj["metadata"]["generation"] = 1
    causes = validate_metadata(obj, strategy.name_rule, resource.namespaced)
    strategy.validate(obj, causes)
    return Written(obj, causes, strategy.warnings(obj))


def updated(old: Json, body: Json, subresource: str = "") -> Written:
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    strategy = strategy_of(resource)
    new = _decoded(resource, strategy, body)
    new["metadata"]["resourceVersion"] = "1"
    new["metadata"] |= {key: old["metadata"][key] for key in ("generation",) if key in old["metadata"]}
    if subresource:
        strategy.prepare_status(new, old)
        return Written(new, validate_metadata_update(new, old) + found_by(strategy.validate_status, new, old), [])
    strategy.prepare_update(new, old)
    if strategy.counts_generation and _asked(new) != _asked(old):
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1
    return Written(new, validate_metadata_update(new, old) + found_by(strategy.validate_update, new, old), [])


def _asked(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def written(case: Case) -> Written:
    made = created(case.body)
    if case.change is None:
        return made
    if made.causes:
        raise ValueError(f"{case.title}: {made.causes}")
    return updated(made.object, merged(copy.deepcopy(made.object), case.change), case.subresource)
