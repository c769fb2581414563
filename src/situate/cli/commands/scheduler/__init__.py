"""`situate scheduler`: schedule the pods of a real cluster. Turns the flags into Settings; kube/scheduler.py runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from situate import __version__
from situate.cli import BadInput
from situate.cli.commands.scheduler.flags import FLAGS, KUBERNETES, NO_EFFECT, SECOND, scheduler_flags

if TYPE_CHECKING:
    from situate.core.config.types import KubeSchedulerConfiguration
    from situate.kube.fleet import FleetRules
    from situate.kube.settings import Loaded, Settings
    from situate.kube.status_server import ListenSettings
    from situate.loop.logs import Logging

__all__ = ["NO_EFFECT", "scheduler"]

IGNORED_WITH_CONFIG: Final = ("kube-api-qps", "kube-api-burst")
"""As in kube-scheduler: with --config, the file's clientConnection holds."""
URLS: Final = ("https://", "http://")
NO_LIMIT: Final = -1.0
FLEET_NAME: Final = re.compile("[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
"""Part of the name of a Lease, and the value of a label."""


@click.command(context_settings={"token_normalize_func": lambda token: token.replace("_", "-")})
@scheduler_flags
@click.option("--version", is_flag=True, help="Print the version, and exit.")
@click.pass_context
def scheduler(ctx: click.Context, /, **flags: Any) -> None:
    """Schedule the pods of a real cluster, beside or instead of kube-scheduler, with its flags.

    Without flags, it finds the cluster as kubectl does; in a pod, it is the pod's own.
    """
    if flags["version"]:
        click.echo(f"situate {__version__} (as kube-scheduler {KUBERNETES})")
        return
    settings = _settings(ctx, flags)
    if flags["write_config_to"]:
        _write(settings.load().config, Path(flags["write_config_to"]))
        return
    from situate.cli.cluster.connection import access_to
    from situate.kube.scheduler import run

    code = run(settings, access_to)
    if code:
        ctx.exit(code)


def _given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name.replace("-", "_")) is click.core.ParameterSource.COMMANDLINE


def _fields(flags: dict[str, Any], prefix: str) -> dict[str, Any]:
    """What the flags set whose field has this prefix."""
    found = [(flag.field.rpartition("."), flags[flag.key]) for flag in FLAGS if flag.field]
    return {field: value for (before, _, field), value in found if before == prefix}


def _settings(ctx: click.Context, flags: dict[str, Any]) -> Settings:
    from situate.kube.delegated import ALWAYS_ALLOWED
    from situate.kube.settings import Settings

    said = [f"--{name} has no effect here: {why}" for name, why in NO_EFFECT.items() if _given(ctx, name)]
    path = Path(flags["config"]) if flags["config"] else None
    if path is not None:
        said += [
            f"--{name} has no effect with --config: the file's clientConnection holds"
            for name in IGNORED_WITH_CONFIG
            if _given(ctx, name)
        ]
    prefix = "election."
    election = {
        flag.field.removeprefix(prefix): flags[flag.key]
        for flag in FLAGS
        if flag.field.startswith(prefix) and _given(ctx, flag.name)
    }
    if flags["server"]:
        _aim_at_server(flags, election, limited=_given(ctx, "kube-api-qps"))
    fleet = _fleet(flags, election)
    own: dict[str, Any] = {field: None if value == "" else value for field, value in _fields(flags, "").items()}
    return Settings(
        **own,
        load=lambda: _load(path, flags, election),
        config_file=path,
        guarded=bool(flags["server"]),
        fleet=fleet,
        journal=Path(flags["journal"]) if flags["journal"] else None,
        unschedulable_limit_ms=max(0, flags["pod_max_in_unschedulable_pods_duration"] // 1_000_000),
        serving=_listen(flags),
        look_up_authorities=not flags["authentication_skip_lookup"],
        always_allowed=flags["authorization_always_allow_paths"] or ALWAYS_ALLOWED,
        logging=_logging(flags),
        said=tuple(said),
    )


def _aim_at_server(flags: dict[str, Any], election: dict[str, Any], *, limited: bool) -> None:
    """What --server implies: an address, no limit on requests, and the lease of the scheduler inside it."""
    from situate.cli.cluster.connection import KUBECONFIG
    from situate.kube.settings import OWN_LEASE

    where: str = flags["server"]
    if flags["master"]:
        raise BadInput("--server and --master both name the API server; give one of them")
    if where.startswith(URLS):
        flags["master"] = where
    elif flags["kubeconfig"]:
        raise BadInput("--kubeconfig goes with a URL in --server; a directory has its own")
    elif not (found := Path(where) / KUBECONFIG).is_file():
        raise BadInput(f"--server: no control plane was ever started in {where}: there is no {found}")
    else:
        flags["kubeconfig"] = str(found)
    if not limited:
        flags["kube_api_qps"] = NO_LIMIT
    for name, own in zip(("namespace", "name"), OWN_LEASE, strict=True):
        election.setdefault(f"resource_{name}", own)


def _fleet(flags: dict[str, Any], election: dict[str, Any]) -> FleetRules | None:
    """The fleet that we join. The flags of an election, if given, say how soon other members take over."""
    from situate.kube.fleet import FleetRules, fresh_member

    fleet, slash, member = flags["fleet"].partition("/")
    if not flags["fleet"]:
        if flags["pool_label"]:
            raise BadInput("--pool-label goes with --fleet: it says how the members divide the nodes")
        return None
    if not flags["server"]:
        raise BadInput("--fleet goes with --server: only situate's own control plane refuses a bind to a full node")
    if flags["shadow"]:
        raise BadInput("--fleet and --shadow do not go together: a shadow binds nothing")
    for name in (fleet, member) if slash else (fleet,):
        if not FLEET_NAME.fullmatch(name):
            raise BadInput(f"--fleet: {name!r} is not a name: use up to 50 of a-z, 0-9 and -, as in prod or prod/one")
    # A fleet has no leader, so these flags are for the lease of a place in the fleet.
    lease_s = election.pop("lease_duration", 5 * SECOND) / SECOND
    renew_s = election.pop("retry_period", min(SECOND, lease_s * SECOND / 4)) / SECOND
    election["leader_elect"] = False
    if lease_s < 1.0 or not 0 < renew_s <= lease_s / 2:
        raise BadInput("--fleet: the lease must last at least 1s, and be renewed at least twice in that time")
    return FleetRules(fleet, member or fresh_member(), lease_s, renew_s, flags["pool_label"])


def _load(path: Path | None, flags: dict[str, Any], election: dict[str, Any]) -> Loaded:
    """The configuration as the file has it now, overridden by flags. Raises InputError or OSError."""
    from msgspec.structs import replace

    from situate.cli.input.profiles import plugins_of_others, read_config
    from situate.core.config.defaults import default_configuration
    from situate.core.config.validate import validate
    from situate.kube.settings import Loaded
    from situate.wire.config import ConfigInputError

    others: dict[str, type] = {}
    if path is None:
        config = default_configuration()
        connection = replace(config.client_connection, qps=flags["kube_api_qps"], burst=flags["kube_api_burst"])
        config = replace(config, client_connection=connection)
    else:
        config = read_config(path)
        others = plugins_of_others(config, path)
    config = replace(config, leader_election=replace(config.leader_election, **election))
    if problems := validate(config):
        raise ConfigInputError(problems, "" if path is None else str(path))
    return Loaded(config, others)


def _listen(flags: dict[str, Any]) -> ListenSettings | None:
    from situate.kube.status_server import OLD_TLS, TLS_VERSIONS, ListenSettings

    version, known = flags["tls_min_version"], ", ".join(TLS_VERSIONS)
    if version in OLD_TLS:
        raise BadInput(f"--tls-min-version: {version} is no longer safe; use one of {known}")
    if version and version not in TLS_VERSIONS:
        raise BadInput(f"--tls-min-version: unknown version {version!r}; use one of {known}")
    return ListenSettings(**_fields(flags, "listen")) if flags["secure_port"] else None


def _logging(flags: dict[str, Any]) -> Logging:
    from situate.loop.logs import Logging

    wanted = flags["logging_format"]
    if wanted not in ("text", "json"):
        raise BadInput(f'--logging-format: unknown format {wanted!r}; use "text" or "json"')
    split = flags["log_json_split_stream" if wanted == "json" else "log_text_split_stream"]
    return Logging(wanted, max(0, flags["v"]), flags["vmodule"], split)


def _write(config: KubeSchedulerConfiguration, path: Path) -> None:
    from situate.core.config.resolve import complete
    from situate.wire.config import dump_config

    path.write_text(dump_config(complete(config)))
    click.echo(f"Wrote configuration to {path}", file=sys.stderr)
