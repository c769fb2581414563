"""What kube-apiserver's OpenAPI documents say about the fields of the kinds we patch, in the notation of our table.

Run with the names of OpenAPI v3 documents (of a server, or of Kubernetes' api/openapi-spec/v3), it prints the rows, as
they are in src/situate/wire/patching/facts.py.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# apiVersion to the prefix of its names in the document, and the kinds.
KINDS = {
    "v1": (
        "io.k8s.api.core.v1",
        (
            "ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod "
            "PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"
        ),
    ),
    "apps/v1": ("io.k8s.api.apps.v1", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    "batch/v1": ("io.k8s.api.batch.v1", "CronJob Job"),
    "coordination.k8s.io/v1": ("io.k8s.api.coordination.v1", "Lease"),
    "discovery.k8s.io/v1": ("io.k8s.api.discovery.v1", "EndpointSlice"),
    "events.k8s.io/v1": ("io.k8s.api.events.v1", "Event"),
    "node.k8s.io/v1": ("io.k8s.api.node.v1", "RuntimeClass"),
    "policy/v1": ("io.k8s.api.policy.v1", "PodDisruptionBudget"),
    "rbac.authorization.k8s.io/v1": ("io.k8s.api.rbac.v1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    "resource.k8s.io/v1": ("io.k8s.api.resource.v1", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"),
    "scheduling.k8s.io/v1": ("io.k8s.api.scheduling.v1", "PriorityClass"),
    "scheduling.k8s.io/v1alpha2": ("io.k8s.api.scheduling.v1alpha2", "PodGroup Workload"),
    "storage.k8s.io/v1": (
        "io.k8s.api.storage.v1",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
    ),
}


class Document:
    """OpenAPI v3 documents, read for what patches need to know."""

    def __init__(self, documents: Iterable[Json]) -> None:
        self.definitions: Json = {}
        for document in documents:
            self.definitions |= document.get("components", {}).get("schemas", {})
        self.rows: dict[str, dict[str, str]] = {}
        self.names: dict[str, str] = {}

    def type_name(self, reference: str) -> str:
        """The short name, or with the group in front where two groups share one."""
        short = reference.rsplit(".", 1)[1]
        if self.names.setdefault(short, reference) != reference:
            short = f"{reference.split('.')[-3]}.{short}"
        return short

    def notable(self, reference: str) -> str:
        """The name of a type with anything to say about its fields, or "" for one without."""
        definition = self.definitions[reference]
        if "properties" not in definition:
            return ""
        name = self.type_name(reference)
        if name not in self.rows:
            self.rows[name] = {}  # types may hold themselves
            found = {field: self.row(schema) for field, schema in definition["properties"].items()}
            self.rows[name] = {field: row for field, row in sorted(found.items()) if row}
        return name if self.rows[name] else ""

    def row(self, schema: Json) -> str:
        strategy = schema.get("x-kubernetes-patch-strategy", "")
        if schema.get("type") == "array":
            return self.list_row(schema, strategy)
        reference = referred(schema.get("additionalProperties", {}))
        if reference and self.notable(reference):
            raise ValueError(f"a map of {reference}: the table has no notation for that")
        reference = referred(schema)
        if not reference:
            return "whole" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        definition = self.definitions[reference]
        untyped = definition.get("type") == "object" and "properties" not in definition
        if untyped or definition.get("x-kubernetes-map-type", schema.get("x-kubernetes-map-type")) == "atomic":
            return "whole" + (" replaced" if strategy == "replace" else "")
        return self.notable(reference)

    def list_row(self, schema: Json, strategy: str) -> str:
        merged = strategy.startswith("merge")
        key = schema.get("x-kubernetes-patch-merge-key", "")
        kind = schema.get("x-kubernetes-list-type") or (("map" if key else "set") if merged else "atomic")
        if kind == "set":
            return "set" + (" merged" if merged else "")
        if kind == "atomic":
            return f"whole merged {key}" if merged else ""
        keys = schema.get("x-kubernetes-list-map-keys") or [key]
        if merged and keys[0] != key:
            raise ValueError(f"merged by {key}, not by the first of {keys}")
        inner = referred(schema["items"])
        shown = ",".join(with_default(one, self.definitions[inner]["properties"][one]) for one in keys)
        atomic = self.definitions[inner].get("x-kubernetes-map-type") == "atomic"
        return (
            f"by {shown}" + ("" if merged else " replaced") + f" {'whole' if atomic else self.notable(inner)}".rstrip()
        )


def referred(schema: Json) -> str:
    """The type that a schema refers to, or "" for none."""
    whole = schema if "$ref" in schema else next(iter(schema.get("allOf", ())), {})
    found: str = whole.get("$ref", "")
    return found.removeprefix("#/components/schemas/")


def with_default(key: str, schema: Json) -> str:
    """`protocol=TCP`; and `shareID?` for a key that may be absent."""
    if "default" not in schema:
        return f"{key}?"
    return f"{key}={schema['default']}" if schema["default"] else key


def read(documents: Iterable[Json]) -> tuple[dict[tuple[str, str], str], dict[str, dict[str, str]]]:
    """(kinds, types): the type of each kind, and the rows of each type that has any."""
    reader = Document(documents)
    reader.notable("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    kinds = {}
    for version, (prefix, names) in KINDS.items():
        for kind in names.split():
            kinds[version, kind] = reader.notable(f"{prefix}.{kind}")
    return kinds, {name: rows for name, rows in sorted(reader.rows.items()) if rows}


if __name__ == "__main__":
    found_kinds, found_types = read(json.loads(Path(name).read_bytes()) for name in sys.argv[1:])
    for type_name, type_rows in found_types.items():
        print(f"{type_name}: " + "; ".join(f"{field} {row}" for field, row in type_rows.items()))
    for (of_version, of_kind), its_type in found_kinds.items():
        if its_type != of_kind:
            print(f"{of_version} {of_kind} is {its_type}")
