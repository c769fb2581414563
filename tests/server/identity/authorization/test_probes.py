"""Writes that a node, or somebody who grants rights, must not make: a real kube-apiserver's answer, and ours."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from server.identity.memory import Memory
from server.identity.probes import PROBES, Probe
from situate.server.errors import StatusError, not_found
from situate.server.identity.authorization.attributes import Attributes, forbidden_error
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.escalation import NoEscalation
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_PATH
from situate.wire.patching import merge_patched

VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}


def parsed(path: str) -> tuple[Target, str]:
    url = urlsplit(path)
    parts = url.path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", ""][:3]
    fields = parse_qs(url.query).get("fieldSelector", [""])[0]
    return Target(BY_PATH[group, version, plural], namespace, name, subresource), fields


def object_at(world: Memory, path: str) -> Object:
    target, _ = parsed(path)
    held = world.get(target.resource, target.namespace, target.name)
    assert held is not None, path
    return held.object(target.resource)


def answer(world: Memory, probe: Probe) -> None:
    """What the server would do up to the point where it writes."""
    target, fields = parsed(probe.path)
    caller = Caller(probe.who.name, probe.who.groups)
    verb = VERBS[probe.method]
    if verb == "get" and not target.name:
        verb = "list"
    resource = target.resource
    asked = Attributes(
        verb, resource.group, resource.plural, target.subresource, target.namespace, target.name, "", fields
    )
    authorization = Authorization(world)
    decision = authorization.allows(caller, asked)
    if not decision.allowed:
        raise forbidden_error(caller, asked, decision.reason)
    restriction = NodeRestriction(world, authorization)
    body = probe.filled(lambda path: object_at(world, path))
    if target.subresource == "token":
        assert body is not None
        restriction.admit_token(target, body, caller)
        return
    held = world.get(resource, target.namespace, target.name) if target.name else None
    old = held.object(resource) if held else None
    if verb in ("patch", "delete") and old is None:
        raise not_found(resource.plural, resource.group, target.name)
    new = merge_patched(old or {}, body) if verb == "patch" else body
    action: Any = {"patch": "update"}.get(verb, verb)
    if action in ("create", "update", "delete"):
        for admission in (restriction, NoEscalation(authorization.rbac, authorization)):
            asyncio.run(admission.admit(action, target, new, old, caller))


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.id)
def test_is_answered_as_kubernetes_does(world: Memory, facts: dict[str, Any], probe: Probe) -> None:
    code, text = facts["told"][probe.id]
    try:
        answer(world, probe)
        mine = (200, "")
    except StatusError as error:
        mine = (error.code, error.message)
    # Kubernetes adds to one of them how the two objects differ, in Go's words.
    assert mine == (code, text.partition(": @@")[0])


def test_there_are_probes_of_both_kinds_for_nodes_and_for_granting(facts: dict[str, Any]) -> None:
    codes = [facts["told"][probe.id][0] for probe in PROBES]
    assert codes.count(403) > 50
    assert codes.count(200) > 20
    assert sorted(facts["told"]) == sorted(probe.id for probe in PROBES)
