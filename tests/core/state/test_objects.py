"""Objects by name: each kind is put, changed and forgotten under its own key, and moves its own family's version."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.group import PodGroup
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import Namespace, PodDisruptionBudget
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSpec,
)
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from situate.core.state.objects import ObjectTable


def versions(table: ObjectTable) -> dict[str, int]:
    return {
        "storage": table.storage.version,
        "workloads": table.workloads.version,
        "namespaces": table.namespaces_version,
    }


KINDS: dict[type[Any], tuple[str | None, bool]] = {
    Namespace: ("namespaces", False),
    PodDisruptionBudget: (None, True),
    PodGroup: (None, True),
    **{one.model: (None, True) for one in CUSTOM_GROUP_KINDS},
    Service: ("workloads", True),
    ReplicationController: ("workloads", True),
    ReplicaSet: ("workloads", True),
    StatefulSet: ("workloads", True),
    PersistentVolumeClaim: ("storage", True),
    PersistentVolume: ("storage", False),
    StorageClass: ("storage", False),
    CSINode: ("storage", False),
    CSIDriver: ("storage", False),
    CSIStorageCapacity: ("storage", True),
    VolumeAttachment: ("storage", False),
}
"""Kind -> the family whose version it moves, and whether it is told apart by namespace too."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_object_comes_changes_and_goes(kind: type[Any]) -> None:
    family, namespaced = KINDS[kind]
    table = ObjectTable()

    def made(name: str, namespace: str = "here", **labels: str) -> Any:
        return kind(metadata=ObjectMeta(name=name, namespace=namespace if namespaced else "", labels=labels))

    def moves(change: Any, item: Any) -> list[str]:
        before = versions(table)
        assert change(item) is True
        return [name for name, version in versions(table).items() if version != before[name]]

    expected = [] if family is None else [family]
    assert moves(table.put, made("one")) == expected
    assert (table.find(made("one")), table.find(made("two"))) == (made("one"), None)
    before = versions(table)
    assert (table.put(made("one")), table.forget(made("two"))) == (False, False)
    assert versions(table) == before
    assert moves(table.put, made("one", note="changed")) == expected
    assert moves(table.put, made("two")) == expected
    if namespaced:
        assert table.find(made("one", "elsewhere")) is None
        assert table.forget(made("one", "elsewhere")) is False
    assert moves(table.forget, made("one")) == expected
    assert (table.find(made("one")), table.find(made("two"))) == (None, made("two"))


def test_an_object_of_another_kind_has_its_own_name() -> None:
    table = ObjectTable()
    table.put(Service(metadata=ObjectMeta(name="web", namespace="default")))
    assert table.find(StatefulSet(metadata=ObjectMeta(name="web", namespace="default"))) is None
    assert list(table.workloads.services["default"]) == ["web"]


def test_labels_of_namespaces_are_kept_by_name_and_only_their_change_matters() -> None:
    table = ObjectTable()

    def namespace(annotation: str, **labels: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name="n", labels=labels, annotations={"note": annotation}))

    table.put(namespace(""))
    assert table.namespace_labels == {"n": {}}, "one without labels is one all the same"
    table.put(namespace("", team="red"))
    assert table.namespace_labels == {"n": {"team": "red"}}
    version = table.namespaces_version
    table.put(namespace("reviewed", team="red"))
    assert table.namespaces_version == version, "every count by namespace would be made anew for nothing"
    table.forget(namespace(""))
    assert table.namespace_labels == {}
    assert table.namespaces_version > version


def test_volumes_are_filed_by_class_and_attachments_by_node() -> None:
    table = ObjectTable()
    storage = table.storage

    def volume(name: str, storage_class: str) -> PersistentVolume:
        return PersistentVolume(
            metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(storage_class_name=storage_class)
        )

    def attachment(name: str, node: str) -> VolumeAttachment:
        return VolumeAttachment(metadata=ObjectMeta(name=name), spec=VolumeAttachmentSpec(node_name=node))

    for put, shelves in ((volume, storage.volumes_of_class), (attachment, storage.attachments_on)):
        for name, shelf in (("one", "a"), ("two", "a"), ("one", "b")):
            table.put(put(name, shelf))
        assert {shelf: list(names) for shelf, names in shelves.items()} == {"a": ["two"], "b": ["one"]}
        table.forget(put("one", "unknown to who forgets"))
        assert {shelf: list(names) for shelf, names in shelves.items()} == {"a": ["two"]}
    annotated = msgspec.structs.replace(
        volume("three", "a"),
        metadata=ObjectMeta(name="three", annotations={"volume.beta.kubernetes.io/storage-class": "old"}),
    )
    table.put(annotated)
    assert list(storage.volumes_of_class["old"]) == ["three"], "the annotation goes first"
