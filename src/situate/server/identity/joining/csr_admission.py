"""Admission of CertificateSigningRequests: who asks is written by the server; approving and signing need rights.

As Kubernetes' plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction.
"""

from __future__ import annotations

from typing import Final

from cryptography.x509.oid import NameOID

from situate.server.errors import StatusError, forbidden
from situate.server.identity.authorization.attributes import Attributes, Authorizer
from situate.server.kinds.certificates.certificatesigningrequest import RequestError, parse_request
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

REQUESTS: Final = BY_KIND["certificates.k8s.io/v1", "CertificateSigningRequest"]
GROUP: Final = "certificates.k8s.io"
CLIENT: Final = "kubernetes.io/kube-apiserver-client"
MASTERS: Final = "system:masters"
_REFUSED: Final = "user not permitted to {verb} requests with signerName {signer}"
_MASTERS: Final = f"use of {CLIENT} signer with system:masters group is not allowed"


class CertificateRequestAdmission:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def version(self, target: Target) -> int | None:
        """Every request has its own requestor."""
        return None if target.resource is REQUESTS else 0

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.resource is not REQUESTS:
            return
        if action == "create":
            _sign_off(new, caller)
        elif old is not None and target.subresource == "approval":
            self._check("approve", target, old, caller)
        elif old is not None and target.subresource == "status" and _status_differs(new, old):
            self._check("sign", target, old, caller)

    def _check(self, verb: str, target: Target, obj: Object, caller: Caller) -> None:
        """The right is to this signer, or to all of its domain."""
        signer = obj["spec"].get("signerName", "")
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if self._authorizer.allows(caller, Attributes(verb, GROUP, "signers", name=name)).allowed:
                return
        raise forbidden(REQUESTS.plural, GROUP, target.name, _REFUSED.format(verb=verb, signer=f'"{signer}"'))


def _sign_off(obj: Object, caller: Caller) -> None:
    spec = obj.setdefault("spec", {})
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    spec["username"] = caller.name
    if caller.uid:
        spec["uid"] = caller.uid
    if caller.groups:
        spec["groups"] = list(caller.groups)
    if caller.extra:
        spec["extra"] = {key: list(values) for key, values in caller.extra.items()}
    if spec.get("signerName") != CLIENT:
        return
    try:
        subject = parse_request(str(spec.get("request") or "")).subject
    except RequestError:
        return  # validation says so
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if any(one.value == MASTERS for one in groups):
        raise _forbidden(obj)


def _forbidden(obj: Object) -> StatusError:
    return forbidden(REQUESTS.plural, GROUP, obj.get("metadata", {}).get("name", ""), _MASTERS)


def _status_differs(new: Object, old: Object) -> bool:
    return (new.get("status") or {}) != (old.get("status") or {})
