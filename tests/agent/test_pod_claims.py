"""A pod starts when its claims are reserved for it, and says why not in the kubelet's words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from situate.agent.pod_claims import UnpreparedError, check_claims

OWN = {"uid": "p1", "controller": True, "kind": "Pod", "name": "p"}


def claim(*, owners: tuple[dict[str, Any], ...] = (), reserved: str = "p1") -> dict[str, Any]:
    status = {"reservedFor": [{"resource": "pods", "name": "p", "uid": reserved}]} if reserved else {}
    return {"metadata": {"name": "c", "uid": "c1", "ownerReferences": list(owners)}, "status": status}


def refused(entry: dict[str, Any], status: dict[str, Any], held: dict[str, Any] | None) -> str:
    class Reader:
        async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            return held if (kind, namespace, name) == ("ResourceClaim", "ns", "c") else None

    meta = {"namespace": "ns", "name": "p", "uid": "p1"}
    claims = [{"name": "gpu", **entry}] if entry else []
    try:
        asyncio.run(check_claims({"metadata": meta, "spec": {"resourceClaims": claims}, "status": status}, Reader()))
    except UnpreparedError as error:
        return str(error)
    return ""


BY_NAME, BY_TEMPLATE = {"resourceClaimName": "c"}, {"resourceClaimTemplateName": "t"}
MADE = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
NOT_ALLOWED = "pod p (p1) is not allowed to use ResourceClaim c (c1)"


@pytest.mark.parametrize(
    "entry, status, held, expected",
    [
        pytest.param(BY_NAME, {}, claim(), "", id="a named claim that is reserved"),
        pytest.param(BY_TEMPLATE, MADE, claim(owners=(OWN,)), "", id="a generated claim that is reserved"),
        pytest.param(
            {}, {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}, claim(), "", id="an extended one"
        ),
        pytest.param(BY_TEMPLATE, {"resourceClaimStatuses": [{"name": "gpu"}]}, None, "", id="none needed"),
        pytest.param(BY_NAME, {}, claim(reserved="other"), NOT_ALLOWED, id="reserved for another"),
        pytest.param(BY_NAME, {}, claim(reserved=""), NOT_ALLOWED, id="not allocated"),
        pytest.param(BY_TEMPLATE, {}, claim(), 'pod "ns/p": ResourceClaim not created yet', id="not made yet"),
        pytest.param(
            BY_TEMPLATE,
            MADE,
            claim(),
            "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)",
            id="somebody else's",
        ),
        pytest.param(
            BY_NAME,
            {},
            None,
            'fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found',
            id="no such claim",
        ),
    ],
)
def test_whether_a_pod_may_use_its_claims(
    entry: dict[str, Any], status: dict[str, Any], held: dict[str, Any] | None, expected: str
) -> None:
    assert refused(entry, status, held) == expected
