"""Writes the administrator's kubeconfig, a file of the server's own. It never overwrites another kubeconfig."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography import x509

from situate.server.identity.pki.authority import Authority
from situate.server.identity.pki.certificates import Credential, due
from situate.server.identity.secret_files import IdentityError, read_private, write_private

NAME: Final = "situate"


def ensure_kubeconfig(
    path: Path, authority: Authority, url: str, user: str, groups: Iterable[str], now: datetime, context: str = NAME
) -> bool:
    """Write it if it is missing, for another server or authority, or expires soon. Returns whether it was written."""
    if path.exists() and _is_good(path, authority, url, now, context):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    text = kubeconfig(url, authority.bundle, authority.client(user, groups, now), context=context)
    write_private(path, text.encode())
    return True


def kubeconfig(url: str, ca: bytes, credential: Credential, *, context: str = NAME) -> str:
    certificate, key = _encoded(credential.certificate), _encoded(credential.key)
    return kubeconfig_text(
        {"server": url, "certificate-authority-data": _encoded(ca)},
        {"client-certificate-data": certificate, "client-key-data": key},
        user=context,
        context=context,
    )


def kubeconfig_text(
    cluster: Mapping[str, str],
    credentials: Mapping[str, str],
    user: str = NAME,
    namespace: str = "",
    *,
    context: str = NAME,
) -> str:
    """The cluster, its context and the context's user; the cluster has the name of the context."""
    binding = {"cluster": context, "user": user} | ({"namespace": namespace} if namespace else {})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": dict(cluster)}],
        "contexts": [{"name": context, "context": binding}],
        "current-context": context,
        "users": [{"name": user, "user": dict(credentials)}],
    }
    return yaml.safe_dump(content, sort_keys=False)


def cluster_info(ca: str) -> str:
    """A kubeconfig with the cluster's authority, but no user and no address: its reader already knows the address."""
    cluster = {"name": "", "cluster": {"server": "", "certificate-authority-data": _encoded(ca.encode())}}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "clusters": [cluster]}, sort_keys=False)


def _encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _is_good(path: Path, authority: Authority, url: str, now: datetime, context: str) -> bool:
    try:
        content: Any = yaml.safe_load(read_private(path))
    except yaml.YAMLError as error:
        raise IdentityError(f"{path} is damaged: it is not YAML; move it away") from error
    try:
        names = [one["name"] for one in content["clusters"]]
        if len(names) != 1 or not names[0].startswith(NAME):
            raise IdentityError(f"{path} is the kubeconfig of another cluster; move it away")
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        certificate = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
        same = cluster["certificate-authority-data"] == _encoded(authority.bundle)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise IdentityError(f"{path} is damaged: the server did not write it; move it away") from error
    return same and names == [context] and cluster.get("server") == url and not due(certificate, now)
