"""`situate server`: a control plane in this process, in the foreground; the API alone, or with more of its parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from situate.cli.options import (
    Option,
    combined,
    container_security,
    container_user_options,
    drift_option,
    hollow_node_options,
    hollow_shape,
    kubernetes_version_option,
    own_cluster_option,
    parse_quantity,
    verbosity_option,
)
from situate.core.versions import DEFAULT, KubernetesRules

if TYPE_CHECKING:
    from situate.cli.control_plane.settings import ControlPlaneSettings
    from situate.store.etcd.settings import EtcdSettings

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_PORT: Final = 7443
PARTS: Final = ("scheduler", "controllers")
PORT: Final = click.IntRange(0, 65_535)
LAG_S: Final = click.FloatRange(0.1, 3_600)


def _file(flag: str, text: str) -> Option:
    return click.option(flag, type=click.Path(path_type=Path), metavar="FILE", help=text)


def etcd_options(command: F) -> F:
    """Credentials for a store on etcd; `etcd_flags` reads them."""
    return combined(
        _file("--etcd-cafile", "The authority of etcd's certificates."),
        _file("--etcd-certfile", "The client certificate for etcd."),
        _file("--etcd-keyfile", "The key of that certificate."),
        _file("--etcd-user-file", "A file with one line, name:password, for etcd's own authentication."),
    )(command)


def control_plane_options(port: Option) -> Option:
    """The options that `situate up` and `situate server` share. Each has its own default of the port."""
    return combined(
        own_cluster_option("Where the control plane keeps its store, keys and logs.", "--name"),
        click.option(
            "--store",
            metavar="WHERE",
            default="",
            help="memory, a file, or etcd://host:port/prefix; default: a file in the directory.",
        ),
        etcd_options,
        click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen."),
        port,
        click.option(
            "--tls-san",
            "names",
            multiple=True,
            metavar="HOST",
            help="Another name of this server, for its certificate.",
        ),
        click.option(
            "--web-port",
            type=PORT,
            metavar="PORT",
            help="Serve the page on this port of the loopback interface; 0: any free one. "
            "Default for `up`: the one after --port.",
        ),
        click.option("--config", type=click.Path(path_type=Path), help="KubeSchedulerConfiguration, with profiles."),
        kubernetes_version_option(
            "The version of Kubernetes that the server reports and the scheduler follows; default: {default}."
        ),
        click.option(
            "--from",
            "source",
            type=click.Path(path_type=Path, exists=True),
            metavar="DUMP",
            help="Begin with a copy of another cluster: its nodes as hollow ones, with its pods and workloads.",
        ),
        hollow_node_options,
        click.option("--process-node", is_flag=True, help="Make this machine a node: its pods are processes here."),
        container_user_options,
        click.option(
            "--fast-recovery",
            is_flag=True,
            help="Give up silent nodes after 18 s instead of 50 s: their pods run elsewhere within 30 s.",
        ),
        drift_option,
        click.option(
            "--snapshot-lag",
            type=LAG_S,
            default=5.0,
            show_default=True,
            metavar="SECONDS",
            help="How far a node may fall behind its snapshot before its condition SnapshotLagging is set.",
        ),
        click.option(
            "--kubelet-insecure-tls",
            is_flag=True,
            help="Accept any certificate of a kubelet, as kube-apiserver does by default.",
        ),
        click.option(
            "--store-limit",
            metavar="SIZE",
            default="",
            help="Largest size of the store's file, such as 8Gi; default: no limit.",
        ),
        click.option(
            "--encryption-provider-config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="What to encrypt in the store: an EncryptionConfiguration, as for kube-apiserver.",
        ),
        click.option(
            "--audit-policy-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="What to log in the audit log: an audit.k8s.io/v1 Policy, as for kube-apiserver.",
        ),
        click.option(
            "--max-connections",
            type=click.IntRange(10, 1_000_000),
            default=10_000,
            show_default=True,
            metavar="N",
            help="Maximum client connections; the server raises its limit of open files to fit.",
        ),
        click.option(
            "--max-connections-per-address",
            type=click.IntRange(0, 1_000_000),
            default=2_500,
            show_default=True,
            metavar="N",
            help="Maximum connections from one address; 0: no limit, for a server behind a load balancer.",
        ),
        verbosity_option,
        click.option(
            "--logging-format", type=click.Choice(["text", "json"]), default="text", help="Format of the log."
        ),
    )


@click.command()
@control_plane_options(
    click.option("--port", type=PORT, default=DEFAULT_PORT, show_default=True, help="0: any free one.")
)
@click.option("--nodes", type=click.IntRange(0, 100_000), default=0, show_default=True, help="How many hollow nodes.")
@click.option(
    "--with",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="Run this part in the same process (repeatable).",
)
def server(parts: tuple[str, ...], **flags: Any) -> None:
    """Serve the Kubernetes API until stopped. The other parts can run in other processes, against it."""
    from situate.cli.control_plane.process import run

    sys.exit(run(settings_of(flags, scheduler="scheduler" in parts, controllers="controllers" in parts)))


def settings_of(flags: dict[str, Any], *, scheduler: bool, controllers: bool) -> ControlPlaneSettings:
    """Raises InputError."""
    from situate.cli.control_plane.settings import ControlPlaneSettings
    from situate.cli.input.node_devices import node_devices
    from situate.core.reconcile.nodes.fencing import FAST, KUBERNETES
    from situate.loop.logs import Logging
    from situate.server.http.settings import Limits

    rules: KubernetesRules = flags["rules"] or DEFAULT
    config, plugins = _configuration(flags["config"], rules)
    return ControlPlaneSettings(
        directory=flags["directory"],
        store=flags["store"],
        etcd=etcd_flags(flags),
        address=flags["address"],
        port=flags["port"],
        names=flags["names"],
        web_port=flags["web_port"],
        scheduler=scheduler,
        controllers=controllers,
        config=config,
        plugins=plugins,
        rules=rules,
        nodes=flags["nodes"],
        copied_from=flags["source"],
        zones=flags["zones"],
        shape=hollow_shape(flags["node_cpu"], flags["node_memory"], flags["node_pods"]),
        node_devices=node_devices(flags["node_devices"]),
        process_node=flags["process_node"],
        security=container_security(flags["run_as_user"], flags["container_users"]),
        profile=FAST if flags["fast_recovery"] else KUBERNETES,
        moves_drifted=flags["drift"] == "move",
        snapshot_lag_s=flags["snapshot_lag"],
        kubelet_insecure_tls=flags["kubelet_insecure_tls"],
        limit_bytes=parse_quantity("--store-limit", flags["store_limit"]) if flags["store_limit"] else 0,
        encryption=flags["encryption_provider_config"],
        audit_policy=flags["audit_policy_file"],
        limits=Limits(
            connections=flags["max_connections"], connections_per_address=flags["max_connections_per_address"]
        ),
        logging=Logging(format=flags["logging_format"], verbosity=flags["verbosity"]),
    )


def etcd_flags(flags: dict[str, Any]) -> EtcdSettings | None:
    """Raises InputError."""
    from situate.store.errors import InvalidRequestError
    from situate.store.etcd.credentials import etcd_credentials
    from situate.wire.errors import InputError

    files = (flags[f"etcd_{name}"] for name in ("cafile", "certfile", "keyfile", "user_file"))
    try:
        return etcd_credentials(flags["store"], *files)
    except InvalidRequestError as error:
        raise InputError(str(error)) from None


def _configuration(path: Path | None, rules: KubernetesRules) -> tuple[Any, dict[str, type]]:
    if path is None:
        from situate.core.config.defaults import default_configuration

        return None if rules is DEFAULT else default_configuration(rules), {}
    from situate.cli.input.profiles import plugins_of_others, read_config, read_profiles

    read_profiles(path, rules)  # report what cannot be built before anything starts
    config = read_config(path, rules)
    return config, plugins_of_others(config, path)
