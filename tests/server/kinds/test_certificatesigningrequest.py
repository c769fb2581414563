"""Who may change what of a CertificateSigningRequest's status."""

import copy
from base64 import b64encode
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from server.kinds.checking import found_by
from server.kinds.group_writes import strategy_of
from situate.server.objects import Object
from situate.server.resources import BY_KIND

STRATEGY = strategy_of(BY_KIND["certificates.k8s.io/v1", "CertificateSigningRequest"])
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def request_() -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jane")])
    made = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def condition(kind: str, **more: Any) -> Object:
    return {"type": kind, "status": "True", "reason": "r", "lastUpdateTime": NOW, "lastTransitionTime": NOW, **more}


def asked(request: str, *conditions: Object, **status: Any) -> Object:
    spec = {"request": request, "signerName": "example.com/s", "usages": ["server auth"]}
    api = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    listed = {"conditions": list(conditions)} if conditions else {}
    return {**api, "metadata": {"name": "r", "uid": "u"}, "spec": spec, "status": {**status, **listed}}


def approved(old: Object, *conditions: Object) -> Object:
    new = copy.deepcopy(old)
    new["status"] = {"conditions": list(conditions), "certificate": "bm90IHlvdXJz"}
    STRATEGY.prepare_approval(new, old)
    return new


def types(obj: Object) -> list[str]:
    return [one["type"] for one in obj["status"].get("conditions", ())]


def test_an_approval_may_come_with_conditions_of_other_types(request_: str) -> None:
    old = asked(request_)
    first = approved(old, condition("Checked"))
    assert types(first) == ["Checked"]
    second = approved(first, condition("Checked"), condition("Approved"))
    assert types(second) == ["Checked", "Approved"]
    assert found_by(STRATEGY.validate_update, second, first) == []


def test_a_condition_has_the_time_at_which_its_status_changed() -> None:
    bare = {"type": "Approved", "status": "True"}
    first: Object = {"status": {"conditions": [dict(bare)]}}
    STRATEGY.stamp(first, {}, NOW)
    assert first["status"]["conditions"] == [{**bare, "lastUpdateTime": NOW, "lastTransitionTime": NOW}]
    later: Object = {"status": {"conditions": [dict(bare)]}}
    STRATEGY.stamp(later, first, "2026-01-02T00:00:00Z")
    times = {"lastUpdateTime": "2026-01-02T00:00:00Z", "lastTransitionTime": NOW}
    assert later["status"]["conditions"] == [{**bare, **times}]


def test_an_approval_does_not_set_the_certificate(request_: str) -> None:
    assert "certificate" not in approved(asked(request_), condition("Approved"))["status"]
    kept = approved(asked(request_, certificate="c2lnbmVk"), condition("Approved"))
    assert kept["status"]["certificate"] == "c2lnbmVk"


def test_a_status_keeps_approval_where_it_stands(request_: str) -> None:
    old = asked(request_, condition("Checked"), condition("Approved", message="by jane"))
    new = asked(request_, condition("Checked"), condition("Approved", message="forged"), condition("Logged"))
    STRATEGY.prepare_status(new, old)
    assert types(new) == ["Checked", "Approved", "Logged"]
    assert new["status"]["conditions"][1]["message"] == "by jane"
    assert found_by(STRATEGY.validate_status, new, old) == []


@pytest.mark.parametrize("kind", ["Approved", "Denied"])
def test_a_status_neither_approves_nor_denies(request_: str, kind: str) -> None:
    old, new = asked(request_), asked(request_, condition(kind))
    STRATEGY.prepare_status(new, old)
    causes = found_by(STRATEGY.validate_status, new, old)
    assert [one.message for one in causes] == [f'Forbidden: updates may not add a condition of type "{kind}"']


def test_a_status_does_not_take_approval_back(request_: str) -> None:
    old, new = asked(request_, condition("Approved")), asked(request_)
    STRATEGY.prepare_status(new, old)
    causes = found_by(STRATEGY.validate_status, new, old)
    assert [one.message for one in causes] == ['Forbidden: updates may not remove a condition of type "Approved"']
