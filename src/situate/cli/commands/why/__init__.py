"""`situate why`: why a pod runs where it does, or nowhere, and what would change that. Changes nothing."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.commands.why.gang import gang_notes
from situate.cli.commands.why.listing import is_waiting, list_lines, list_values, waiting_groups
from situate.cli.commands.why.text import text
from situate.cli.commands.why.values import as_values
from situate.cli.commands.why.waiting import waiting_of
from situate.cli.input.cluster import NO_POD, ClusterObjects, read_files
from situate.cli.input.files import MappedFile, mapped_sources
from situate.cli.input.json_items import objects_containing
from situate.cli.input.live import read_live, read_pod_records
from situate.cli.input.notes import device_needs, notes_on, pod_affinity_selects_namespaces, refused_notes, uses_claims
from situate.cli.input.owners import POD, POD_GROUP, OwningWorkload, belongs_to
from situate.cli.input.published import ClusterProfiles, cluster_profiles, local_profiles
from situate.cli.input.workloads import KIND_NAMES
from situate.cli.options import (
    FILES_OR_CLUSTER,
    cluster_options,
    config_option,
    files_option,
    kubernetes_version_option,
    namespace_option,
    output_option,
    require_one_scope,
    require_one_source,
)
from situate.cli.output.formats import WIDE, for_people
from situate.cli.output.text import show
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import Framework
from situate.core.explain.explanation import Explanation, explain
from situate.core.model.pod import Pod
from situate.core.place.sampling import samples
from situate.core.versions import KubernetesRules
from situate.kube.errors import ApiError
from situate.kube.kinds import ALL_KINDS, WatchedKind
from situate.kube.needed_kinds import needed_kinds
from situate.wire.objects import decode_pod

DEFAULT: Final = "default"
WORKLOAD_NAMES: Final = {**KIND_NAMES, **dict.fromkeys(("podgroup", "podgroups"), POD_GROUP)}
"""Kinds that may stand before a name."""


@click.command()
@click.argument("pod", required=False)
@files_option
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("--node", metavar="NAME", help="Explain this one node in full.")
@config_option
@kubernetes_version_option(FILES_OR_CLUSTER)
@output_option()
@click.option("--no-ways", is_flag=True, help="Do not search for changes that would help.")
@cluster_options
def why(
    pod: str | None,
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    node: str | None,
    config: str | None,
    rules: KubernetesRules | None,
    output: str,
    no_ways: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Explain why a pod waits or runs where it does, and what would change that.

    POD is a name, NAMESPACE/NAME, or a workload: deployment/NAME, job/NAME, sts/NAME, podgroup/NAME. Without it, the
    command lists everything that waits. Without -f, it reads a cluster, and needs only the right to list.
    """
    require_one_source(names, kubeconfig, context)
    require_one_scope(namespace, all_namespaces)
    if pod is None:
        if node is not None:
            raise BadInput("--node needs the name of a pod")
        _list(names, namespace, all_namespaces, config, rules, output, kubeconfig, context)
        return
    space, kind, name = _parse_name(pod, namespace)
    notes: list[str] = []
    if names:
        profiles = local_profiles(config, rules)
        sources = list(mapped_sources(names))
        objects, cluster = read_files(sources, NO_POD if kind else name, rules)
        place = space or (None if all_namespaces else DEFAULT)
        if kind:
            found, notes = _member(objects, kind, place, name, ", ".join(names))
            texts = [source.read() if isinstance(source, MappedFile) else source for source in sources]
            needle = found.metadata.name.encode()
            objects.records = [one for source in texts for one in objects_containing(source, needle)]
        else:
            found = _find(objects, place, name, ", ".join(names))
    else:
        asked = _Asked(space, kind, name, anywhere=all_namespaces)
        objects, found, profiles, notes = _read_live(asked, kubeconfig, context, config, rules)
        cluster = objects.cluster(profiles.rules)
    if node and node not in cluster.nodes.rows:
        raise BadInput(f'nodes "{node}" not found')
    framework = profiles.of(found.spec.scheduler_name)
    unserved = profiles.unserved(found.spec.scheduler_name)
    explanation = explain(
        cluster, framework, found, node=node or "", suggestions=not no_ways, templates=objects.templates
    )
    waiting = waiting_of(objects.records, found.metadata.namespace, found.metadata.name)
    lines = text(explanation, waiting, unserved, searched=not no_ways) if for_people(output) else []
    notes += gang_notes(found, objects, cluster)
    notes += [*profiles.notes, *_sampling_note(framework, explanation), *notes_on(objects, _needed(found))]
    show(lines, as_values(explanation, waiting, unserved), notes, output, [f"pod/{found.metadata.name}"])


def _list(
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    config: str | None,
    rules: KubernetesRules | None,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Everything that waits: of all namespaces, unless one is named."""
    if names:
        profiles = local_profiles(config, rules)
        objects, cluster = read_files(list(mapped_sources(names)), rules=rules)
    else:

        async def work(client: Client) -> tuple[ClusterObjects, ClusterProfiles]:
            profiles = await cluster_profiles(client, config, rules)
            return await read_live(client, _kinds(profiles)), profiles

        objects, profiles = with_client(kubeconfig, context, work)
        cluster = objects.cluster(profiles.rules)
    groups = waiting_groups(objects, cluster, profiles, None if all_namespaces else namespace)
    lines = list_lines(groups, int(time.time() * 1_000), wide=output == WIDE) if for_people(output) else []
    if groups and for_people(output):
        first = groups[0]
        lines += ["", f"Next: situate why {first.workload.namespace}/{first.pods[0]}"]
    waiting = [f"pod/{name}" for group in groups for name in group.pods]
    show(lines, list_values(groups), [*profiles.notes, *refused_notes(objects.refused)], output, waiting)


def _sampling_note(framework: Framework, explanation: Explanation) -> list[str]:
    if not samples(framework.profile, explanation.node_count):
        return []
    return [f"profile {explanation.profile} considers only some nodes at each attempt; this is about all of them"]


def _needed(pod: Pod) -> list[tuple[str, str]]:
    """Kinds that this pod's answer depends on, and what follows if they are missing."""
    needed = [("Node", "the pod has nowhere to go")]
    if uses_claims(pod.spec):
        volumes = "its claims count as missing, and which nodes reach its volumes is unknown"
        needed += [(kind, volumes) for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")]
    needed += device_needs([pod])
    if pod_affinity_selects_namespaces(pod.spec):
        needed.append(("Namespace", "which namespaces its affinity selects is unknown"))
    if pod.spec.priority:
        needed.append(("PodDisruptionBudget", "which pods budgets protect from preemption is unknown"))
    return needed


def _parse_name(pod: str, namespace: str | None) -> tuple[str | None, str, str]:
    """The namespace, if one is given; the kind, empty for a pod; and the name. Of `web`, `pod/web`, `shop/web`,
    `deployment/web` and `shop/deployment/web`."""
    *before, name = pod.split("/")
    kind = WORKLOAD_NAMES.get(before[-1].lower(), "") if before else ""
    if kind:
        before.pop()
    if not name or len(before) > 1 or "" in before:
        raise BadInput(f'"{pod}" is not the name of a pod or a workload')
    space = before[0] if before else ""
    if space and namespace and space != namespace:
        raise BadInput(f"{pod} and -n {namespace} name different namespaces")
    return space or namespace, "" if kind == POD else kind, name


def _member(objects: ClusterObjects, kind: str, namespace: str | None, name: str, where: str) -> tuple[Pod, list[str]]:
    """A pod of the workload, one that waits if there is one; and a note about which."""
    spaces = [namespace] if namespace is not None else sorted({one.metadata.namespace for one in objects.pods})
    for space in spaces:
        whose = OwningWorkload(kind, space, name)
        pods = [one for one in objects.pods if belongs_to(one, whose) and one.metadata.deletion_timestamp is None]
        if pods:
            waiting = [one for one in pods if is_waiting(one)]
            found = (waiting or pods)[0]
            count = f"{len(waiting)} of {len(pods)} pods of {whose} wait" if waiting else f"no pod of {whose} waits"
            return found, [f"{count}; this is about {found.metadata.name}"]
    raise BadInput(f"{where}: {kind.lower()}/{name} has no pods{'' if namespace is None else f' in {namespace}'}")


def _find(objects: ClusterObjects, namespace: str | None, name: str, where: str) -> Pod:
    alike = [pod for pod in objects.pods if pod.metadata.name == name]
    found = [pod for pod in alike if namespace is None or pod.metadata.namespace == namespace]
    if len(found) == 1:
        return found[0]
    spaces = ", ".join(sorted(pod.metadata.namespace for pod in alike))
    if found:
        raise BadInput(f'{where}: pods "{name}" are in several namespaces: {spaces}; choose one with -n')
    hint = f"; there is one in {spaces}: choose it with -n" if alike else ""
    raise BadInput(f'{where}: pods "{name}" not found{hint}')


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command is about."""

    namespace: str | None
    kind: str
    """Empty: a pod."""
    name: str
    anywhere: bool


def _kinds(profiles: ClusterProfiles) -> Sequence[WatchedKind]:
    return ALL_KINDS if profiles.whole else needed_kinds(default_configuration())


def _read_live(
    asked: _Asked, kubeconfig: str | None, context: str | None, config: str | None, rules: KubernetesRules | None
) -> tuple[ClusterObjects, Pod, ClusterProfiles, list[str]]:
    """A live cluster, the pod, the profiles to explain it by, and notes."""
    import asyncio  # slow to import, and not needed for files

    import msgspec

    name = asked.name

    async def work(client: Client) -> tuple[ClusterObjects, Pod, ClusterProfiles, list[str]]:
        profiles = await cluster_profiles(client, config, rules)
        kinds, notes = _kinds(profiles), list[str]()
        anywhere = asked.anywhere and asked.namespace is None
        space = asked.namespace or client.access.namespace or DEFAULT
        if anywhere or asked.kind:
            objects = await read_live(client, kinds)
            where = client.access.server
            if asked.kind:
                pod, notes = _member(objects, asked.kind, None if anywhere else space, name, where)
            else:
                pod = _find(objects, None, name, where)
            objects.records = await read_pod_records(client, pod.metadata.namespace, pod.metadata.name)
            return objects, pod, profiles, notes
        try:
            records, objects = await asyncio.gather(read_pod_records(client, space, name), read_live(client, kinds))
        except ApiError as error:
            if error.not_found:
                raise BadInput(f'pods "{name}" not found in namespace {space}') from None
            raise
        objects.records = records
        listed = [one for one in objects.pods if (one.metadata.namespace, one.metadata.name) == (space, name)]
        # A finished pod is in no list.
        pod = listed[0] if listed else decode_pod(msgspec.json.encode(records[0]))
        return objects, pod, profiles, notes

    return with_client(kubeconfig, context, work)
