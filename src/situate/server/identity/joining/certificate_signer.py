"""Approves and signs CertificateSigningRequests of kubelets, signs those of people once approved, and removes old ones.

What is approved without a person:

- `kubernetes.io/kube-apiserver-client-kubelet`: the client certificate of a node, as in Kubernetes: for a requestor
  with the right to create `certificatesigningrequests/nodeclient` (a bootstrap token), or `/selfnodeclient` and the
  same name (a node that renews its own). Unlike Kubernetes, a token takes no name of a Node that exists, unless it was
  made for that name.
- `kubernetes.io/kubelet-serving`: the certificate of a node's own port, if the node itself asks, and only for names and
  addresses that its Node has.

`kubernetes.io/kube-apiserver-client` waits for somebody with the right to approve. Other signers are not ours.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from situate.loop.logs import Log
from situate.server.aggregation.connector import CLIENT_NAME as FRONT_PROXY
from situate.server.errors import StatusError
from situate.server.identity.authorization.attributes import Attributes, Authorizer
from situate.server.identity.authorization.node_authorizer import NODES as NODE_GROUP
from situate.server.identity.authorization.node_authorizer import USER as NODE_USER
from situate.server.identity.joining.bootstrap_tokens import USER as TOKEN_USER
from situate.server.identity.joining.bootstrap_tokens import BootstrapTokens
from situate.server.identity.joining.csr_admission import CLIENT, GROUP, REQUESTS
from situate.server.identity.pki.authority import Authority
from situate.server.identity.pki.certificates import LEAF_LIFE, alternative_names, pem, requested_certificate
from situate.server.identity.ports import resource_of
from situate.server.kinds.certificates.certificatesigningrequest import (
    APPROVAL,
    FINAL,
    RequestError,
    conditions,
    parse_request,
)
from situate.server.kubelet.connector import CLIENT_NAME as KUBELET_CALLER
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Caller, DeleteOptions, Object, Target, WatchOptions
from situate.store.errors import StoreError

KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
SIGNERS: Final = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)
NODES: Final = resource_of("v1", "nodes")
RETRY_S: Final = 1.0
"""How often requests that wait are looked at again: a Node may have its addresses by then."""
KEPT_S: Final = 3_600
"""How long a request that is done is kept."""
PENDING_S: Final = 24 * 3_600
RSA_BITS: Final = 2_048
MESSAGES: Final = {
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "serving": "Auto approving kubelet serving certificate: the node has these names and addresses.",
}
EXISTS: Final = "node {0} exists: a token made for it (situate token create --name {0}) can replace its certificate"
RESERVED: Final = {
    FRONT_PROXY: "aggregated APIs, which believe it whatever user it names",
    KUBELET_CALLER: "kubelets and agents, which run any command in any pod for it",
}
"""Common names that nobody gets, as this server has them itself: to whom it shows them, and what they give."""
_CLIENT_USAGES: Final = ({"digital signature", "client auth"}, {"digital signature", "key encipherment", "client auth"})
_SERVING_USAGES: Final = (
    {"digital signature", "server auth"},
    {"digital signature", "key encipherment", "server auth"},
)
_WATCH: Final = WatchOptions(bookmarks=True)

_log = Log(__name__)


class CertificateSigner:
    """`run` it until cancelled. Several servers on one store may: the first write wins, and the others see it."""

    def __init__(
        self, registry: Registry, authority: Authority, authorizer: Authorizer, clock: Callable[[], datetime]
    ) -> None:
        self._registry = registry
        self._authority = authority
        self._authorizer = authorizer
        self._clock = clock
        self._tokens = BootstrapTokens(registry.cache)
        self._told: dict[str, str] = {}
        """Why a request waits, by uid, so that it is logged once."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            woken = asyncio.Event()
            group.create_task(self._watch(woken))
            while True:
                woken.clear()  # before the look: what changes during it has to be looked at again
                await self.look()
                try:
                    async with asyncio.timeout(RETRY_S if self._told else None):
                        await woken.wait()
                except TimeoutError:
                    continue

    async def _watch(self, woken: asyncio.Event) -> None:
        while True:
            try:
                async with aclosing(await self._registry.watch(Target(REQUESTS), _WATCH)) as events:
                    async for _ in events:
                        woken.set()
            except StatusError as error:
                _log.warning("Cannot watch certificate signing requests; trying again", err=error.message)
            await asyncio.sleep(RETRY_S)

    async def look(self) -> None:
        """Look at all requests once. One that fails does not hold up the others."""
        seen: dict[str, None] = {}
        for held in list(self._registry.cache.all(REQUESTS)):
            obj = held.object(REQUESTS)
            seen[obj["metadata"]["uid"]] = None
            try:
                await self._handle(obj)
            except (StatusError, StoreError, RequestError) as error:
                self._wait(obj, str(error))
        self._told = {uid: why for uid, why in self._told.items() if uid in seen}

    async def _handle(self, obj: Object) -> None:
        signer = obj["spec"].get("signerName", "")
        if self._is_old(obj):
            await self._registry.delete(_target(obj), SYSTEM, DeleteOptions(uid=obj["metadata"]["uid"]))
        elif signer not in SIGNERS or (obj.get("status") or {}).get("certificate") or conditions(obj, FINAL[1:]):
            self._told.pop(obj["metadata"]["uid"], None)
        elif conditions(obj, ("Approved",)):
            await self._sign(obj)
        elif signer != CLIENT:
            message, why = self.judge(obj)
            if message:
                await self._write(
                    obj, "approval", {"conditions": [self._condition("Approved", "AutoApproved", message)]}
                )
            else:
                self._wait(obj, why)

    # -- approving ---------------------------------------------------------------------------------------------------

    def judge(self, obj: Object) -> tuple[str, str]:
        """The message of an approval, or why there is none. Raises RequestError."""
        spec = obj["spec"]
        request = parse_request(spec["request"])
        node = _node_of(request)
        caller = Caller(spec.get("username", ""), tuple(spec.get("groups") or ()))
        if not node:
            return "", "its subject is not that of a node: O=system:nodes, CN=system:node:NAME"
        if spec["signerName"] == KUBELET_SERVING:
            return self._judge_serving(spec, request, node, caller)
        if set(spec.get("usages") or ()) not in _CLIENT_USAGES or list(alternative_names(request)):
            return "", "its usages or names are not those of a kubelet's client certificate"
        own = caller.name == NODE_USER + node
        for kind in (("selfnodeclient",) if own else ()) + ("nodeclient",):
            asked = Attributes("create", GROUP, REQUESTS.plural, kind)
            if self._authorizer.allows(caller, asked).allowed:
                taken = "" if own else self._is_taken(node, caller)
                return ("", taken) if taken else (MESSAGES[kind], "")
        return "", f"{caller.name} has no right to it"

    def _is_taken(self, node: str, caller: Caller) -> str:
        """Why a token may not have the certificate of this node; "": it may."""
        token = self._tokens.token(caller.name.removeprefix(TOKEN_USER)) if caller.name.startswith(TOKEN_USER) else None
        if token is None:
            return ""
        if token.node:
            return "" if token.node == node else f"the token is for node {token.node}"
        return EXISTS.format(node) if self._registry.cache.get(NODES, "", node) is not None else ""

    def _judge_serving(
        self, spec: Mapping[str, Any], request: x509.CertificateSigningRequest, node: str, caller: Caller
    ) -> tuple[str, str]:
        if caller.name != NODE_USER + node or NODE_GROUP not in caller.groups:
            return "", f"{caller.name} is not node {node}"
        if set(spec.get("usages") or ()) not in _SERVING_USAGES:
            return "", "its usages are not those of a kubelet's serving certificate"
        held = self._registry.cache.get(NODES, "", node)
        if held is None:
            return "", f"there is no node {node} yet"
        known = {one.get("address", "") for one in held.object(NODES).get("status", {}).get("addresses", ())}
        asked = list(alternative_names(request))
        plain = all(isinstance(one, x509.DNSName | x509.IPAddress) for one in asked)
        strange = [str(one.value) for one in asked if str(one.value) not in known]
        if not asked or not plain or strange:
            return "", f"node {node} does not have {', '.join(strange) or 'such names'}"
        return MESSAGES["serving"], ""

    # -- signing -----------------------------------------------------------------------------------------------------

    async def _sign(self, obj: Object) -> None:
        spec, now = obj["spec"], self._clock()
        request, serving = parse_request(spec["request"]), spec["signerName"] == KUBELET_SERVING
        problem = _problem(spec, request, serving=serving)
        if problem:
            failed = self._condition("Failed", "SignerValidationFailure", problem)
            kept = (obj.get("status") or {}).get("conditions") or []
            await self._write(obj, "status", {"conditions": [*kept, failed]})
            return
        life = min(timedelta(seconds=spec.get("expirationSeconds") or LEAF_LIFE.total_seconds()), LEAF_LIFE)
        issuer = self._authority.for_servers(now) if serving else (self._authority.certificate, self._authority.key)
        made = requested_certificate(*issuer, request, now, life, serving=serving)
        status = {**(obj.get("status") or {}), "certificate": base64.b64encode(pem(made)).decode()}
        await self._write(obj, "status", status)
        self._told.pop(obj["metadata"]["uid"], None)
        _log.info("Signed a certificate", name=obj["metadata"]["name"], signer=spec["signerName"])

    async def _write(self, obj: Object, subresource: str, status: Object) -> None:
        await self._registry.update(_target(obj, subresource), {**obj, "status": status}, SYSTEM)

    def _condition(self, kind: str, reason: str, message: str) -> Object:
        now = f"{self._clock():%Y-%m-%dT%H:%M:%SZ}"
        times = {"lastUpdateTime": now, "lastTransitionTime": now}
        return {"type": kind, "status": "True", "reason": reason, "message": message, **times}

    def _is_old(self, obj: Object) -> bool:
        created = datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
        done = (obj.get("status") or {}).get("certificate") or conditions(obj, APPROVAL[1:])
        return self._clock() - created > timedelta(seconds=KEPT_S if done else PENDING_S)

    def _wait(self, obj: Object, why: str) -> None:
        uid = obj["metadata"]["uid"]
        if self._told.get(uid) != why:
            self._told[uid] = why
            _log.info("A certificate signing request waits", name=obj["metadata"]["name"], why=why)


def _target(obj: Object, subresource: str = "") -> Target:
    return Target(REQUESTS, "", obj["metadata"]["name"], subresource)


def _node_of(request: x509.CertificateSigningRequest) -> str:
    """The node whose name is the subject of a request; "": it is no node's."""
    names = [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if groups != [NODE_GROUP] or len(names) != 1 or not names[0].startswith(NODE_USER):
        return ""
    return names[0].removeprefix(NODE_USER)


def _problem(spec: Mapping[str, Any], request: x509.CertificateSigningRequest, *, serving: bool) -> str:
    """Why an approved request is not signed."""
    key = request.public_key()
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        return "the key must be RSA, ECDSA or Ed25519"
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < RSA_BITS:
        return f"an RSA key must have at least {RSA_BITS} bits"
    names = [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    for name in names:
        if name in RESERVED:
            return f"{name} is this server's own name to {RESERVED[name]}"
    usages = set(spec.get("usages") or ())
    purpose = "server auth" if serving else "client auth"
    if purpose not in usages or usages - {purpose, "digital signature", "key encipherment"}:
        return f"usages must be {purpose}, digital signature and, for RSA, key encipherment"
    return ""
