"""Bootstrap tokens: `abcdef.0123456789abcdef`, with which nodes join.

They have the names of Kubernetes: a Secret `bootstrap-token-<id>` in kube-system, the user `system:bootstrap:<id>` and
the group `system:bootstrappers`. Our own Secrets have only a hash of the token; kubeadm's, with the token itself, are
accepted as well. Servers on one store share the tokens. An agent uses its token up; one for kubelets has the group
KUBELETS besides, and is valid until it expires, because a kubelet reads its certificate with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from situate.server.identity.ports import ObjectReader, resource_of, uid_of
from situate.server.requests import Caller, Object

PATTERN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
NAMESPACE: Final = "kube-system"
PREFIX: Final = "bootstrap-token-"
TYPE: Final = "bootstrap.kubernetes.io/token"
USER: Final = "system:bootstrap:"
GROUP: Final = "system:bootstrappers"
KUBELETS: Final = "system:bootstrappers:kubelet"
"""Who may ask for the certificate of a node with a CertificateSigningRequest."""
DEFAULT_LIFE: Final = timedelta(hours=1)
MAX_LIFE: Final = timedelta(days=7)
MAX_FAILURES: Final = 10
"""After this many wrong secrets for one token, the server refuses the token."""
MAX_COUNTED: Final = 10_000
"""How many tokens with failures a server remembers. Only existing tokens count, and administrators create those."""

SECRETS: Final = resource_of("v1", "secrets")
NEVER: Final = "9999-12-31T23:59:59Z"
"""The expiry of a token without one."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class BootstrapToken(NamedTuple):
    """The content of a token's Secret."""

    id: str
    sha256: str
    expires: datetime
    node: str
    """The only node that may join with it; empty: any new one."""
    uid: str
    groups: tuple[str, ...] = ()
    """Besides GROUP."""


def new_token() -> str:
    id_, secret = ("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (6, 16))
    return f"{id_}.{secret}"


def token_secret(token: str, expires: datetime, node: str = "", *, kubelet: bool = False) -> Object:
    """The Secret of a new token, for one agent or for kubelets."""
    data = {
        "token-id": token.partition(".")[0],
        "token-sha256": _hash(token),
        "expiration": f"{expires.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "usage-bootstrap-authentication": "true",
    }
    data |= {"node-name": node} if node else {}
    data |= {"auth-extra-groups": KUBELETS} if kubelet else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": PREFIX + data["token-id"], "namespace": NAMESPACE},
        "type": TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def read_token(secret: Object) -> BootstrapToken | None:
    """None if it is not the Secret of a token of ours."""
    if secret.get("type") != TYPE:
        return None
    data = _decoded(secret.get("data") or {})
    try:
        expires = datetime.fromisoformat(data.get("expiration", NEVER))
        found = BootstrapToken(
            data["token-id"],
            data.get("token-sha256") or _hash(f"{data['token-id']}.{data['token-secret']}"),
            expires if expires.tzinfo else expires.replace(tzinfo=UTC),
            data.get("node-name", ""),
            uid_of(secret),
            tuple(one for one in data.get("auth-extra-groups", "").split(",") if one.startswith(f"{GROUP}:")),
        )
    except (KeyError, ValueError):
        return None
    usable = data.get("usage-bootstrap-authentication") == "true"
    return found if usable and secret["metadata"]["name"] == PREFIX + found.id else None


class BootstrapTokens:
    """Authenticates nodes that join."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._failures: dict[str, int] = {}

    def find(self, token: str, now: datetime) -> Caller | None:
        """The caller, who may ask for the certificate of a node and do nothing else. Tokens without an expiry are
        valid until they are deleted, as in Kubernetes."""
        match = PATTERN.fullmatch(token)
        found = self.token(match[1]) if match is not None else None
        if found is None or found.expires <= now or self._failures.get(found.uid, 0) >= MAX_FAILURES:
            return None
        if not hmac.compare_digest(_hash(token), found.sha256):
            if len(self._failures) >= MAX_COUNTED:
                self._failures.pop(next(iter(self._failures)))
            self._failures[found.uid] = self._failures.get(found.uid, 0) + 1
            return None
        return Caller(USER + found.id, (GROUP, *found.groups, "system:authenticated"))

    def token(self, token_id: str) -> BootstrapToken | None:
        found = self._objects.get(SECRETS, NAMESPACE, PREFIX + token_id)
        return read_token(found.object(SECRETS)) if found is not None else None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _decoded(data: Mapping[str, str]) -> dict[str, str]:
    try:
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    except (binascii.Error, UnicodeDecodeError, TypeError, AttributeError):
        return {}
