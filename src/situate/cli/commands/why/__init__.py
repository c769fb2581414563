"""`situate why`: why a pod is where it is, or nowhere, and what would change that. Changes nothing anywhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import cluster_options, with_client
from situate.cli.input.files import mapped_sources

if TYPE_CHECKING:
    from situate.cli.commands.why.waiting import Waited
    from situate.cli.input.cluster import Seen
    from situate.core.engine.framework import Framework
    from situate.core.explain.explanation import Explanation
    from situate.core.model.pod import Pod
    from situate.core.state.cluster import Cluster
    from situate.kube.client import Client

DEFAULT: Final = "default"


@click.command()
@click.argument("pod")
@click.option("-f", "--filename", "names", multiple=True, metavar="FILE", help="File, folder or - (repeatable).")
@click.option("-n", "--namespace", metavar="NAME", help="The pod's namespace; default: that of the kubeconfig.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Look for the pod in all namespaces.")
@click.option("--node", metavar="NAME", help="Tell all about this one node.")
@click.option("--config", metavar="FILE", help="Scheduler configuration.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@click.option("--no-ways", is_flag=True, help="Do not look for changes that would help.")
@cluster_options
def why(
    pod: str,
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    node: str | None,
    config: str | None,
    output: str,
    no_ways: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Say why a pod waits, or why it is where it is, and what would change that.

    POD is a name, or NAMESPACE/NAME. Without -f, a cluster is asked, which takes no more than the right to list.
    """
    if names and (kubeconfig or context):
        raise BadInput("-f is for files, --kubeconfig and --context for a cluster: give one or the other")
    space, name = _named(pod, namespace, all_namespaces=all_namespaces)
    from situate.cli.input.profiles import read_profiles

    profiles = read_profiles(None if config is None else Path(config))
    if names:
        from situate.cli.input.cluster import read_files

        seen, cluster = read_files(list(mapped_sources(names)), name)
        found = _find(seen, space or (None if all_namespaces else DEFAULT), name, ", ".join(names))
    else:
        seen, found = _ask(space, name, kubeconfig, context, everything=config is not None, anywhere=all_namespaces)
        cluster = seen.cluster()
    _answer(seen, cluster, found, profiles, node or "", output, suggestions=not no_ways)


def _answer(
    seen: Seen,
    cluster: Cluster,
    pod: Pod,
    profiles: Mapping[str, Framework],
    node: str,
    output: str,
    *,
    suggestions: bool,
) -> None:
    from situate.cli.commands.why.notes import notes_on
    from situate.cli.commands.why.waiting import waited
    from situate.core.explain.explanation import explain

    if node and node not in cluster.nodes.rows:
        raise BadInput(f'nodes "{node}" not found')
    deciding = profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))
    told = explain(cluster, deciding, pod, node=node, suggestions=suggestions)
    how = waited(seen.raw, pod.metadata.namespace, pod.metadata.name)
    notes = notes_on(seen, cluster, pod)
    click.echo(_shown(told, how, notes, output), nl=False)
    if output == "text":
        for note in notes:
            click.echo(f"note: {note}", err=True)


def _shown(told: Explanation, how: Waited, notes: Sequence[str], output: str) -> str:
    if output != "text":
        from situate.cli.commands.why.values import as_values
        from situate.wire.dump import dump_json, dump_yaml

        values = as_values(told, how, notes)
        return dump_json(values) if output == "json" else dump_yaml(values)
    from situate.cli.commands.why.text import text

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return text(told, how, terminal_width=width, colour=colour)


# -- which pod -------------------------------------------------------------------------------------------------------


def _named(pod: str, namespace: str | None, *, all_namespaces: bool) -> tuple[str | None, str]:
    """The namespace, if one was said, and the name: `web`, `pod/web` and `shop/web` are all understood."""
    before, slash, name = pod.partition("/")
    if not slash:
        before, name = "", pod
    if before in ("pod", "pods", "po"):
        before = ""
    if not name or "/" in name:
        raise BadInput(f'"{pod}" is no name of a pod')
    if before and namespace and before != namespace:
        raise BadInput(f"{pod} and -n {namespace} name two namespaces")
    if namespace and all_namespaces:
        raise BadInput("-n and -A: give one or the other")
    return before or namespace, name


def _find(seen: Seen, namespace: str | None, name: str, where: str) -> Pod:
    alike = [pod for pod in seen.pods if pod.metadata.name == name]
    found = [pod for pod in alike if namespace is None or pod.metadata.namespace == namespace]
    if len(found) == 1:
        return found[0]
    spaces = ", ".join(sorted(pod.metadata.namespace for pod in alike))
    if found:
        raise BadInput(f'{where}: pods "{name}" are in several namespaces: {spaces}; say which with -n')
    hint = f"; there is one in {spaces}: say so with -n" if alike else ""
    raise BadInput(f'{where}: pods "{name}" not found{hint}')


def _ask(
    namespace: str | None,
    name: str,
    kubeconfig: str | None,
    context: str | None,
    *,
    everything: bool,
    anywhere: bool,
) -> tuple[Seen, Pod]:
    """What a live cluster has, and the pod. `everything` is for plugins that may read anything."""
    import asyncio  # not needed for files, and slow to import

    from situate.cli.input.cluster import read_live, read_witnesses
    from situate.core.config.defaults import default_configuration
    from situate.kube.errors import ApiError
    from situate.kube.kinds import ALL_KINDS, needed_kinds
    from situate.wire.objects import decode_pod

    kinds = ALL_KINDS if everything else needed_kinds(default_configuration())

    async def work(client: Client) -> tuple[Seen, Pod]:
        if anywhere and namespace is None:
            seen = await read_live(client, kinds)
            pod = _find(seen, None, name, client.access.server)
            seen.raw = await read_witnesses(client, pod.metadata.namespace, name)
            return seen, pod
        space = namespace or client.access.namespace or DEFAULT
        try:
            written, seen = await asyncio.gather(read_witnesses(client, space, name), read_live(client, kinds))
        except ApiError as error:
            if error.not_found:
                raise BadInput(f'pods "{name}" not found in namespace {space}') from None
            raise
        seen.raw = written
        listed = [one for one in seen.pods if (one.metadata.namespace, one.metadata.name) == (space, name)]
        if listed:
            return seen, listed[0]
        import msgspec

        return seen, decode_pod(msgspec.json.encode(written[0]))  # one that has finished is in no list

    return with_client(kubeconfig, context, work)
