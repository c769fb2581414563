"""The credentials of a person, and what they may read. The API server decides; we only ask it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from situate.kube.access import Access, Fixed
from situate.kube.client import Client
from situate.kube.credentials import bearer
from situate.kube.delegated import review
from situate.kube.errors import ApiError
from situate.web.logins import Person

SUBJECT_REVIEW: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ONE: Final = {"limit": "1"}
"""One object is enough to find out."""


def access_of(own: Access, person: Person) -> Access:
    """How this person reaches the API server. Raises ValueError for a token that is none."""
    namespace = person.namespace or own.namespace
    if person.token:
        return Access(
            own.server,
            where="a token given to the page",
            tls=_without_certificate(own.tls),
            credentials=Fixed(bearer(person.token)),
            namespace=namespace,
            proxy=own.proxy,
        )
    if not person.user:
        return replace(own, namespace=namespace)
    headers = (("Impersonate-User", person.user), *(("Impersonate-Group", group) for group in person.groups))
    return replace(own, namespace=namespace, headers=headers)


def _without_certificate(tls: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """Trust the same authorities, and present nobody's certificate: it would count for more than the token."""
    if tls is None:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.check_hostname = tls.check_hostname
    made.verify_mode = tls.verify_mode
    for authority in tls.get_ca_certs(binary_form=True):
        made.load_verify_locations(cadata=authority)
    return made


async def user_name(client: Client) -> str:
    """What the API server calls us; empty if it does not tell. Raises ApiError if it does not know us."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        status = await review(client, SUBJECT_REVIEW, body)
    except ApiError as error:
        if error.forbidden or error.not_found:
            return ""
        raise
    info = status.get("userInfo")
    return str(info.get("username") or "") if isinstance(info, dict) else ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a person may see."""

    namespace: str
    """Empty: all namespaces."""
    nodes: bool
    why_not_all: str = ""
    """Why not all namespaces, in the API server's words."""
    why_no_nodes: str = ""

    @property
    def whole(self) -> bool:
        """Whether the sums on each node can be trusted."""
        return self.nodes and not self.namespace


async def find_scope(client: Client) -> Scope:
    """What the API server lets us list. Raises ApiError if that is nothing, or if it does not respond."""
    why_no_nodes = await _why_not(client, "/api/v1/nodes")
    why_not_all = await _why_not(client, "/api/v1/pods")
    if not why_not_all:
        return Scope("", not why_no_nodes, "", why_no_nodes)
    namespace = client.access.namespace or "default"
    await client.request("GET", f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", params=ONE)
    return Scope(namespace, not why_no_nodes, why_not_all, why_no_nodes)


async def _why_not(client: Client, path: str) -> str:
    """Why we may not list this, in the API server's words; empty if we may."""
    try:
        await client.request("GET", path, params=ONE)
    except ApiError as error:
        if error.forbidden:
            return error.message
        raise
    return ""
