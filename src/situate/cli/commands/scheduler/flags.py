"""The flags of `situate scheduler`: kube-scheduler's, under the same names and written as Go writes them, and our own.

A flag of kube-scheduler that means nothing here is accepted without effect; NO_EFFECT has the reasons.
"""

import ipaddress
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from situate.cli.options import Option, combined

KUBERNETES: Final = "v1.36"
"""The release whose kube-scheduler this one behaves like."""
SECOND: Final = 1_000_000_000


class _Go(click.ParamType[Any]):
    """A value as Go's flags are written; of `-v=2` we receive `=2`."""

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
SECONDS: Final = _Go("duration", lambda text: _duration(text) / SECOND)
BOOL: Final = _Go("bool", _bool)
LIST: Final = _Go("list", lambda text: tuple(part for part in text.split(",") if part))
ADDRESS: Final = _Go("ip", lambda text: str(ipaddress.ip_address(text)))
NUMBER: Final = _Go("int", _number)
PORT: Final = _Go("port", _port)
RATE: Final = _Go("float", float)
VMODULE: Final = _Go("pattern=N,...", _vmodule)


class Flag(NamedTuple):
    name: str
    kind: click.ParamType[Any]
    default: Any
    help: str
    field: str = ""
    """The field that it sets: of the scheduler's Settings, of ListenSettings (`listen.`) or of the configuration's
    leaderElection (`election.`). Empty: the command itself reads it."""

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    def option(self) -> Option:
        """A bool may stand alone, or have a value after `=`."""
        is_bool = self.kind is BOOL
        extra: dict[str, Any] = (
            {"is_flag": False, "flag_value": "true"} if is_bool else {"metavar": self.kind.name.upper()}
        )
        short = ("-v",) if self.name == "v" else ()
        return click.option(f"--{self.name}", *short, type=self.kind, default=self.default, help=self.help, **extra)


UNTIL_RETRIED: Final = "After how long an unschedulable pod is tried again, if no event wakes it."
FLEET: Final = "With --server: join the fleet NAME and share its work; NAME or NAME/MEMBER."
ALLOWED: Final = "/healthz,/readyz,/livez"
FLAGS: Final = (
    Flag("config", TEXT, "", "The configuration file; read again when it changes, or on SIGHUP."),
    Flag("write-config-to", TEXT, "", "Write the configuration with all defaults to this file, and exit."),
    Flag("kubeconfig", TEXT, "", "How to reach the cluster.", "kubeconfig"),
    Flag("master", TEXT, "", "Address of the API server; overrides the kubeconfig.", "master"),
    Flag("kube-api-qps", RATE, 50.0, "Requests a second to the API server; below 0: no limit."),
    Flag("kube-api-burst", NUMBER, 100, "How many requests may exceed that rate at once."),
    Flag("pod-max-in-unschedulable-pods-duration", DURATION, "5m", UNTIL_RETRIED),
    # Our own.
    Flag("server", TEXT, "", "Schedule for situate's own control plane: a directory of `situate up`, or a URL."),
    Flag("fleet", TEXT, "", FLEET),
    Flag("pool-label", TEXT, "", "With --fleet: see only nodes whose value of this label is in this member's share."),
    Flag("context", TEXT, "", "The kubeconfig's context; default: its current one.", "context"),
    Flag("journal", TEXT, "", "Record all changes and decisions in a new folder below this one."),
    Flag(
        "shadow",
        BOOL,
        "false",
        "Bind nothing: report how often the scheduler that binds chose the same node.",
        "shadow",
    ),
    Flag("shadow-json", BOOL, "false", "Print the summary of --shadow as JSON.", "shadow_json"),
    # Serving.
    Flag("bind-address", ADDRESS, "0.0.0.0", "Where to serve health, metrics and configuration.", "listen.address"),
    Flag("secure-port", PORT, "10259", "The port, with TLS; 0: do not serve.", "listen.port"),
    Flag("cert-dir", TEXT, "", "Where kube-scheduler.crt and .key are, or are created.", "listen.cert_dir"),
    Flag("tls-cert-file", TEXT, "", "The certificate; default: a self-signed one.", "listen.cert_file"),
    Flag("tls-private-key-file", TEXT, "", "Its key.", "listen.key_file"),
    Flag("tls-min-version", TEXT, "", "VersionTLS12 or VersionTLS13.", "listen.min_version"),
    Flag("tls-cipher-suites", LIST, "", "Cipher suites up to TLS 1.2, by their IANA names.", "listen.ciphers"),
    Flag("client-ca-file", TEXT, "", "Trust client certificates of these authorities.", "listen.client_ca_file"),
    Flag("permit-port-sharing", BOOL, "false", "Set SO_REUSEPORT.", "listen.share_port"),
    Flag("permit-address-sharing", BOOL, "false", "Set SO_REUSEADDR.", "listen.share_address"),
    # Who may read what is served.
    Flag("authentication-kubeconfig", TEXT, "", "Authenticate at this API server.", "authentication_kubeconfig"),
    Flag("authentication-skip-lookup", BOOL, "false", "Do not look up the authorities of client certificates."),
    Flag("authentication-tolerate-lookup-failure", BOOL, "true", "Continue if that fails.", "tolerate_lookup_failure"),
    Flag(
        "authentication-token-webhook-cache-ttl", SECONDS, "10s", "How long to cache whose token one is.", "token_ttl_s"
    ),
    Flag("authorization-kubeconfig", TEXT, "", "Authorize at this API server.", "authorization_kubeconfig"),
    Flag("authorization-always-allow-paths", LIST, ALLOWED, "Paths that need no authorization."),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        SECONDS,
        "10s",
        "How long to cache that somebody is authorized.",
        "allow_ttl_s",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        SECONDS,
        "10s",
        "How long to cache that somebody is not authorized.",
        "deny_ttl_s",
    ),
    # Leader election. A flag that is given wins over the file.
    Flag("leader-elect", BOOL, "true", "Elect one of several schedulers as leader.", "election.leader_elect"),
    Flag(
        "leader-elect-lease-duration", DURATION, "15s", "How long others wait for a renewal.", "election.lease_duration"
    ),
    Flag(
        "leader-elect-renew-deadline", DURATION, "10s", "How long the leader tries to renew.", "election.renew_deadline"
    ),
    Flag("leader-elect-retry-period", DURATION, "2s", "How often to renew or try.", "election.retry_period"),
    Flag("leader-elect-resource-lock", TEXT, "leases", "The kind of lock; only leases.", "election.resource_lock"),
    Flag("leader-elect-resource-name", TEXT, "kube-scheduler", "The Lease's name.", "election.resource_name"),
    Flag(
        "leader-elect-resource-namespace", TEXT, "kube-system", "The Lease's namespace.", "election.resource_namespace"
    ),
    # Logs.
    Flag("logging-format", TEXT, "text", "text or json."),
    Flag("v", NUMBER, "0", "How much to log, from 0 to 10."),
    Flag("vmodule", VMODULE, "", "How much to log in files that match."),
    Flag("log-text-split-stream", BOOL, "false", "As text, errors to stderr and the rest to stdout."),
    Flag("log-json-split-stream", BOOL, "false", "As JSON, errors to stderr and the rest to stdout."),
)

_WHY_WITHOUT_EFFECT: Final = {
    "all metrics are always shown": (
        *("allow-metric-labels", "allow-metric-labels-manifest", "disabled-metrics"),
        "show-hidden-metrics-for-version",
    ),
    "this is not a Go program": ("contention-profiling", "profiling"),
    "HTTP/1.1 is served": ("disable-http2-serving", "http2-max-streams-per-connection"),
    "the API server's version decides": ("emulated-version", "min-compatibility-version"),
    "there are no feature gates here": ("feature-gates",),
    "requests and answers are JSON": ("kube-api-content-type",),
    "every line is written at once": (
        *("log-flush-frequency", "log-json-info-buffer-size", "log-text-info-buffer-size"),
    ),
    "nobody is authenticated by headers of a proxy here": (
        *("requestheader-allowed-names", "requestheader-client-ca-file", "requestheader-extra-headers-prefix"),
        *("requestheader-group-headers", "requestheader-uid-headers", "requestheader-username-headers"),
    ),
    "OpenSSL chooses": ("tls-curve-preferences",),
    "there is one certificate for all names": ("tls-sni-cert-key",),
}
NO_EFFECT: Final = dict(sorted((name, why) for why, names in _WHY_WITHOUT_EFFECT.items() for name in names))
_SWITCHES: Final = ("contention-profiling", "disable-http2-serving", "profiling")

scheduler_flags: Final = combined(
    *(flag.option() for flag in FLAGS),
    *(
        Flag(name, BOOL if name in _SWITCHES else TEXT, None, f"No effect: {why}.").option()
        for name, why in NO_EFFECT.items()
    ),
)
