"""What a pod and a volume refer to: each place where a name can stand, and those that a mirror pod must not have."""

from typing import Any

import pytest

from situate.server.identity.authorization.node_references import (
    Reference,
    forbidden_to_mirrors,
    of_pod,
    secrets_of_volume,
)
from situate.server.requests import Object


def pod(status: Object | None = None, annotations: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": "web", "namespace": "shop", "annotations": annotations}
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def volume(**source: Any) -> Object:
    return pod(volumes=[{"name": "v", **source}])


def found(made: Object) -> list[tuple[str, str]]:
    assert {one.namespace for one in of_pod(made)} <= {"shop"}
    return sorted((one.resource, one.name) for one in of_pod(made))


@pytest.mark.parametrize(
    "made, expected",
    [
        (pod(), []),
        (pod(serviceAccountName="robot"), [("serviceaccounts", "robot")]),
        (pod(imagePullSecrets=[{"name": "s"}, {}]), [("secrets", "s")]),
        (volume(secret={"secretName": "s"}), [("secrets", "s")]),
        (volume(azureFile={"secretName": "s"}), [("secrets", "s")]),
        (volume(csi={"nodePublishSecretRef": {"name": "s"}}), [("secrets", "s")]),
        (volume(cephfs={"secretRef": {"name": "s"}}), [("secrets", "s")]),
        (volume(iscsi={}), []),
        (volume(emptyDir={"secretRef": {"name": "s"}}), []),
        (volume(projected={"sources": [{"secret": {"name": "s"}}, {}]}), [("secrets", "s")]),
        (volume(projected={"sources": [{"configMap": {"name": "c"}}]}), [("configmaps", "c")]),
        (volume(projected={}), []),
        (volume(configMap={"name": "c"}), [("configmaps", "c")]),
        (volume(persistentVolumeClaim={"claimName": "p"}), [("persistentvolumeclaims", "p")]),
        (volume(ephemeral={}), [("persistentvolumeclaims", "web-v")]),
        (pod(resourceClaims=[{"name": "r", "resourceClaimName": "d"}]), [("resourceclaims", "d")]),
        (pod(resourceClaims=[{"name": "r"}]), []),
        (
            pod(
                {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "made"}]}, resourceClaims=[{"name": "r"}]
            ),
            [("resourceclaims", "made")],
        ),
        (
            pod(
                {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "made"}]},
                resourceClaims=[{"name": "r", "resourceClaimName": "own"}],
            ),
            [("resourceclaims", "own")],
        ),
        (pod({"extendedResourceClaimStatus": {"resourceClaimName": "x"}}), [("resourceclaims", "x")]),
    ],
)
def test_a_pod_refers_to(made: Object, expected: list[tuple[str, str]]) -> None:
    assert found(made) == expected


@pytest.mark.parametrize("containers", ["initContainers", "containers", "ephemeralContainers"])
def test_a_container_refers_to_what_its_environment_comes_from(containers: str) -> None:
    whole = [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}]
    single: list[Object] = [
        {"name": "A", "value": "x"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s2"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c2"}}},
    ]
    spec: Object = {containers: [{"name": "a", "envFrom": whole}, {"name": "b", "env": single}]}
    assert found(pod(**spec)) == [("configmaps", "c1"), ("configmaps", "c2"), ("secrets", "s1"), ("secrets", "s2")]


def test_a_mirror_pod_adds_nothing() -> None:
    assert of_pod(pod(annotations={"kubernetes.io/config.mirror": "x"}, serviceAccountName="robot")) == frozenset()
    assert of_pod(pod(annotations={"other": "x"}, serviceAccountName="robot"))


@pytest.mark.parametrize(
    "source, expected",
    [
        ({"csi": {"nodePublishSecretRef": {"name": "s", "namespace": "own"}}}, [("own", "s")]),
        ({"csi": {"nodePublishSecretRef": {"name": "s"}}}, [("shop", "s")]),
        ({"csi": {"nodePublishSecretRef": {}, "nodeStageSecretRef": {"name": "t"}}}, [("shop", "t")]),
        ({"csi": {"nodePublishSecretRef": "text", "driver": {"name": "d"}}}, []),
        ({"azureFile": {"secretName": "s", "secretNamespace": "own"}}, [("own", "s")]),
        ({"azureFile": {"secretName": "s"}}, [("shop", "s")]),
        ({"capacity": {"storage": "1Gi"}, "volumeMode": "Block", "nfs": {"path": "/"}}, []),
        ({"volumeMode": "Block", "rbd": {"secretRef": {"name": "s"}}}, [("shop", "s")]),
    ],
)
def test_a_volume_is_mounted_with_its_secrets(source: Object, expected: list[tuple[str, str]]) -> None:
    made = secrets_of_volume({"spec": source}, "shop")
    assert list(made) == [Reference("secrets", namespace, name) for namespace, name in expected]
    assert list(secrets_of_volume({}, "shop")) == []


@pytest.mark.parametrize(
    "made, kind",
    [
        (pod(), ""),
        (volume(emptyDir={}), ""),
        (volume(hostPath={"path": "/"}), ""),
        (pod(serviceAccountName="robot"), "serviceaccounts"),
        (pod(imagePullSecrets=[{"name": "s"}]), "secrets"),
        (pod(containers=[{"envFrom": [{"configMapRef": {"name": "c"}}]}]), "configmaps"),
        (pod(resourceClaims=[{"name": "r"}]), "resourceclaims"),
        (volume(secret={}), "secrets (via secret volumes)"),
        (volume(configMap={}), "configmaps (via configmap volumes)"),
        (volume(csi={}), "csidrivers (via CSI volumes)"),
        (volume(glusterfs={}), "endpoints (via glusterFS volumes)"),
        (volume(persistentVolumeClaim={}), "persistentvolumeclaims"),
        (volume(ephemeral={}), "persistentvolumeclaims (via ephemeral volumes)"),
        (volume(azureFile={}), "secrets (via azureFile volumes)"),
        (volume(projected={}), ""),
        (volume(projected={"sources": [{"downwardAPI": {}}]}), ""),
        (volume(projected={"sources": [{"downwardAPI": {}}, {"secret": {}}]}), "secrets (via projected volumes)"),
        (volume(projected={"sources": [{"configMap": {}}]}), "configmaps (via projected volumes)"),
        (volume(projected={"sources": [{"serviceAccountToken": {}}]}), "serviceaccounts (via projected volumes)"),
        (volume(projected={"sources": [{"clusterTrustBundle": {}}]}), "clustertrustbundles"),
        (volume(emptyDir={"sources": [{"secret": {}}]}), ""),
    ],
)
def test_a_mirror_pod_must_not_refer_to(made: Object, kind: str) -> None:
    assert forbidden_to_mirrors(made) == kind
