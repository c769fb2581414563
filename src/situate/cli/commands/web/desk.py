"""Answers the page's questions as the commands do: what the page shows is what `-o json` prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from situate.cli import BadInput
from situate.cli.commands.plan.drain import drain_values
from situate.cli.commands.plan.fit import fit_values
from situate.cli.commands.plan.input import PlanOptions, copied_pod, plan_notes, read_live_input, workloads_of
from situate.cli.commands.plan.survive import ZONE, survive_values
from situate.cli.commands.web.simulation import simulate_live
from situate.cli.commands.why.values import as_values, waiting_values
from situate.cli.commands.why.waiting import waiting_of
from situate.cli.input.live import read_pod_records
from situate.cli.input.manifests import manifests_in
from situate.cli.input.published import ClusterProfiles, cluster_profiles
from situate.core.devices.template_claims import Templates
from situate.core.explain.explanation import explain
from situate.core.plan.drain import drain
from situate.core.plan.eviction_rules import DrainRules
from situate.core.plan.fit import fit
from situate.core.plan.survive import losses
from situate.core.state.cluster import Cluster
from situate.kube.client import Client
from situate.web.desk import Answer, PodInQuestion, Profiles, Simulation, SimulationQuestion
from situate.wire.errors import InputError
from situate.wire.objects import Source, decode_pod

MANIFEST: Final = "the manifest"
MOST_COUNTED: Final = 10_000
"""How many pods of one kind the probe places at most."""


class CommandDesk:
    """Stateless: everything is in the arguments."""

    async def profiles(self, client: Client) -> Profiles:
        return await cluster_profiles(client, None)

    async def pod(self, client: Client, namespace: str, name: str, node: str) -> PodInQuestion:
        records = await read_pod_records(client, namespace, name)
        return PodInQuestion(decode_pod(msgspec.json.encode(records[0])), records, node)

    def why(self, cluster: Cluster, profiles: Profiles, asked: PodInQuestion, templates: Templates) -> Answer:
        known, pod = cast("ClusterProfiles", profiles), asked.pod
        if asked.node and asked.node not in cluster.nodes.rows:
            raise InputError(f'nodes "{asked.node}" not found')
        name = pod.spec.scheduler_name
        found = explain(cluster, known.of(name), pod, node=asked.node, templates=templates)
        waiting = waiting_of(asked.records, pod.metadata.namespace, pod.metadata.name)
        return {
            **as_values(found, waiting, known.unserved(name)),
            "decision": _decision(asked),
            "manifest": asked.records[0],
            "notes": list(known.notes),
        }

    def recorded(self, asked: PodInQuestion) -> Answer:
        meta = asked.pod.metadata
        waiting = waiting_of(asked.records, meta.namespace, meta.name)
        return {
            "pod": f"{meta.namespace}/{meta.name}",
            "standing": "bound" if asked.pod.spec.node_name else "waiting",
            "message": waiting.recorded,
            "schedulerName": asked.pod.spec.scheduler_name,
            "priority": asked.pod.spec.priority or 0,
            "node": asked.pod.spec.node_name or None,
            "waiting": waiting_values(waiting),
            "decision": _decision(asked),
            "manifest": asked.records[0],
        }

    async def room(self, client: Client, manifest: str) -> Answer:
        read = await read_live_input(client, _options())
        source = Source(MANIFEST, manifest.encode())

        def count() -> Answer:
            found = workloads_of(manifests_in(source), read, MANIFEST)
            if len(found) > 1:
                raise InputError(f"{MANIFEST} has {len(found)} workloads: give one")
            pod, notes = copied_pod(found[0].pod)
            result = fit(read.sandbox(), pod, MOST_COUNTED)
            answer = fit_values(result, found[0].subject, [], None)
            return {**answer, "notes": [*plan_notes(read, budgets=False, pods=[pod]), *notes]}

        return await _in_thread(count)

    async def drain(self, client: Client, nodes: Sequence[str]) -> Answer:
        read = await read_live_input(client, _options(), local=True)

        def drained() -> Answer:
            for name in nodes:
                read.node(name)
            found = drain(read.sandbox(), list(dict.fromkeys(nodes)), DrainRules(read.local))
            return {**drain_values(found, None), "notes": plan_notes(read, budgets=True)}

        return await _in_thread(drained)

    async def survive(self, client: Client) -> Answer:
        read = await read_live_input(client, _options())

        def lost() -> Answer:
            found = list(losses(read.sandbox(), ZONE))
            notes = plan_notes(read, budgets=False)
            if not found:
                notes.append(f"no node has the label {ZONE}")
            return {**survive_values(found, None, None), "notes": notes}

        return await _in_thread(lost)

    async def simulate(self, client: Client, asked: SimulationQuestion, stopped: Callable[[], bool]) -> Simulation:
        return await simulate_live(client, asked, stopped)


def _decision(asked: PodInQuestion) -> Mapping[str, Any] | None:
    return next((one for one in asked.records if one.get("kind") == "PlacementDecision"), None)


def _options() -> PlanOptions:
    return PlanOptions((), None, False, None, None, "json", None, None)


async def _in_thread(work: Callable[[], Answer]) -> Answer:
    """A cluster that was read for this question is nobody else's, so a thread may change it."""
    try:
        return await asyncio.to_thread(work)
    except BadInput as error:
        raise InputError(error.message) from None
