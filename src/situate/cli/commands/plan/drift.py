"""`situate plan drift`: which pods no longer fit or match their node, and what `--drift move` would do with each."""

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click
import msgspec

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.objects import list_objects
from situate.cli.input.manifests import read_manifests
from situate.cli.options import cluster_options, files_option, output_option, require_one_source
from situate.cli.output.formats import names_of_pods
from situate.cli.output.text import headline, plan_columns, plural, show
from situate.core.model.managed import Budget, ManagedPod
from situate.core.model.meta import key_of
from situate.core.model.node import Node
from situate.core.reconcile.drift import MOVES, PERIOD_MS, DriftedPod, drifted_pods
from situate.core.reconcile.objects import ObjectIndex

DRIFTED: Final = 1
DEFAULT: Final = "default"
"""The namespace of a manifest without one."""
PATHS: Final = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
}
ACTIONS: Final = {"evict": "evict now", "wait": "blocked by its budget", "never": "never"}


@click.command()
@cluster_options
@files_option
@output_option()
def drift(kubeconfig: str | None, context: str | None, names: tuple[str, ...], output: str) -> None:
    """Say which pods no longer fit or match the node they are on, and which of them could move now. Moves nothing.

    A pod has drifted if its node shrank below what its pods ask for, or if the node's labels or taints changed. With
    `--drift move`, the controllers evict such pods within their budgets. Exits with 1 if a pod has drifted.
    """
    require_one_source(names, kubeconfig, context)
    if names:
        objects = _index((one.kind, one.body) for one in read_manifests(names))
        if not objects.among(Node):
            raise BadInput(f"{', '.join(names)}: no Node found")
    else:
        objects = with_client(kubeconfig, context, _read_live)
    found = drifted_pods(objects, int(time.time() * 1_000))
    drifted = names_of_pods([key_of(one.pod.metadata) for one in found])
    show(_lines(found), {"pods": [_values(one) for one in found], "movesAPeriod": MOVES}, [], output, drifted)
    if found:
        sys.exit(DRIFTED)


async def _read_live(client: Client) -> ObjectIndex:
    return _index([(kind, body) for kind, path in PATHS.items() for body in await list_objects(client, path)])


def _index(bodies: Iterable[tuple[str, Mapping[str, Any]]]) -> ObjectIndex:
    """Raises InputError."""
    from situate.wire.errors import InputError
    from situate.wire.objects import decode_node, decode_pod

    objects = ObjectIndex()
    for kind, body in bodies:
        if kind not in PATHS:
            continue
        meta = body.get("metadata") or {}
        try:
            if kind == "Node":
                objects.put(decode_node(msgspec.json.encode(body)))
                continue
            whole = {**body, "metadata": {**meta, "namespace": meta.get("namespace") or DEFAULT}}
            if kind == "Pod":
                objects.put(decode_pod(msgspec.json.encode(whole)))
            objects.put(msgspec.convert(whole, ManagedPod if kind == "Pod" else Budget))
        except msgspec.ValidationError as error:
            raise InputError(str(error), subject=f"{kind} {meta.get('name', '')}") from None
    return objects


def _lines(found: list[DriftedPod]) -> list[str]:
    if not found:
        return [headline("no pod has drifted", good=True)]
    moving = sum(one.action == "evict" for one in found)
    could = "none of them" if not moving else f"{moving} of them"
    head = f"{plural(len(found), 'pod')} {'has' if len(found) == 1 else 'have'} drifted; {could} could move now"
    rows = [(key_of(one.pod.metadata), one.node, one.reason, _action(one)) for one in found]
    rate = f"with --drift move, at most {MOVES} would leave in {PERIOD_MS // 1_000} s"
    return [headline(head, good=False), "", *plan_columns(("POD", "NODE", "WHY", "WHAT HAPPENS"), rows), "", rate]


def _action(one: DriftedPod) -> str:
    return f"{ACTIONS[one.action]}: {one.why}" if one.why else ACTIONS[one.action]


def _values(one: DriftedPod) -> dict[str, Any]:
    return {
        "pod": key_of(one.pod.metadata),
        "node": one.node,
        "reason": one.reason,
        "action": one.action,
        "why": one.why or None,
        "priority": one.pod.spec.priority or 0,
    }
