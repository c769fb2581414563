"""`situate bench`: measure how fast the pods of a workload file are placed.

The file is JSON, {nodes, bound, pending}. Pods are read one at a time from the mapped file, so that a million bound
pods take the memory of their columns, not of their objects. The time excludes reading, and includes finding each pod's
class, choosing a node, and adding the pod to it.
"""

from __future__ import annotations

import gc
import json
import mmap
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import click

from situate.cli.input.profiles import read_profiles
from situate.cli.options import config_option, kubernetes_version_option
from situate.core.model.base import Model
from situate.core.model.meta import key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.priority import UnknownPriorityClassError, priority_classes, with_priority
from situate.core.place.placer import Placer
from situate.core.state.cluster import Cluster
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked
from situate.wire.workload import decode_workload

if TYPE_CHECKING:
    import msgspec

    T = TypeVar("T", bound=Model)

PROGRESS_EVERY = 100_000
"""How many bound pods are read between two progress messages on a terminal."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--cache",
    type=click.Choice(["on", "off"]),
    default="on",
    help="Keep verdicts for pods that are alike to the scheduler.",
)
@config_option
@kubernetes_version_option()
def bench(file: Path, cache: str, config: str | None, rules: KubernetesRules | None) -> None:
    """Place the pending pods of FILE in order, and print one line of JSON: how many, how fast, on how many nodes."""
    profiles = read_profiles(config, rules)
    cluster, pending = _read(file, rules or DEFAULT)
    placers = {name: Placer(cluster, deciding.profile, cache=cache == "on") for name, deciding in profiles.items()}
    gc.collect()
    gc.freeze()  # what was read stays: collecting would only take time
    placed, seconds = _place(cluster, placers, pending)
    result = {
        "placed": placed,
        "seconds": round(seconds, 4),
        "pods_per_s": round(len(pending) / seconds) if seconds else 0,
        "nodes_used": sum(1 for pods in cluster.nodes.pods if pods),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    click.echo(json.dumps(result))


def _place(cluster: Cluster, placers: dict[str, Placer], pending: list[Pod]) -> tuple[int, float]:
    """Place the pods one after another. Returns how many fitted, and the seconds."""
    placed = 0
    begin = perf_counter()
    for at, pod in enumerate(pending):
        kind = cluster.class_of(pod)
        placer = placers.get(pod.spec.scheduler_name)
        row = placer.choose(kind, key=at) if placer is not None else -1
        if row >= 0:
            cluster.put(pod, kind, row)
            placed += 1
    return placed, perf_counter() - begin


def _read(file: Path, rules: KubernetesRules) -> tuple[Cluster, list[Pod]]:
    """The cluster with its bound pods, and the pending pods."""
    with file.open("rb") as opened:
        try:
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise InputError("is empty", file=str(file)) from None
        except OSError as error:  # a device, a pipe
            raise InputError(f"cannot be mapped: {error.strerror}", file=str(file)) from None
    workload = decode_workload(memoryview(data), str(file))
    cluster = Cluster(rules)
    gc.disable()
    try:
        for node in _decoded(Node, workload.nodes, file, "nodes"):
            if node.metadata.name in cluster.nodes.rows:
                raise InputError("two nodes have this name", file=str(file), subject=f"Node {node.metadata.name}")
            cluster.add_node(node)
        for count, pod in enumerate(_pods(workload.bound, file, "bound"), 1):
            key = key_of(pod.metadata)
            if not pod.spec.node_name:
                raise InputError("is not bound", file=str(file), subject=f"Pod {key}", path="spec.nodeName")
            if key in cluster.pods.rows:
                raise InputError("two pods have this name", file=str(file), subject=f"Pod {key}")
            cluster.add_pod(pod)
            if count % PROGRESS_EVERY == 0 and sys.stderr.isatty():
                click.echo(f"read {count} of {len(workload.bound)} bound pods", err=True)
        pending = list(_pods(workload.pending, file, "pending"))
    finally:
        gc.enable()
    seen: set[str] = set()
    for pod in pending:
        key = key_of(pod.metadata)
        if key in seen or key in cluster.pods.rows:
            raise InputError("two pods have this name", file=str(file), subject=f"Pod {key}")
        seen.add(key)
    return cluster, pending


def _pods(items: list[msgspec.Raw], file: Path, path: str) -> Iterator[Pod]:
    """Pods with their priorities. The file has no priority classes, so only the built-in ones exist."""
    classes = priority_classes(())
    for pod in _decoded(Pod, items, file, path):
        try:
            yield with_priority(pod, classes)
        except UnknownPriorityClassError as error:
            where, subject = "spec.priorityClassName", f"Pod {key_of(pod.metadata)}"
            raise InputError(str(error), file=str(file), subject=subject, path=where) from None


def _decoded(kind: type[T], items: list[msgspec.Raw], file: Path, path: str) -> Iterator[T]:
    """The items one by one, checked and with defaults. Each is freed when the next is read."""
    items.reverse()
    for at in range(len(items)):
        yield decode_checked(kind, items.pop(), file=str(file), within=f"{path}[{at}]")
