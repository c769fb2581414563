"""Large dumps are read by their indentation, and come out as they do when they are read with care."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import manifest
from situate.cli.input import files, json_items
from situate.cli.input.cluster import read_files
from situate.cli.input.files import MappedFile, mapped_sources
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.wire.objects import Source


def item(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"uid": f"uid-{kind}-{name}", "resourceVersion": "7", **fields.pop("metadata", {})}
    return manifest(kind, name, namespace="shop" if kind != "Node" else "", metadata=metadata, **fields)


TRICKY = '}},\n        {\n            "apiVersion": "v1",\n            "kind": "Node"\n        }\n    ],\n'
ITEMS = [
    item("Node", "n1", status={"allocatable": {"cpu": "4", "pods": "10"}}),
    item("Node", "n2", metadata={"annotations": {"note": TRICKY}}),
    item("Pod", "web", metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": TRICKY}}),
    item("Pod", "bound", spec={"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}),
]


def as_kubectl(items: list[dict[str, Any]]) -> bytes:
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    return json.dumps(whole, indent=4).encode() + b"\n"


def found(data: bytes) -> tuple[list[str], list[str]]:
    seen, cluster = read_files([Source("dump.json", data)], "web")
    return [pod.metadata.name for pod in seen.pods], list(cluster.nodes.rows)


def test_the_objects_of_a_list_are_found_by_their_indentation() -> None:
    split = json_items._items_of_kubectl(as_kubectl(ITEMS))
    assert split is not None
    assert [msgspec.json.decode(one) for one in split] == ITEMS


@pytest.mark.parametrize("count", range(len(ITEMS) + 1))
def test_a_list_of_any_length_is_read_as_without_indentation(count: int) -> None:
    data = as_kubectl(ITEMS[:count])
    flat = json.dumps(json.loads(data)).encode()
    assert found(data) == found(flat)


@pytest.mark.parametrize("indent", [1, 2, 3, 8])
def test_another_indentation_is_read_all_the_same(indent: int) -> None:
    data = json.dumps(json.loads(as_kubectl(ITEMS)), indent=indent).encode()
    assert json_items._items_of_kubectl(data) is None
    assert found(data) == (["web", "bound"], ["n1", "n2"])


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text.replace(b'"kind": "List"', b'"kind": "PodList"'), id="a list of pods"),
        pytest.param(lambda text: text[:-4], id="cut off"),
        pytest.param(lambda text: text + b"{}", id="something after it"),
        pytest.param(lambda text: text.replace(b'    "items": [', b'    "items": [{},'), id="other items before"),
    ],
)
def test_what_only_looks_like_it_is_not_taken_for_it(spoil: Any) -> None:
    assert json_items._items_of_kubectl(spoil(as_kubectl(ITEMS))) is None


def test_a_large_file_is_mapped_and_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(as_kubectl(ITEMS))
    (small,) = mapped_sources([str(path)])
    assert isinstance(small, Source)
    monkeypatch.setattr(files, "MAP_FROM", 10)
    (large,) = mapped_sources([str(path)])
    assert isinstance(large, MappedFile)
    assert large.read() == small
    seen, cluster = read_files([large], "web")
    assert ([pod.metadata.name for pod in seen.pods], list(cluster.nodes.rows)) == found(small.data)
    assert [one["metadata"]["name"] for one in seen.records] == ["web"]
    path.write_bytes(json.dumps(ITEMS[0]).encode())
    (other,) = mapped_sources([str(path)])
    assert isinstance(other, MappedFile)
    assert list(read_files([other], "web")[1].nodes.rows) == ["n1"]


def test_what_is_no_json_is_not_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAP_FROM", 1)
    path = tmp_path / "dump.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    (source,) = mapped_sources([str(path)])
    assert isinstance(source, Source)


def test_more_json_is_taken_than_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.cli.input.files.MAX_BYTES", 100)
    monkeypatch.setattr("situate.cli.input.files.MAX_JSON_BYTES", 1_000)
    path = tmp_path / "file"
    path.write_bytes(b" " * 150 + b"{" + b" " * 500)
    assert len(files.read_file(path)) == 651
    for data in (b"a" * 101, b"{" + b" " * 1_000):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="larger than"):
            files.read_file(path)


def test_groups_of_all_kinds_are_read_fast_and_come_out_as_with_care(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"scheduling.k8s.io": "v1beta1"} | {one.group: one.versions[0] for one in CUSTOM_GROUP_KINDS}
    groups = [
        {**item("PodGroup", "train", metadata={"uid": group}), "apiVersion": f"{group}/{version}"}
        for group, version in kinds.items()
    ]
    other = {**item("PodGroup", "train"), "apiVersion": "example.com/v1"}
    data = as_kubectl([*ITEMS, *groups, other])
    careful, _ = read_files([Source("dump.yaml", b"---\n" + data)])

    def slow(_: object) -> None:
        raise AssertionError("read with care")

    monkeypatch.setattr("situate.cli.input.cluster.read_objects", slow)
    fast, _ = read_files([Source("dump.json", data)])
    assert [type(one).__name__ for one in fast.named] == [
        "PodGroup",
        *(one.model.__name__ for one in CUSTOM_GROUP_KINDS),
    ]
    assert (fast.named, fast.kinds.keys(), fast.ignored) == (careful.named, careful.kinds.keys(), careful.ignored)
