"""`situate envtest kube-apiserver`: the API alone, with kube-apiserver's flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.envtest.flags import GIVEN_BY_ENVTEST, NO_EFFECT
from situate.cli.options import combined

if TYPE_CHECKING:
    from situate.cli.control_plane.settings import ControlPlaneSettings

OWN_FOLDER: Final = "situate"
"""Below --cert-dir: keys, the audit log, and the kubeconfig of an administrator."""
SERVING: Final = ("apiserver.crt", "apiserver.key")
MODES: Final = ("AlwaysAllow", "RBAC", "Node")
ADMISSION: Final = {
    "DefaultStorageClass": "DefaultStorageClass",
    "DefaultTolerationSeconds": "DefaultTolerations",
    "LimitRanger": "LimitRanger",
    "PodSecurity": "PodSecurity",
    "Priority": "Priority",
    "RuntimeClass": "RuntimeClasses",
    "ServiceAccount": "ServiceAccounts",
}
"""Kubernetes' names of the admission plugins that can be left out, and ours."""
ETCD_ANSWER_S: Final = 5.0


def _file(flag: str, text: str) -> Any:
    return click.option(flag, type=click.Path(path_type=Path), metavar="FILE", help=text)


@click.command("kube-apiserver", context_settings={"ignore_unknown_options": True})
@combined(
    click.option("--etcd-servers", metavar="URLS", help="Where etcd is; `situate envtest etcd` means: in memory."),
    click.option("--etcd-prefix", default="/registry", show_default=True, help="Prefix of all keys in etcd."),
    _file("--etcd-cafile", "The authority of etcd's certificates."),
    _file("--etcd-certfile", "The client certificate for etcd."),
    _file("--etcd-keyfile", "The key of that certificate."),
    click.option(
        "--cert-dir",
        type=click.Path(path_type=Path, file_okay=False),
        required=True,
        metavar="DIRECTORY",
        help="Serve with apiserver.crt and apiserver.key from here, if they are there; our own files go below it.",
    ),
    _file("--tls-cert-file", "Serve with this certificate instead."),
    _file("--tls-private-key-file", "The key of that certificate."),
    click.option(
        "--secure-port", type=click.IntRange(0, 65_535), default=6443, show_default=True, help="0: any free one."
    ),
    click.option("--bind-address", default="127.0.0.1", show_default=True, help="Where to listen."),
    _file("--client-ca-file", "Accept client certificates of these authorities, too."),
    _file("--token-auth-file", "Bearer tokens, a line each: token,user,uid,groups."),
    click.option(
        "--authorization-mode",
        default="AlwaysAllow",
        show_default=True,
        help="AlwaysAllow, or RBAC and Node, which come together here.",
    ),
    click.option("--disable-admission-plugins", default="", metavar="NAMES", help="Admission plugins to leave out."),
    click.option(
        "--service-account-issuer",
        multiple=True,
        metavar="URL",
        help="The issuer of tokens; if given several times, the first counts.",
    ),
    click.option(
        "--service-account-key-file",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Public keys or certificates whose tokens are accepted (ECDSA).",
    ),
    _file("--service-account-signing-key-file", "The key that signs tokens (ECDSA)."),
    _file("--audit-policy-file", "What to log in the audit log."),
    _file("--encryption-provider-config", "What to encrypt in the store."),
    click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", help="Format of the log."),
    click.option("-v", "--v", "verbosity", type=click.IntRange(0, 10), default=0, help="How much to log."),
)
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
def kube_apiserver(others: tuple[str, ...], **flags: Any) -> None:
    """Serve the Kubernetes API until stopped: no scheduler, no controllers, no nodes, as kube-apiserver alone.

    OTHERS: kube-apiserver's other flags are accepted and have no effect; a line on stderr says so.
    """
    from situate.cli.control_plane.process import run

    _report_others(others)
    sys.exit(run(_settings(flags)))


def _report_others(others: tuple[str, ...]) -> None:
    """Raises BadInput for what is no flag of kube-apiserver."""
    value_may_follow = False
    for one in others:
        name, equals, _ = one.removeprefix("--").partition("=")
        if not one.startswith("--"):
            if not value_may_follow:
                raise BadInput(f"{one} is not a flag of kube-apiserver")
            value_may_follow = False
            continue
        if name not in NO_EFFECT:
            raise BadInput(f"--{name} is not a flag of kube-apiserver (see `situate envtest kube-apiserver --help`)")
        value_may_follow = not equals
        if name not in GIVEN_BY_ENVTEST:
            click.echo(f"--{name} has no effect here", err=True)


def _settings(flags: dict[str, Any]) -> ControlPlaneSettings:
    """Writes the keys and tokens of the flags into our own folder. Raises InputError and BadInput."""
    from situate.cli.commands.envtest.credentials import write_account_keys, write_tokens
    from situate.cli.commands.server import etcd_flags
    from situate.cli.control_plane.settings import ControlPlaneSettings
    from situate.loop.logs import Logging
    from situate.server.identity.pki.authority import GivenCertificates
    from situate.server.identity.tokens.service_account_tokens import ISSUER

    directory: Path = flags["cert_dir"] / OWN_FOLDER
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_account_keys(directory, flags["service_account_signing_key_file"], flags["service_account_key_file"])
    write_tokens(directory, flags["token_auth_file"])
    store = _store(flags)
    return ControlPlaneSettings(
        directory=directory,
        store=store,
        etcd=etcd_flags({**flags, "store": store, "etcd_user_file": None}) if store != "memory" else None,
        address=flags["bind_address"],
        port=flags["secure_port"],
        scheduler=False,
        controllers=False,
        given=GivenCertificates(_serving(flags), flags["client_ca_file"]),
        account_issuer=next(iter(flags["service_account_issuer"]), ISSUER),
        allows_all=_allows_all(flags["authorization_mode"]),
        fails_stray_binds=True,
        without_admission=_left_out(flags["disable_admission_plugins"]),
        encryption=flags["encryption_provider_config"],
        audit_policy=flags["audit_policy_file"],
        logging=Logging(format=flags["logging_format"], verbosity=flags["verbosity"]),
    )


def _serving(flags: dict[str, Any]) -> tuple[Path, Path] | None:
    certificate, key = flags["tls_cert_file"], flags["tls_private_key_file"]
    if (certificate is None) != (key is None):
        raise BadInput("--tls-cert-file and --tls-private-key-file must be given together")
    if certificate is not None and key is not None:
        return certificate, key
    found = tuple(flags["cert_dir"] / name for name in SERVING)
    return (found[0], found[1]) if found[0].exists() else None


def _allows_all(modes: str) -> bool:
    wanted = modes.split(",")
    for mode in wanted:
        if mode not in MODES:
            raise BadInput(f"--authorization-mode has {mode}; known are {', '.join(MODES)}")
    return "AlwaysAllow" in wanted


def _left_out(names: str) -> frozenset[str]:
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in ADMISSION:
            click.echo(f"--disable-admission-plugins={name} has no effect here", err=True)
    return frozenset(ADMISSION[name] for name in wanted if name in ADMISSION)


def _store(flags: dict[str, Any]) -> str:
    """memory, unless a real etcd is there."""
    import http.client
    from urllib.parse import urlsplit

    from situate.cli.commands.envtest.etcd import NAME

    urls = [urlsplit(url) for url in (flags["etcd_servers"] or "").split(",") if url]
    if not urls:
        return "memory"
    if urls[0].scheme == "http":
        connection = http.client.HTTPConnection(urls[0].netloc, timeout=ETCD_ANSWER_S)
        try:
            connection.request("GET", "/version")
            if f'"{NAME}"'.encode() in connection.getresponse().read(10_000):
                return "memory"
        except OSError as error:
            raise BadInput(f"--etcd-servers={flags['etcd_servers']} does not answer: {error}") from None
        finally:
            connection.close()
    return f"etcd://{','.join(url.netloc for url in urls)}/{flags['etcd_prefix'].strip('/')}"
