"""Finds the API server to use and our credentials there: in a kubeconfig, or in the pod we run in.

It reads a kubeconfig as kubectl does. An InputError names the file, the context and the field. Nothing here uses the
network or runs a program.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from situate.kube.access import ANONYMOUS, Access, Credentials, Fixed
from situate.kube.credentials import TokenFile, WithFiles, basic, bearer
from situate.kube.exec_credentials import API_VERSIONS, ExecCredentials, Plugin
from situate.kube.kubeconfig_file import EntryLocation, Exec, KubeconfigCluster, MergedKubeconfig, User, merged_files
from situate.kube.proxy import from_environment
from situate.kube.tls import BadPemError, Pair, TlsFiles, client_context, read_pem, show
from situate.wire.errors import InputError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
MODES: Final[tuple[Literal["Never", "IfAvailable", "Always"], ...]] = ("Never", "IfAvailable", "Always")
SHOWN_NAMES: Final = 10

_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]+")
_ESCAPED: Final = re.compile(r"[^A-Za-z0-9!#$&'*+.^_`|~-]")


class NoKubeconfigError(InputError):
    """Nothing names a cluster: no option, no environment variable, no file and no pod."""


# -- finding it --------------------------------------------------------------------------------------------------------


def find_access(
    kubeconfig: str | None = None,
    context: str | None = None,
    master: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The first of these that exists:

    1. `kubeconfig`, one file;
    2. `master` alone, anonymously: a kubeconfig's credentials are not sent to a server that it does not name;
    3. $KUBECONFIG, several files;
    4. ~/.kube/config, unless $KUBECONFIG is set, or this file is empty;
    5. the pod we run in, unless there is a `context`.
    This is kubectl's order. `context` replaces current-context, `master` the cluster's address. Raises InputError, and
    NoKubeconfigError where nothing names a cluster.
    """
    env = os.environ if environ is None else environ
    if kubeconfig:
        return _chosen(merged_files([kubeconfig]), context, master, env)
    if master and not context:
        return _at(master, env)
    listed = [path for path in env.get("KUBECONFIG", "").split(os.pathsep) if path]
    there = [path for path in listed if Path(path).exists()]
    if there:
        return _chosen(merged_files(there), context, master, env)
    home = Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"
    if not listed and home.exists() and not _is_empty(merged := merged_files([str(home)])):
        return _chosen(merged, context, master, env)
    if env.get("KUBERNETES_SERVICE_HOST") and not context:
        return in_cluster(env, service_account)
    if listed:
        raise InputError(f"no cluster found: KUBECONFIG names {', '.join(listed)}, which does not exist")
    looked = f"{home} has no contexts" if home.exists() else f"there is no {home}"
    raise NoKubeconfigError(f"no cluster found: {looked} and KUBECONFIG is not set; name one with --kubeconfig")


def _is_empty(merged: MergedKubeconfig) -> bool:
    """Tools that delete their clusters leave such a file behind."""
    return not merged.contexts and not merged.current


def in_cluster(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Access:
    """The cluster of the pod that we run in, with its service account. The kubelet rewrites its token while we run."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    where = "the pod's service account"
    if not host or not port:
        raise InputError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must both be set", subject=where)
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    token, authority = service_account / "token", service_account / "ca.crt"
    if not token.exists():
        what = "not there: mount it (automountServiceAccountToken), or name a kubeconfig with --kubeconfig"
        raise InputError(what, subject=where, file=str(token))
    tls = _context_of(EntryLocation("", where, ""), read=str(authority))
    files = TlsFiles(tls, time.monotonic, authority=str(authority))
    try:
        namespace = (service_account / "namespace").read_text("utf-8").strip() or "default"
    except (OSError, ValueError):
        namespace = "default"
    credentials = WithFiles(TokenFile(str(token)), files)
    place = EntryLocation("", where, "KUBERNETES_SERVICE_HOST")
    _check_address(place, server)
    return Access(server, where, tls, credentials, namespace, _environment_proxy(server, environ))


def _at(master: str, environ: Mapping[str, str]) -> Access:
    place = EntryLocation("", "", "--master")
    tls = client_context(b"") if _check_address(place, master) else None
    server = master.rstrip("/")
    return Access(server, "--master", tls, proxy=_environment_proxy(server, environ))


# -- one context -------------------------------------------------------------------------------------------------------


def _chosen(merged: MergedKubeconfig, context: str | None, master: str | None, environ: Mapping[str, str]) -> Access:
    files = ", ".join(merged.files)
    name = context or merged.current
    listed = ", ".join(sorted(merged.contexts)[:SHOWN_NAMES]) or "none"
    if not name:
        what = f"no current-context: choose one (kubectl config use-context NAME); there are: {listed}"
        raise InputError(what, file=files)
    found = merged.contexts.get(name)
    if found is None:
        raise InputError(f"there is no such context; there are: {listed}", file=files, subject=f'context "{name}"')
    subject = f'context "{name}"'
    here = EntryLocation(found.file, subject, "")
    for field, wanted, known in (
        ("cluster", found.value.cluster, set(merged.clusters)),
        ("user", found.value.user, set(merged.users)),
    ):
        if not wanted:
            here.bad(field, "is not set")
        if wanted not in known:
            here.bad(field, f'there is no {field} "{wanted}"')
    cluster, user = merged.clusters[found.value.cluster], merged.users[found.value.user]
    return _built(
        EntryLocation(cluster.file, subject, f'cluster "{cluster.name}"'),
        _overridden(cluster.value, master),
        EntryLocation(user.file, subject, f'user "{user.name}"'),
        user.value,
        _Found(f"{found.file}, {subject}", found.value.namespace or "default", environ),
    )


def _overridden(cluster: KubeconfigCluster, master: str | None) -> KubeconfigCluster:
    """At another address, and without the server name expected of the certificate at the old one."""
    return cluster if not master else msgspec.structs.replace(cluster, server=master, tls_server_name="")


@dataclass(frozen=True, slots=True)
class _Found:
    where: str
    namespace: str
    environ: Mapping[str, str]


def _built(at: EntryLocation, cluster: KubeconfigCluster, of: EntryLocation, user: User, found: _Found) -> Access:
    if not cluster.server:
        at.bad("server", "is not set")
    secure = _check_address(at, cluster.server)
    server = cluster.server.rstrip("/")
    proxy = cluster.proxy_url or _environment_proxy(server, found.environ)
    if cluster.proxy_url:
        _check_proxy(at, "proxy-url", cluster.proxy_url)
    headers = _impersonation(of, user)
    _check_user(of, user)
    if not secure:  # without TLS no credentials are sent, as in client-go
        return Access(server, found.where, None, ANONYMOUS, found.namespace, proxy, headers)
    tls = _context_for(at, cluster)
    credentials = _credentials(at, cluster, of, user, found, tls)
    return Access(server, found.where, tls, credentials, found.namespace, proxy, headers)


def _check_address(at: EntryLocation, server: str) -> bool:
    """Whether the address uses TLS."""
    try:
        url = urlsplit(server)
        fits = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        at.bad("server" if at.file else "", f'"{server}" is not an address')
    if not fits or _ESCAPED_URL.search(server):
        at.bad("server" if at.file else "", f'"{server}" is not an address: it must be like https://host:6443')
    if url.username or url.password or url.query or url.fragment:
        at.bad("server" if at.file else "", "must hold only scheme, host, port and path")
    return url.scheme == "https"


_ESCAPED_URL: Final = re.compile(r"[^\x21-\x7e]")


def _check_proxy(at: EntryLocation, field: str, proxy: str) -> None:
    try:
        url = urlsplit(proxy)
        fits = url.scheme == "http" and bool(url.hostname) and url.port != 0
    except ValueError:
        fits = False
    if not fits:
        scheme = proxy.partition("://")[0]
        what = f"{scheme} proxies are not supported: use an http:// one" if scheme in _PROXIES else "is not an address"
        at.bad(field, what)


_PROXIES: Final = ("https", "socks5", "socks5h")


def _environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    proxy = from_environment(server, environ)
    if proxy is not None:
        name = "HTTPS_PROXY" if server.startswith("https") else "HTTP_PROXY"
        _check_proxy(EntryLocation("", "", f"environment variable {name}"), "", proxy)
    return proxy


def _impersonation(of: EntryLocation, user: User) -> tuple[tuple[str, str], ...]:
    if not user.as_:
        if user.as_uid or user.as_groups or user.as_user_extra:
            of.bad("as", "is not set, although as-uid, as-groups or as-user-extra is")
        return ()
    headers = [("Impersonate-User", user.as_)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    for key, values in user.as_user_extra.items():
        escaped = _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), key.lower())
        headers += [(f"Impersonate-Extra-{escaped}", value) for value in values]
    for name, value in headers:
        if not _HEADER_VALUE.fullmatch(value):
            of.bad("as", f"{name} cannot be sent: only printable ASCII can")
    return tuple(headers)


# -- authorities and credentials ------------------------------------------------------------------------------------


def _context_for(at: EntryLocation, cluster: KubeconfigCluster) -> ssl.SSLContext:
    file, data = cluster.certificate_authority, cluster.certificate_authority_data
    if file and data:
        at.bad("certificate-authority", "and certificate-authority-data are both set: remove one")
    if cluster.insecure_skip_tls_verify:
        if file or data:
            at.bad("insecure-skip-tls-verify", "is set, and so is a certificate authority: remove one")
        return client_context(b"", verify=False, server_name=cluster.tls_server_name)
    given = _decoded(at, "certificate-authority-data", data)
    return _context_of(at, given, read=at.resolved(file) if file else "", server_name=cluster.tls_server_name)


def _context_of(at: EntryLocation, data: bytes = b"", *, read: str = "", server_name: str = "") -> ssl.SSLContext:
    field = ("certificate-authority" if read else "certificate-authority-data") if at.entry else ""
    try:
        return client_context(read_pem(read) if read else data, server_name=server_name)
    except OSError as error:
        at.bad(field, f"{read}: {error.strerror}")
    except (BadPemError, ValueError) as error:
        at.bad(field, f"{read}{': ' if read else ''}{error}")


def _check_user(of: EntryLocation, user: User) -> None:
    """Refuse what is set twice, by half, or no longer supported."""
    if user.auth_provider is not None:
        name = user.auth_provider.name
        of.bad("auth-provider", f'"{name}" is not supported: use a credential plugin (exec); for oidc, kubelogin')
    if user.token and (user.username or user.password):
        of.bad("token", "and username or password are both set: remove one")
    for one in ("client-certificate", "client-key"):
        name = one.replace("-", "_")
        if getattr(user, name) and getattr(user, f"{name}_data"):
            of.bad(one, f"and {one}-data are both set: remove one")
    has_certificate = bool(user.client_certificate or user.client_certificate_data)
    if has_certificate and not (user.client_key or user.client_key_data):
        of.bad("client-key", "or client-key-data must be set, for there is a client certificate")


def _credentials(
    at: EntryLocation, cluster: KubeconfigCluster, of: EntryLocation, user: User, found: _Found, tls: ssl.SSLContext
) -> Credentials:
    certified = bool(user.client_certificate or user.client_certificate_data)
    told = _told(of, user)
    if told is None and user.exec_ is not None:
        plugin = _plugin(at, cluster, of, user.exec_, found)
        told = None if certified else ExecCredentials(plugin, tls, environ=found.environ)
    credentials = told or ANONYMOUS
    certificate = of.resolved(user.client_certificate) if user.client_certificate else ""
    key = of.resolved(user.client_key) if user.client_key else ""
    data = Pair(b"", b"")
    if certified:
        data = Pair(
            _decoded(of, "client-certificate-data", user.client_certificate_data),
            _decoded(of, "client-key-data", user.client_key_data),
        )
        _show(of, tls, data, certificate, key)
    authority = at.resolved(cluster.certificate_authority) if cluster.certificate_authority else ""
    if not (certified and (certificate or key)) and not authority:
        return credentials
    files = TlsFiles(
        tls, time.monotonic, certificate=certificate, key=key if certified else "", authority=authority,
        certificate_data=data.certificate, key_data=data.key,
    )  # fmt: skip
    return WithFiles(credentials, files)


def _told(of: EntryLocation, user: User) -> Credentials | None:
    """A token or a password."""
    if user.token_file:
        path = of.resolved(user.token_file)
        if not user.token:
            _in_words(of, "tokenFile", lambda: bearer(_first_line(path)))
        return TokenFile(path, _in_words(of, "token", lambda: bearer(user.token) and user.token) if user.token else "")
    if user.token:
        return Fixed(_in_words(of, "token", lambda: bearer(user.token)))
    return Fixed(basic(user.username, user.password)) if user.username or user.password else None


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: holds no token") from None


def _in_words(of: EntryLocation, field: str, make: Callable[[], str]) -> str:
    try:
        return make()
    except ValueError as error:
        of.bad(field, str(error))


def _show(of: EntryLocation, tls: ssl.SSLContext, data: Pair, certificate: str, key: str) -> None:
    try:
        pair = Pair(
            data.certificate or _read_field(of, "client-certificate", certificate),
            data.key or _read_field(of, "client-key", key),
        )
        show(tls, pair)
    except BadPemError as error:
        of.bad("client-certificate" if certificate else "client-certificate-data", str(error))


def _read_field(of: EntryLocation, field: str, path: str) -> bytes:
    try:
        return read_pem(path)
    except OSError as error:
        of.bad(field, f"{path}: {error.strerror}")


def _decoded(at: EntryLocation, field: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        at.bad(field, "is not base64")


# -- exec plugins -----------------------------------------------------------------------------------------------------


def _plugin(at: EntryLocation, cluster: KubeconfigCluster, of: EntryLocation, exec_: Exec, found: _Found) -> Plugin:
    if not exec_.command:
        of.bad("exec.command", "is not set")
    if exec_.api_version not in API_VERSIONS:
        what = f'"{exec_.api_version}" is not supported: update the plugin and its entry, to {API_VERSIONS[0]}'
        of.bad("exec.apiVersion", what if exec_.api_version else f"is not set: set it to {API_VERSIONS[0]}")
    mode = exec_.interactive_mode or ("IfAvailable" if exec_.api_version != API_VERSIONS[0] else "")
    known = next((one for one in MODES if one == mode), None)
    if known is None:
        of.bad("exec.interactiveMode", f"must be one of {', '.join(MODES)}")
    if not all(one.name for one in exec_.env):
        of.bad("exec.env", "has a variable without a name")
    return Plugin(
        command=of.resolved(exec_.command) if os.sep in exec_.command else exec_.command,
        api_version=exec_.api_version,
        args=tuple(exec_.args),
        env=tuple((one.name, one.value) for one in exec_.env),
        install_hint=exec_.install_hint,
        interactive=known,
        cluster=_cluster_info(at, cluster) if exec_.provide_cluster_info else None,
        where=found.where,
    )


def _cluster_info(at: EntryLocation, cluster: KubeconfigCluster) -> dict[str, Any]:
    """What the plugin gets to know about the cluster, with the contents of authority files."""
    data = cluster.certificate_authority_data
    if cluster.certificate_authority:
        read = _read_field(at, "certificate-authority", at.resolved(cluster.certificate_authority))
        data = base64.b64encode(read).decode("ascii")
    config = next((one.extension for one in cluster.extensions if one.name == EXEC_EXTENSION), None)
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": data,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": config,
    }
    return {name: value for name, value in info.items() if value}
