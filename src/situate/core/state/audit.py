"""The audit: count everything again from the pods and nodes themselves, and compare.

The sums that are kept make decisions fast, and would make them wrong if one were off. Tests audit after every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from situate.core.model.base import INT64_MAX
from situate.core.model.requests import allocatable, pod_requests
from situate.core.state.attached import NO_LIMIT, NOTHING_ATTACHED, NodeVolumes, node_volumes
from situate.core.state.classes import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, LabelGroup, PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.devices import Devices, DeviceTable
from situate.core.state.images import ImageTable
from situate.core.state.objects import ObjectTable
from situate.core.state.ports import PortTable
from situate.core.state.vocab import ABSENT
from situate.core.state.volumes import VolumeTable


def audit(cluster: Cluster) -> list[str]:
    """Every difference between what is kept and a recount. Changes nothing."""
    found: list[str] = []
    checks = (
        _rows,
        _node_columns,
        _loads,
        _classes,
        _groups,
        _sparse_tables,
        _groups_by_label,
        _attached,
        _tallies,
        _terms,
        _devices,
    )
    for check in checks:
        found.extend(check(cluster))
    return found


def _differ(what: str, kept: Any, counted: Any) -> Iterator[str]:
    if kept != counted:
        yield f"{what}: kept {kept!r}, counted {counted!r}"


def _rows(cluster: Cluster) -> Iterator[str]:
    nodes, pods = cluster.nodes, cluster.pods
    yield from _differ("node rows", nodes.rows, {name: row for row, name in enumerate(nodes.names) if name})
    yield from _differ("present rows", np.flatnonzero(nodes.present).tolist(), sorted(nodes.rows.values()))
    yield from _differ("pod rows", pods.rows, {pods.keys[row]: row for row in pods.rows.values()})
    on_nodes = sorted((row, at) for at, here in enumerate(nodes.pods) for row in here)
    yield from _differ("pods by node", on_nodes, sorted((row, pods.node_rows[row]) for row in pods.rows.values()))
    waiting = [key for here in cluster.orphans.values() for key in here]
    yield from _differ("pods that are counted and wait for a node", [key for key in waiting if key in pods.rows], [])
    yield from _differ("nodes that are here and waited for", [one for one in cluster.orphans if one in nodes.rows], [])


def _node_columns(cluster: Cluster) -> Iterator[str]:
    nodes = cluster.nodes
    for row, node in enumerate(nodes.objects):
        room = [0] * len(cluster.resources)
        taints: tuple[object, ...] = ()
        if node is not None:
            given = allocatable(node)
            room[CPU], room[MEMORY], room[EPHEMERAL_STORAGE], room[PODS] = (
                given.milli_cpu, given.memory, given.ephemeral_storage, given.pods,
            )  # fmt: skip
            for name, amount in given.scalar.items():
                room[cluster.resources.find(name)] = amount
            taints = node.spec.taints
        yield from _differ(f"node row {row}: allocatable", nodes.allocatable[:, row].tolist(), room)
        yield from _differ(f"node row {row}: taints", nodes.taint_sets[int(nodes.taint_set[row])], taints)
        cordoned = node is not None and node.spec.unschedulable
        yield from _differ(f"node row {row}: unschedulable", bool(nodes.unschedulable[row]), cordoned)
        for key, column in nodes.labels.items():
            at = int(column.ids[row])
            value = None if node is None else node.metadata.labels.get(key)
            yield from _differ(f"node row {row}: label {key}", None if at == ABSENT else column.values.names[at], value)


def _loads(cluster: Cluster) -> Iterator[str]:
    nodes, pods = cluster.nodes, cluster.pods
    requested = np.zeros(nodes.requested.shape, object)
    nonzero = np.zeros(nodes.nonzero.shape, object)
    for row in pods.rows.values():
        kind, node_row = pods.kind(row), pods.node_rows[row]
        asked = pod_requests(kind.pod, by_container=cluster.rules.resize_counts_by_container)
        amounts = {CPU: asked.milli_cpu, MEMORY: asked.memory, EPHEMERAL_STORAGE: asked.ephemeral_storage, PODS: 1}
        for column, amount in amounts.items():
            requested[column, node_row] += amount
        for name, amount in asked.scalar.items():
            requested[cluster.resources.find(name), node_row] += amount
        nonzero[:, node_row] += (asked.nonzero_milli_cpu, asked.nonzero_memory)
    for name, kept, counted in (("requested", nodes.requested, requested), ("nonzero", nodes.nonzero, nonzero)):
        for column, row in zip(*np.nonzero(kept != np.minimum(counted, INT64_MAX)), strict=True):
            yield f"{name}[{column}, {row}]: kept {kept[column, row]}, counted {counted[column, row]}"


def _classes(cluster: Cluster) -> Iterator[str]:
    placed: dict[PodClass, dict[int, int]] = {}
    leaving: dict[PodClass, dict[int, int]] = {}
    for row in cluster.pods.rows.values():
        kind, node_row = cluster.pods.kind(row), cluster.pods.node_rows[row]
        _count(placed.setdefault(kind, {}), node_row)
        if cluster.pods.leaving[row]:
            _count(leaving.setdefault(kind, {}), node_row)
    for kind in cluster.classes.values():
        yield from _differ(f"class {kind.id}: placed", kind.placed, placed.pop(kind, {}))
        yield from _differ(f"class {kind.id}: leaving", kind.leaving, leaving.get(kind, {}))
        yield from _differ(f"class {kind.id}: total", kind.total, sum(kind.placed.values()))
    yield from _differ("classes of bound pods that are not kept", [kind.id for kind in placed], [])


def _groups(cluster: Cluster) -> Iterator[str]:
    table = cluster.classes
    members: dict[str, list[int]] = {}
    for kind in table.values():
        members.setdefault(_named(kind.group), []).append(kind.id)
    yield from _differ("groups", {_named(one): [kind.id for kind in one.classes] for one in table.groups()}, members)
    by_label: dict[tuple[str, str], list[str]] = {}
    for group in table.groups():
        for pair in group.labels.items():
            by_label.setdefault(pair, []).append(_named(group))
    kept = {pair: sorted(map(_named, bucket)) for pair, bucket in table.groups_by_label.items()}
    yield from _differ("groups by label", kept, {pair: sorted(names) for pair, names in by_label.items()})


def _named(group: LabelGroup) -> str:
    return f"{group.namespace} {sorted(group.labels.items())}"


def _sparse_tables(cluster: Cluster) -> Iterator[str]:
    ports, volumes, images = PortTable(), VolumeTable(), ImageTable()
    for row in cluster.pods.rows.values():
        kind, node_row = cluster.pods.kind(row), cluster.pods.node_rows[row]
        ports.add(node_row, kind.host_ports)
        if kind.holds_volumes:
            volumes.add(row, node_row, kind)
    for row, node in enumerate(cluster.nodes.objects):
        if node is not None:
            images.add(row, node)
    yield from _differ("host ports", cluster.ports.taken, ports.taken)
    yield from _differ("volumes by node", cluster.volumes.by_node, volumes.by_node)
    yield from _differ("volumes by claim", cluster.volumes.by_claim, volumes.by_claim)
    yield from _differ("images", cluster.images.sizes, images.sizes)


def _groups_by_label(cluster: Cluster) -> Iterator[str]:
    storage, counted = cluster.objects.storage, ObjectTable()
    for volume in storage.volumes.values():
        counted.put(volume)
    for attachment in storage.attachments.values():
        counted.put(attachment)
    yield from _differ("volumes by class", storage.volumes_of_class, counted.storage.volumes_of_class)
    yield from _differ("attachments by node", storage.attachments_on, counted.storage.attachments_on)


def _attached(cluster: Cluster) -> Iterator[str]:
    kept, nodes, storage = cluster.attached, cluster.nodes, cluster.objects.storage
    kept.refresh()
    counted: dict[int, NodeVolumes] = {}
    for row, name in enumerate(nodes.names):
        if name:
            counted[row] = node_volumes(name, cluster.volumes.by_node.get(row, {}).values(), storage)
    yield from _differ("attached volumes", kept.rows, counted)
    problems = {row: here.problem for row, here in counted.items() if here.problem}
    yield from _differ("problems with volumes", kept.problems, problems)
    for volume in storage.volumes.values():
        name = volume.metadata.name
        readers = [row for row, here in counted.items() if name in here.reads]
        yield from _differ(f"rows that read volume {name}", sorted(kept.reached(volume)), readers)
    for driver in dict.fromkeys(driver for volumes in counted.values() for driver in volumes.limits):
        limit, used = kept.limit(driver).tolist(), kept.used(driver).tolist()
        for row in range(nodes.size):
            here = counted.get(row, NOTHING_ATTACHED)
            limited = driver in here.limits
            expected = (here.limits.get(driver, NO_LIMIT), here.used.get(driver, 0) if limited else 0)
            yield from _differ(f"{driver} at node row {row}: limit and use", (limit[row], used[row]), expected)


def _tallies(cluster: Cluster) -> Iterator[str]:
    names = cluster.objects.namespace_labels
    groups = cluster.classes.groups()
    stray = [_named(one) for one in groups for tally in one.tallies if not cluster.tallies.keeps(tally)]
    yield from _differ("groups that feed a tally that is not kept", stray, [])
    for tally in cluster.tallies.values():
        matching = [one for one in groups if tally.matcher.matches(one.namespace, one.labels, names)]
        feeding = [one for one in groups if tally in one.tallies]
        for what, kept in (("that feed", feeding), ("known to", tally.groups)):
            listed = sorted(map(_named, kept)), sorted(map(_named, matching))
            yield from _differ(f"groups {what} the tally of {tally.matcher} by {tally.topology_key}", *listed)
        counts = np.zeros_like(tally.counts)
        for row in cluster.pods.rows.values():
            kind, node_row = cluster.pods.kind(row), cluster.pods.node_rows[row]
            counted = tally.counts_leaving or not cluster.pods.leaving[row]
            eligible = tally.eligible is None or tally.eligible.mask[node_row]
            domain = tally.domains[node_row]
            if counted and eligible and domain >= 0 and tally.matcher.matches(kind.namespace, kind.labels, names):
                counts[domain] += 1
        yield from _differ(f"tally of {tally.matcher} by {tally.topology_key}", tally.counts.tolist(), counts.tolist())


def _terms(cluster: Cluster) -> Iterator[str]:
    carriers: dict[Any, dict[PodClass, int]] = {}
    for kind in cluster.classes.values():
        carried = list(kind.terms) if kind.total else []
        yield from _differ(f"class {kind.id}: carried terms", [entry.term for entry in kind.carried], carried)
        if kind.total:
            for term in kind.terms:
                of_term = carriers.setdefault(term, {})
                of_term[kind] = of_term.get(kind, 0) + 1
    for entry in cluster.terms.values():
        yield from _differ(f"carriers of {entry.term}", entry.classes, carriers.pop(entry.term, {}))
        if entry.counts is None or entry.domains is None:
            continue
        counts = np.zeros_like(entry.counts)
        for kind, times in entry.classes.items():
            for row, amount in kind.placed.items():
                if entry.domains[row] >= 0:
                    counts[entry.domains[row]] += times * amount
        yield from _differ(f"domains of {entry.term}", entry.counts.tolist(), counts.tolist())
    yield from _differ("terms that are carried and not kept", list(carriers), [])


def _devices(cluster: Cluster) -> Iterator[str]:
    for resource, table in cluster.devices.items():
        counted = DeviceTable(resource, cluster.nodes, cluster.pods)
        yield from _differ(f"{resource}: pods by class", table.kinds, counted.kinds)
        size = cluster.nodes.size
        for field in fields(Devices):
            kept, again = getattr(table.shown, field.name)[:size], getattr(counted.shown, field.name)[:size]
            width = max(kept.shape[1:] + again.shape[1:], default=0)
            wide = [np.pad(one, ((0, 0), (0, width - one.shape[1]))) if width else one for one in (kept, again)]
            yield from _differ(f"{resource}: {field.name}", wide[0].tolist(), wide[1].tolist())


def _count(counts: dict[int, int], row: int) -> None:
    counts[row] = counts.get(row, 0) + 1
