"""Options that several commands share, so that they have one name, one default and one help text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import click

from situate.cli import BadInput
from situate.cli.cluster.local import HERE, find_directory, named_directory, require_running
from situate.cli.output.formats import FORMATS, TABLE, OutputFormat
from situate.core.versions import DEFAULT, RULES

if TYPE_CHECKING:
    from situate.agent.node_objects import NodeShape
    from situate.agent.security import ContainerUsers, NodeSecurity

F = TypeVar("F", bound=Callable[..., Any])

_CLUSTER: Final = "situate.cluster"
"""Where a click context keeps the directory of the cluster that `--cluster` or `--name` names."""
_DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


class Option(Protocol):
    """A decorator that adds an option to a command."""

    def __call__(self, command: F, /) -> F: ...


def combined(*options: Option) -> Option:
    """One decorator for several options, which `--help` lists in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def cluster_options(command: F) -> F:
    """Every command that talks to a cluster has these. `--cluster` is the same as its `--kubeconfig`."""
    return combined(
        click.option(
            "--kubeconfig",
            metavar="FILE",
            callback=_kubeconfig,
            help="How to reach the cluster; default: as kubectl, else the one cluster of `situate up`.",
        ),
        click.option("--context", metavar="NAME", help="The kubeconfig's context to use."),
        click.option(
            "--cluster",
            metavar="NAME",
            expose_value=False,
            is_eager=True,
            callback=_remember_cluster,
            help="A cluster of `situate up`, by its name or its directory.",
        ),
    )(command)


def _remember_cluster(ctx: click.Context, _option: click.Parameter, name: str | None) -> None:
    ctx.meta[_CLUSTER] = None if name is None else find_directory(name)


def _remember_name(ctx: click.Context, _option: click.Parameter, name: str | None) -> None:
    ctx.meta[_CLUSTER] = None if name is None else named_directory(name)


def _kubeconfig(ctx: click.Context, _option: click.Parameter, file: str | None) -> str | None:
    directory: Path | None = ctx.meta[_CLUSTER]
    if directory is None:
        return file
    if file is not None:
        raise click.UsageError("--cluster and --kubeconfig both name a cluster: give one or the other")
    return str(require_running(directory).kubeconfig)


def files_option(command: F) -> F:
    text = "File, folder or - (repeatable)."
    return click.option("-f", "--filename", "names", multiple=True, metavar="FILE", help=text)(command)


def namespace_option(command: F) -> F:
    text = "Namespace; default: the kubeconfig's."
    return click.option("-n", "--namespace", metavar="NAME", help=text)(command)


def config_option(command: F) -> F:
    return click.option("--config", metavar="FILE", help="Scheduler configuration.")(command)


FILES_OR_CLUSTER: Final = "Follow this version of Kubernetes; default: {default} for files, else the API server's."


def kubernetes_version_option(text: str = "Follow this version of Kubernetes; default: {default}.") -> Option:
    """The rules to follow, as `rules`; None if the flag is not given. `{default}` in the text stands for the default
    version."""
    return click.option(
        "--kubernetes-version",
        "rules",
        type=click.Choice(tuple(RULES)),
        callback=lambda _context, _option, version: None if version is None else RULES[version],
        help=text.format(default=DEFAULT.version),
    )


def compare_version_option(command: F) -> F:
    """The rules of another version to compare with, as `other`; None if the flag is not given."""
    return click.option(
        "--compare-kubernetes-version",
        "other",
        type=click.Choice(tuple(RULES)),
        callback=lambda _context, _option, version: None if version is None else RULES[version],
        help="Show what would change with this version: pods with another node, outcome or message.",
    )(command)


def output_option(*, without: Sequence[str] = (), more: Sequence[str] = (), default: str = TABLE) -> Option:
    """`-o`, with the same formats in every command: but for those that have no meaning there, and its own."""
    formats = OutputFormat([*(one for one in FORMATS if one not in without), *more])
    return click.option("-o", "--output", type=formats, default=default, show_default=True, help="Format.")


def require_one_source(names: tuple[str, ...], kubeconfig: str | None, context: str | None) -> None:
    if names and (kubeconfig or context):
        raise BadInput("-f names files; --kubeconfig, --context and --cluster name a cluster: give one or the other")


def require_one_scope(namespace: str | None, all_namespaces: bool) -> None:
    if namespace and all_namespaces:
        raise BadInput("-n and -A: give one or the other")


def directory_option(text: str, default: Path) -> Option:
    return click.option("--dir", "directory", type=_DIRECTORY, default=default, show_default=True, help=text)


def own_cluster_option(text: str, flag: str = "--cluster") -> Option:
    """A cluster of this machine, as `directory`: by its name, or by its directory."""
    return combined(
        click.option(
            flag,
            metavar="NAME",
            expose_value=False,
            is_eager=True,
            callback=_remember_cluster if flag == "--cluster" else _remember_name,
            help="The name of the cluster; default: the one in this directory, which has no name.",
        ),
        click.option(
            "--dir",
            "directory",
            type=_DIRECTORY,
            callback=_own_directory,
            help=f"{text} Default: {HERE}, or that of the name.",
        ),
    )


def _own_directory(ctx: click.Context, _option: click.Parameter, given: Path | None) -> Path:
    named: Path | None = ctx.meta[_CLUSTER]
    if named is not None and given is not None:
        raise click.UsageError("--dir and a name both name a cluster: give one or the other")
    return given or named or HERE


def verbosity_option(command: F) -> F:
    return click.option("-v", "--v", "verbosity", type=click.IntRange(0, 10), default=0, help="How much to log.")(
        command
    )


def drift_option(command: F) -> F:
    return click.option(
        "--drift",
        type=click.Choice(["ignore", "move"]),
        default="ignore",
        show_default=True,
        help="Pods that no longer fit or match their node: leave them, or evict them within their budgets.",
    )(command)


def container_user_options(command: F) -> F:
    """Which user containers run as on a process node; `container_security` reads it."""
    return combined(
        click.option(
            "--run-as-user",
            metavar="USER",
            default="",
            help="The user that containers of a process node run as, if root starts it; default: nobody.",
        ),
        click.option(
            "--container-users",
            type=click.Choice(["default", "unprivileged", "any"]),
            default="unprivileged",
            show_default=True,
            help="Which users and groups pods may name: only that one, all but the system's, or any.",
        ),
    )(command)


def container_security(run_as_user: str, container_users: ContainerUsers) -> NodeSecurity:
    """Raises InputError."""
    from situate.agent.host_security import SecurityError, node_security
    from situate.wire.errors import InputError

    try:
        return node_security(run_as_user, container_users)
    except SecurityError as error:
        raise InputError(str(error)) from None


def hollow_node_options(command: F) -> F:
    """What hollow nodes look like; `hollow_shape` reads it."""
    return combined(
        click.option(
            "--zones", type=click.IntRange(1, 1_000), default=1, help="Spread hollow nodes over this many zones."
        ),
        click.option("--node-cpu", default="4", show_default=True, help="CPU of each hollow node."),
        click.option("--node-memory", default="16Gi", show_default=True, help="Memory of each hollow node."),
        click.option(
            "--node-pods",
            type=click.IntRange(1),
            default=110,
            show_default=True,
            help="How many pods fit on each hollow node.",
        ),
        click.option(
            "--node-devices",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The devices that hollow nodes publish as ResourceSlices.",
        ),
    )(command)


def hollow_shape(node_cpu: str, node_memory: str, node_pods: int) -> NodeShape:
    """Raises InputError."""
    from situate.agent.node_objects import NodeShape

    parse_quantity("--node-cpu", node_cpu)
    parse_quantity("--node-memory", node_memory)
    return NodeShape(node_cpu, node_memory, node_pods)


def parse_quantity(flag: str, text: str) -> int:
    """Raises InputError."""
    from situate.core.model.quantity import QuantityError, value
    from situate.wire.errors import InputError

    try:
        return value(text)
    except QuantityError as error:
        raise InputError(str(error), path=flag) from None
