"""`situate why`: why a pod runs where it does, or nowhere, and what would change that. Changes nothing."""

from typing import Final

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.commands.why.text import text
from situate.cli.commands.why.values import as_values
from situate.cli.commands.why.waiting import waiting_of
from situate.cli.input.cluster import ClusterObjects, read_files
from situate.cli.input.files import mapped_sources
from situate.cli.input.live import read_live, read_pod_records
from situate.cli.input.notes import device_needs, notes_on, pod_affinity_selects_namespaces, uses_claims
from situate.cli.input.published import ClusterProfiles, cluster_profiles, local_profiles
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
from situate.cli.output.text import show
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import Framework
from situate.core.explain.explanation import Explanation, explain
from situate.core.model.pod import Pod
from situate.core.place.sampling import samples
from situate.core.versions import KubernetesRules
from situate.kube.errors import ApiError
from situate.kube.kinds import ALL_KINDS, needed_kinds
from situate.wire.objects import decode_pod

DEFAULT: Final = "default"


@click.command()
@click.argument("pod")
@files_option
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="Look for the pod in all namespaces.")
@click.option("--node", metavar="NAME", help="Explain this one node in full.")
@config_option
@kubernetes_version_option(FILES_OR_CLUSTER)
@output_option("text", "json", "yaml")
@click.option("--no-ways", is_flag=True, help="Do not search for changes that would help.")
@cluster_options
def why(
    pod: str,
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

    POD is a name, or NAMESPACE/NAME. Without -f, the command reads a cluster, and needs only the right to list.
    """
    require_one_source(names, kubeconfig, context)
    require_one_scope(namespace, all_namespaces)
    space, name = _parse_name(pod, namespace)
    if names:
        profiles = local_profiles(config, rules)
        objects, cluster = read_files(list(mapped_sources(names)), name, rules)
        found = _find(objects, space or (None if all_namespaces else DEFAULT), name, ", ".join(names))
    else:
        objects, found, profiles = _read_live(space, name, kubeconfig, context, config, rules, anywhere=all_namespaces)
        cluster = objects.cluster(profiles.rules)
    if node and node not in cluster.nodes.rows:
        raise BadInput(f'nodes "{node}" not found')
    framework = profiles.of(found.spec.scheduler_name)
    unserved = profiles.unserved(found.spec.scheduler_name)
    explanation = explain(
        cluster, framework, found, node=node or "", suggestions=not no_ways, templates=objects.templates
    )
    waiting = waiting_of(objects.records, found.metadata.namespace, found.metadata.name)
    lines = text(explanation, waiting, unserved, searched=not no_ways) if output == "text" else []
    notes = [*profiles.notes, *_sampling_note(framework, explanation), *notes_on(objects, _needed(found))]
    show(lines, as_values(explanation, waiting, unserved), notes, output)


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


def _parse_name(pod: str, namespace: str | None) -> tuple[str | None, str]:
    """The namespace, if one is given, and the name of `web`, `pod/web` or `shop/web`."""
    before, _, name = pod.rpartition("/")
    before = "" if before in ("pod", "pods", "po") else before
    if not name or "/" in before:
        raise BadInput(f'"{pod}" is not the name of a pod')
    if before and namespace and before != namespace:
        raise BadInput(f"{pod} and -n {namespace} name two namespaces")
    return before or namespace, name


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


def _read_live(
    namespace: str | None,
    name: str,
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    rules: KubernetesRules | None,
    *,
    anywhere: bool,
) -> tuple[ClusterObjects, Pod, ClusterProfiles]:
    """A live cluster, the pod, and the profiles to explain it by."""
    import asyncio  # slow to import, and not needed for files

    import msgspec

    async def work(client: Client) -> tuple[ClusterObjects, Pod, ClusterProfiles]:
        profiles = await cluster_profiles(client, config, rules)
        kinds = ALL_KINDS if profiles.whole else needed_kinds(default_configuration())
        if anywhere and namespace is None:
            objects = await read_live(client, kinds)
            pod = _find(objects, None, name, client.access.server)
            objects.records = await read_pod_records(client, pod.metadata.namespace, name)
            return objects, pod, profiles
        space = namespace or client.access.namespace or DEFAULT
        try:
            records, objects = await asyncio.gather(read_pod_records(client, space, name), read_live(client, kinds))
        except ApiError as error:
            if error.not_found:
                raise BadInput(f'pods "{name}" not found in namespace {space}') from None
            raise
        objects.records = records
        listed = [one for one in objects.pods if (one.metadata.namespace, one.metadata.name) == (space, name)]
        # A finished pod is in no list.
        return objects, listed[0] if listed else decode_pod(msgspec.json.encode(records[0])), profiles

    return with_client(kubeconfig, context, work)
