"""CertificateSigningRequest: somebody asks for a certificate, somebody else approves, and a signer signs it."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import subdomain
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object
from situate.server.tables.cells import NONE
from situate.server.tables.durations import human_duration

SHORTEST_S: Final = 600
APPROVAL: Final = ("Approved", "Denied")
FINAL: Final = (*APPROVAL, "Failed")
USAGES: Final = tuple(
    """any;cert sign;client auth;code signing;content commitment;crl sign;data encipherment;decipher only;
digital signature;email protection;encipher only;ipsec end system;ipsec tunnel;ipsec user;key agreement;
key encipherment;microsoft sgc;netscape sgc;ocsp signing;s/mime;server auth;signing;timestamping""".replace(
        "\n", ""
    ).split(";")
)
MAX_REQUEST: Final = 64 << 10
"""Characters of a request."""
_SIGNER: Final = "must be a fully qualified domain and path of the form 'example.com/signer-name'"


class RequestError(Exception):
    """What was sent is no request for a certificate; the message is one line."""


def parse_request(text: str) -> x509.CertificateSigningRequest:
    """The request in base64 of PEM, whose signature is valid. Raises RequestError."""
    try:
        found = x509.load_pem_x509_csr(base64.b64decode(text, validate=True))
        signed = found.is_signature_valid
        found.public_key()
    except (ValueError, TypeError, binascii.Error, InvalidSignature, UnsupportedAlgorithm):
        raise RequestError("PEM block type must be CERTIFICATE REQUEST") from None
    if not signed:
        raise RequestError("the signature is not valid")
    return found


def conditions(obj: Object, kinds: tuple[str, ...]) -> list[Mapping[str, Any]]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return [one for one in found if one.get("type") in kinds]


def _prepare_create(obj: Object) -> None:
    obj["status"] = {}


def _prepare_update(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]
    keep_status(new, old)


def _prepare_status(new: Object, old: Object) -> None:
    """Approval is as it was. Where the request adds or removes one, validation refuses it."""
    new["spec"] = old["spec"]
    for kind in APPROVAL:
        held, given = conditions(old, (kind,)), conditions(new, (kind,))
        if held and len(held) == len(given):
            kept = iter(held)
            status = new["status"]
            status["conditions"] = [next(kept) if one.get("type") == kind else one for one in status["conditions"]]


def _prepare_approval(new: Object, old: Object) -> None:
    """Only conditions may change, of all types."""
    new["spec"] = old["spec"]
    status = {name: value for name, value in (old.get("status") or {}).items() if name != "conditions"}
    given = (new.get("status") or {}).get("conditions")
    new["status"] = {**status, **({"conditions": given} if given else {})}


def _stamp(new: Object, old: Object | None, now: str) -> None:
    """A condition has changed when its status did."""
    held = ((old or {}).get("status") or {}).get("conditions") or ()
    before = {(one.get("type"), one.get("status")): one for one in held}
    for one in (new.get("status") or {}).get("conditions") or ():
        same = before.get((one.get("type"), one.get("status")), {})
        if not one.get("lastUpdateTime"):
            one["lastUpdateTime"] = now
        if not one.get("lastTransitionTime"):
            one["lastTransitionTime"] = same.get("lastTransitionTime") or now


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec") or {}
    request = spec.get("request") or ""
    try:
        if len(request) > MAX_REQUEST:
            raise RequestError(f"may not have more than {MAX_REQUEST} characters")
        parse_request(request)
    except RequestError as error:
        causes.invalid("spec.request", request[:100], str(error))
    usages = spec.get("usages") or ()
    if not usages:
        causes.required("spec.usages")
    seen: set[str] = set()
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            causes.not_supported(f"spec.usages[{index}]", usage, USAGES)
        causes.unique(usage, seen, f"spec.usages[{index}]")
    _signer(spec.get("signerName", ""), causes)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < SHORTEST_S:
        text = f"may not specify a duration less than {SHORTEST_S} seconds (10 minutes)"
        causes.invalid("spec.expirationSeconds", seconds, text)
    _conditions(obj, causes)


def _signer(name: str, causes: Causes) -> None:
    domain, _, path = name.partition("/")
    if not name:
        causes.required("spec.signerName")
    elif name == "kubernetes.io/legacy-unknown":
        causes.invalid("spec.signerName", name, "the legacy signerName is not allowed via this API version")
    elif subdomain(domain) or "." not in domain or not path or subdomain(path):
        causes.invalid("spec.signerName", name, _SIGNER)


def _conditions(obj: Object, causes: Causes) -> None:
    seen: set[str] = set()
    for index, one in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind, status = f"status.conditions[{index}]", one.get("type", ""), one.get("status", "")
        causes.require(kind, f"{path}.type")
        supported = ("True",) if kind in FINAL else ("False", "True", "Unknown")
        if not status:
            causes.required(f"{path}.status")
        elif status not in supported:
            causes.not_supported(f"{path}.status", status, supported)
        if kind in APPROVAL and seen & set(APPROVAL) - {kind}:
            causes.invalid("status.conditions", kind, "Approved and Denied conditions are mutually exclusive")
        causes.unique(kind, seen, f"{path}.type")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _validate(new, causes)
    for kind in FINAL:
        if len(conditions(new, (kind,))) < len(conditions(old, (kind,))):
            causes.forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
    was, given = ((one.get("status") or {}).get("certificate") or "" for one in (old, new))
    if was and was != given:
        causes.forbidden("status.certificate", "updates may not modify existing certificate content")


def _validate_status(new: Object, old: Object, causes: Causes) -> None:
    _validate_update(new, old, causes)
    for kind in APPROVAL:
        if len(conditions(new, (kind,))) > len(conditions(old, (kind,))):
            causes.forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')


def _condition(obj: Object) -> str:
    kinds = {one.get("type") for one in (obj.get("status") or {}).get("conditions") or ()}
    text = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    if "Failed" in kinds:
        text += ",Failed"
    return text + (",Issued" if (obj.get("status") or {}).get("certificate") else "")


def _duration(obj: Object) -> str:
    seconds = obj["spec"].get("expirationSeconds")
    return NONE if seconds is None else human_duration(seconds * 1_000)


KIND: Final = Kind(
    "certificates.k8s.io/v1 certificatesigningrequests CertificateSigningRequest C csr - | approval status",
    strategy=Strategy(
        stamp=_stamp,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=_prepare_status,
        prepare_approval=_prepare_approval,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        selectable=lambda obj: {"spec.signerName": (obj.get("spec") or {}).get("signerName", "")},
    ),
    columns="Name!, Age, SignerName = spec.signerName||<none>, Requestor = spec.username, RequestedDuration, Condition",
    cells={"RequestedDuration": _duration, "Condition": _condition},
    description="CertificateSigningRequest asks a signer for a certificate, which somebody has to approve.",
)
