"""`situate scheduler`: schedule the pods of a real cluster, with kube-scheduler's flags under the same names.

A flag of kube-scheduler's that means nothing here is taken, and one line says so; NO_EFFECT has them all, with why. A
flag that neither has is an error. What the flags come to is handed to kube/scheduler.py; nothing is done here.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from situate import __version__
from situate.cli import BadInput

if TYPE_CHECKING:
    from situate.core.config.types import KubeSchedulerConfiguration
    from situate.kube.fleet import FleetRules
    from situate.kube.settings import Loaded, Settings
    from situate.kube.status_server import ListenSettings
    from situate.loop.logs import Logging

KUBERNETES: Final = "v1.36"
"""The release whose kube-scheduler this one answers like."""

JSON_ONLY: Final = "requests and answers are JSON"
NOT_GO: Final = "this is no Go program"
NO_GATES: Final = "there are no feature gates here"
NO_PROXY: Final = "nobody is authenticated by headers of a proxy here"
NO_HTTP2: Final = "HTTP/1.1 is served"
ALL_METRICS: Final = "all metrics are always shown"

NO_EFFECT: Final[dict[str, str]] = {
    "allow-metric-labels": ALL_METRICS,
    "allow-metric-labels-manifest": ALL_METRICS,
    "contention-profiling": NOT_GO,
    "disable-http2-serving": NO_HTTP2,
    "disabled-metrics": ALL_METRICS,
    "emulated-version": f"only {KUBERNETES} is emulated",
    "feature-gates": NO_GATES,
    "http2-max-streams-per-connection": NO_HTTP2,
    "kube-api-content-type": JSON_ONLY,
    "log-flush-frequency": "every line is written at once",
    "log-json-info-buffer-size": "every line is written at once",
    "log-text-info-buffer-size": "every line is written at once",
    "min-compatibility-version": f"only {KUBERNETES} is emulated",
    "profiling": NOT_GO,
    "requestheader-allowed-names": NO_PROXY,
    "requestheader-client-ca-file": NO_PROXY,
    "requestheader-extra-headers-prefix": NO_PROXY,
    "requestheader-group-headers": NO_PROXY,
    "requestheader-uid-headers": NO_PROXY,
    "requestheader-username-headers": NO_PROXY,
    "show-hidden-metrics-for-version": ALL_METRICS,
    "tls-curve-preferences": "OpenSSL chooses",
    "tls-sni-cert-key": "there is one certificate for all names",
}
SWITCHES_WITHOUT_EFFECT: Final = ("contention-profiling", "disable-http2-serving", "profiling")
IGNORED_WITH_CONFIG: Final = ("kube-api-qps", "kube-api-burst")
"""As kube-scheduler has it: with --config, the file's clientConnection holds."""

URLS: Final = ("https://", "http://")
NO_LIMIT: Final = -1.0
SECOND: Final = 1_000_000_000
FLEET_NAME: Final = re.compile("[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
"""Part of the name of a Lease, and the value of a label."""

F = TypeVar("F", bound=Callable[..., Any])

# ── kinds of values ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Go(click.ParamType[Any]):
    """A value as Go's flags are written; `-v=2` reaches us with its sign."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value.removeprefix("="))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def _duration(text: str) -> int:
    from situate.core.model.duration import parse_duration

    return parse_duration(text)


def _bool(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError("neither true nor false")


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _vmodule(text: str) -> tuple[tuple[str, int], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not pattern or not level.isascii() or not level.isdecimal() for pattern, _, level in pairs):
        raise ValueError("not a list of pattern=N")
    return tuple((pattern, int(level)) for pattern, _, level in pairs)


def _number(text: str) -> int:
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdecimal():
        raise ValueError("not a number")
    return int(text)


def _port(text: str) -> int:
    port = _number(text)
    if not 0 <= port <= 65_535:
        raise ValueError("not a port")
    return port


TEXT: Final = click.STRING
DURATION: Final = _Go("duration", _duration)
BOOL: Final = _Go("bool", _bool)
LIST: Final = _Go("list", _list)
ADDRESS: Final = _Go("ip", _address)
NUMBER: Final = _Go("int", _number)
PORT: Final = _Go("port", _port)
RATE: Final = _Go("float", float)


def flag(name: str, kind: click.ParamType[Any], default: Any, told: str, *short: str) -> Callable[[F], F]:
    """One option. A bool may stand by itself, or be given a value with `=`."""
    extra: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if kind is BOOL else {"metavar": kind.name.upper()}
    return click.option(f"--{name}", *short, type=kind, default=default, help=told, **extra)


def together(*flags: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for one in reversed(flags):
            command = one(command)
        return command

    return add


# ── the flags ───────────────────────────────────────────────────────────────────────────────────────────────────────

MISC: Final = together(
    flag("config", TEXT, "", "The configuration file; read again when it changes, or on SIGHUP."),
    flag("write-config-to", TEXT, "", "Write the configuration with all defaults to this file, and end."),
    flag("kubeconfig", TEXT, "", "How to reach the cluster."),
    flag("master", TEXT, "", "Address of the API server, instead of the kubeconfig's."),
    flag("kube-api-qps", RATE, 50.0, "Requests a second to the API server; below 0: no limit."),
    flag("kube-api-burst", NUMBER, 100, "How many requests may be made at once above that."),
    flag(
        "pod-max-in-unschedulable-pods-duration",
        DURATION,
        "5m",
        "After how long an unschedulable pod is tried again, if nothing else wakes it.",
    ),
)
OURS: Final = together(
    flag("server", TEXT, "", "Schedule for situate's own control plane: a directory of `situate up`, or a URL."),
    flag(
        "fleet",
        TEXT,
        "",
        "With --server: share the work with others of the fleet NAME, under a name of our own: NAME or NAME/MEMBER.",
    ),
    flag("pool-label", TEXT, "", "With --fleet: see only nodes of our share of this label's values."),
    flag("context", TEXT, "", "The kubeconfig's context, instead of its current one."),
    flag("journal", TEXT, "", "Keep all that happened and was decided in a new folder below this one."),
    flag("shadow", BOOL, "false", "Bind nothing: report how far we agree with whoever does."),
    flag("shadow-json", BOOL, "false", "Print the summary of --shadow as JSON."),
)
SERVING: Final = together(
    flag("bind-address", ADDRESS, "0.0.0.0", "Where to serve health, metrics and configuration."),
    flag("secure-port", PORT, "10259", "On which port, over TLS; 0: not at all."),
    flag("cert-dir", TEXT, "", "Where kube-scheduler.crt and .key are, or are put if they are missing."),
    flag("tls-cert-file", TEXT, "", "The certificate to serve with; without one, it is self-signed."),
    flag("tls-private-key-file", TEXT, "", "Its key."),
    flag("tls-min-version", TEXT, "", "VersionTLS12 or VersionTLS13."),
    flag("tls-cipher-suites", LIST, "", "Cipher suites up to TLS 1.2, by their IANA names."),
    flag("permit-port-sharing", BOOL, "false", "Set SO_REUSEPORT."),
    flag("permit-address-sharing", BOOL, "false", "Set SO_REUSEADDR."),
)
WHO: Final = together(
    flag("authentication-kubeconfig", TEXT, "", "Ask this API server who somebody is; else the scheduler's own."),
    flag("authentication-skip-lookup", BOOL, "false", "Do not look up whose client certificates to trust."),
    flag("authentication-tolerate-lookup-failure", BOOL, "true", "Go on if that cannot be looked up."),
    flag("authentication-token-webhook-cache-ttl", DURATION, "10s", "How long who somebody is is remembered."),
    flag("authorization-kubeconfig", TEXT, "", "Ask this API server what somebody may; else the scheduler's own."),
    flag("authorization-always-allow-paths", LIST, "/healthz,/readyz,/livez", "Open to everybody."),
    flag("authorization-webhook-cache-authorized-ttl", DURATION, "10s", "How long a yes is remembered."),
    flag("authorization-webhook-cache-unauthorized-ttl", DURATION, "10s", "How long a no is remembered."),
    flag("client-ca-file", TEXT, "", "Trust client certificates of these authorities."),
)
ELECTION: Final = together(
    flag("leader-elect", BOOL, "true", "Be one of several, of which one decides."),
    flag("leader-elect-lease-duration", DURATION, "15s", "After so long without renewal, another takes over."),
    flag("leader-elect-renew-deadline", DURATION, "10s", "After so long without renewal, the leader gives up."),
    flag("leader-elect-retry-period", DURATION, "2s", "How often to renew, or to try to take over."),
    flag("leader-elect-resource-lock", TEXT, "leases", "The kind of lock; only leases."),
    flag("leader-elect-resource-name", TEXT, "kube-scheduler", "The Lease's name."),
    flag("leader-elect-resource-namespace", TEXT, "kube-system", "The Lease's namespace."),
)
LOGS: Final = together(
    flag("logging-format", TEXT, "text", "text or json."),
    flag("v", NUMBER, "0", "How much to log, from 0 to 10.", "-v"),
    flag("vmodule", _Go("pattern=N,...", _vmodule), "", "How much to log in the files whose name fits."),
    flag("log-text-split-stream", BOOL, "false", "As text, errors to stderr and all else to stdout."),
    flag("log-json-split-stream", BOOL, "false", "As JSON, errors to stderr and all else to stdout."),
)
WITHOUT_EFFECT: Final = together(
    *(
        flag(name, BOOL if name in SWITCHES_WITHOUT_EFFECT else TEXT, None, f"No effect: {why}.")
        for name, why in NO_EFFECT.items()
    )
)


@click.command(context_settings={"token_normalize_func": lambda token: token.replace("_", "-")})
@MISC
@OURS
@SERVING
@WHO
@ELECTION
@LOGS
@WITHOUT_EFFECT
@click.option("--version", is_flag=True, help="Print the version, and end.")
@click.pass_context
def scheduler(ctx: click.Context, /, **flags: Any) -> None:
    """Schedule the pods of a real cluster, beside or instead of kube-scheduler, with its flags.

    Without any, the cluster is that of the kubeconfig in its standard place, or the one we run in.
    """
    if flags["version"]:
        click.echo(f"situate {__version__} (as kube-scheduler {KUBERNETES})")
        return
    settings = _settings(ctx, flags)
    if flags["write_config_to"]:
        _write(settings.load().config, Path(flags["write_config_to"]))
        return
    from situate.kube.scheduler import run

    code = run(settings)
    if code:
        ctx.exit(code)


def _given(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name.replace("-", "_"))
    return source is click.core.ParameterSource.COMMANDLINE


# ── what the flags come to ──────────────────────────────────────────────────────────────────────────────────────────


def _settings(ctx: click.Context, flags: dict[str, Any]) -> Settings:
    from situate.kube.delegated import ALWAYS_ALLOWED
    from situate.kube.settings import Settings

    seconds = 1_000_000_000
    said = [f"--{name} has no effect here: {why}" for name, why in NO_EFFECT.items() if _given(ctx, name)]
    path = Path(flags["config"]) if flags["config"] else None
    if path is not None:
        said += [
            f"--{name} has no effect with --config: the file's clientConnection holds"
            for name in IGNORED_WITH_CONFIG
            if _given(ctx, name)
        ]
    election = {name: flags[name] for name in ELECTION_FIELDS if _given(ctx, name)}
    if flags["server"]:
        _aim_at(flags, election, _given(ctx, "kube-api-qps"))
    return Settings(
        load=lambda: _load(path, flags, election),
        config_file=path,
        kubeconfig=flags["kubeconfig"] or None,
        context=flags["context"] or None,
        master=flags["master"] or None,
        guarded=bool(flags["server"]),
        fleet=_fleet(flags, election),
        journal=Path(flags["journal"]) if flags["journal"] else None,
        unschedulable_limit_ms=max(0, flags["pod_max_in_unschedulable_pods_duration"] // 1_000_000),
        shadow=flags["shadow"],
        shadow_json=flags["shadow_json"],
        serving=_where(flags),
        authentication_kubeconfig=flags["authentication_kubeconfig"] or None,
        authorization_kubeconfig=flags["authorization_kubeconfig"] or None,
        look_up_authorities=not flags["authentication_skip_lookup"],
        tolerate_lookup_failure=flags["authentication_tolerate_lookup_failure"],
        always_allowed=flags["authorization_always_allow_paths"] or ALWAYS_ALLOWED,
        token_ttl_s=flags["authentication_token_webhook_cache_ttl"] / seconds,
        allow_ttl_s=flags["authorization_webhook_cache_authorized_ttl"] / seconds,
        deny_ttl_s=flags["authorization_webhook_cache_unauthorized_ttl"] / seconds,
        logging=_logging(flags),
        said=tuple(said),
    )


ELECTION_FIELDS: Final = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
"""Of a flag, the field of the configuration's leaderElection. A flag that is given wins over the file."""


def _aim_at(flags: dict[str, Any], election: dict[str, Any], limited: bool) -> None:
    """What --server stands for: where it is, no limit on requests, and the lease of the scheduler inside it."""
    from situate.cli.cluster.connection import KUBECONFIG
    from situate.kube.settings import OWN_LEASE

    where: str = flags["server"]
    if flags["master"]:
        raise BadInput("--server and --master both say where the API server is; give one of them")
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
        election.setdefault(f"leader_elect_resource_{name}", own)


def _fleet(flags: dict[str, Any], election: dict[str, Any]) -> FleetRules | None:
    """The fleet that we are of. How soon others take over is what the flags of an election say, if they are given."""
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
            raise BadInput(f"--fleet: {name!r} is no name: use up to 50 of a-z, 0-9 and -, as in prod or prod/one")
    # Nobody is elected, so what is said of that holds for the lease of a place in the fleet instead.
    lease_s = election.pop("leader_elect_lease_duration", 5 * SECOND) / SECOND
    renew_s = election.pop("leader_elect_retry_period", min(SECOND, lease_s * SECOND / 4)) / SECOND
    election["leader_elect"] = False
    if lease_s < 1.0 or not 0 < renew_s <= lease_s / 2:
        raise BadInput("--fleet: the lease is to last 1s at least, and to be renewed twice in that time at least")
    return FleetRules(fleet, member or fresh_member(), lease_s, renew_s, flags["pool_label"])


def _load(path: Path | None, flags: dict[str, Any], election: dict[str, Any]) -> Loaded:
    """The configuration as it is now in the file, with what the flags say on top. Raises InputError or OSError."""
    from msgspec.structs import replace

    from situate.cli.input.profiles import plugins_of_others, read_config
    from situate.core.config.defaults import default_configuration
    from situate.core.config.validate import validate
    from situate.kube.settings import Loaded
    from situate.wire.config import ConfigInputError

    if path is None:
        config = default_configuration()
        connection = replace(config.client_connection, qps=flags["kube_api_qps"], burst=flags["kube_api_burst"])
        config = replace(config, client_connection=connection)
        others: dict[str, type] = {}
    else:
        config = read_config(path)
        others = plugins_of_others(config, path)
    fields = {ELECTION_FIELDS[name]: value for name, value in election.items()}
    config = replace(config, leader_election=replace(config.leader_election, **fields))
    if problems := validate(config):
        raise ConfigInputError(problems, "" if path is None else str(path))
    return Loaded(config, others)


def _where(flags: dict[str, Any]) -> ListenSettings | None:
    from situate.kube.status_server import OLD_TLS, TLS_VERSIONS, ListenSettings

    version = flags["tls_min_version"]
    if version in OLD_TLS:
        raise BadInput(f"--tls-min-version: {version} is not safe any more; use one of {', '.join(TLS_VERSIONS)}")
    if version and version not in TLS_VERSIONS:
        raise BadInput(f"--tls-min-version: unknown version {version!r}; use one of {', '.join(TLS_VERSIONS)}")
    if not flags["secure_port"]:
        return None
    return ListenSettings(
        address=flags["bind_address"],
        port=flags["secure_port"],
        cert_file=flags["tls_cert_file"],
        key_file=flags["tls_private_key_file"],
        cert_dir=flags["cert_dir"],
        min_version=version,
        ciphers=flags["tls_cipher_suites"],
        client_ca_file=flags["client_ca_file"],
        share_port=flags["permit_port_sharing"],
        share_address=flags["permit_address_sharing"],
    )


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
