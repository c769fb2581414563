"""`situate server`: a control plane in this process, in the foreground; the API alone, or with more of its parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from situate.cli.cluster.connection import DIRECTORY

if TYPE_CHECKING:
    from situate.cli.control_plane.process import Settings

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_PORT: Final = 7443
PARTS: Final = ("scheduler", "controllers")


def plane_options(command: F) -> F:
    """The options that `situate up` and `situate server` share."""
    for option in reversed(
        (
            click.option(
                "--dir",
                "directory",
                type=click.Path(path_type=Path, file_okay=False),
                default=DIRECTORY,
                show_default=True,
                help="Where it keeps its store, keys and logs.",
            ),
            click.option(
                "--store",
                metavar="WHERE",
                default="",
                help="memory, a file, or etcd://host:port/prefix; default: a file in the directory.",
            ),
            click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen."),
            click.option(
                "--port",
                type=click.IntRange(0, 65535),
                default=DEFAULT_PORT,
                show_default=True,
                help="0: any free one.",
            ),
            click.option(
                "--name",
                "names",
                multiple=True,
                metavar="HOST",
                help="Another name of this server: for its certificate.",
            ),
            click.option(
                "--config", type=click.Path(path_type=Path), help="KubeSchedulerConfiguration, with profiles."
            ),
            click.option(
                "--zones", type=click.IntRange(1, 1_000), default=1, help="Deal hollow nodes out to so many zones."
            ),
            click.option("--node-cpu", default="4", show_default=True, help="Of each hollow node."),
            click.option("--node-memory", default="16Gi", show_default=True, help="Of each hollow node."),
            click.option(
                "--node-pods", type=click.IntRange(1), default=110, show_default=True, help="Of each hollow node."
            ),
            click.option(
                "--process-node", is_flag=True, help="This machine is a node, too: its pods are processes here."
            ),
            click.option(
                "--fast-recovery",
                is_flag=True,
                help="Give up nodes that fall silent after 18 s and not 50 s: their pods run elsewhere within 30 s.",
            ),
            click.option(
                "--snapshot-lag",
                type=click.FloatRange(0.1, 3_600),
                default=5.0,
                show_default=True,
                metavar="SECONDS",
                help="How far a node may be behind its snapshot before its condition SnapshotLagging says so.",
            ),
            click.option(
                "--store-limit", metavar="SIZE", default="", help="How large the store's file may become: 8Gi."
            ),
            click.option("-v", "--v", "verbosity", type=click.IntRange(0, 10), default=0, help="How much to log."),
            click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", help="Of the log."),
        )
    ):
        command = option(command)
    return command


@click.command()
@plane_options
@click.option("--nodes", type=click.IntRange(0, 100_000), default=0, show_default=True, help="How many hollow nodes.")
@click.option(
    "--with",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="Run this part in the same process; may be given more than once.",
)
def server(parts: tuple[str, ...], **flags: Any) -> None:
    """Serve the Kubernetes API, until told to stop. The other parts can run elsewhere, against it."""
    from situate.cli.control_plane.process import run

    sys.exit(run(settings_of(flags, scheduler="scheduler" in parts, controllers="controllers" in parts)))


def settings_of(flags: dict[str, Any], *, scheduler: bool, controllers: bool) -> Settings:
    """What the flags come to. Raises InputError."""
    from situate.agent.node_objects import NodeShape
    from situate.cli.control_plane.process import Settings
    from situate.core.reconcile.nodes.fencing import FAST, KUBERNETES
    from situate.loop.logs import Logging

    config, plugins = _configured(flags["config"])
    return Settings(
        directory=flags["directory"],
        store=flags["store"],
        address=flags["address"],
        port=flags["port"],
        names=flags["names"],
        scheduler=scheduler,
        controllers=controllers,
        config=config,
        plugins=plugins,
        nodes=flags["nodes"],
        zones=flags["zones"],
        shape=NodeShape(
            checked_quantity("--node-cpu", flags["node_cpu"]),
            checked_quantity("--node-memory", flags["node_memory"]),
            flags["node_pods"],
        ),
        process_node=flags["process_node"],
        profile=FAST if flags["fast_recovery"] else KUBERNETES,
        snapshot_lag_s=flags["snapshot_lag"],
        limit_bytes=_bytes("--store-limit", flags["store_limit"]),
        logging=Logging(format=flags["logging_format"], verbosity=flags["verbosity"]),
    )


def _configured(path: Path | None) -> tuple[Any, dict[str, type]]:
    if path is None:
        return None, {}
    from situate.cli.input.profiles import plugins_of_others, read_config, read_profiles

    read_profiles(path)  # what cannot be built is said before anything is begun
    config = read_config(path)
    return config, plugins_of_others(config, path)


def checked_quantity(flag: str, text: str) -> str:
    _parsed(flag, text)
    return text


def _bytes(flag: str, text: str) -> int:
    return _parsed(flag, text) if text else 0


def _parsed(flag: str, text: str) -> int:
    from situate.core.model.quantity import QuantityError, value
    from situate.wire.errors import InputError

    try:
        return value(text)
    except QuantityError as error:
        raise InputError(str(error), path=flag) from None
