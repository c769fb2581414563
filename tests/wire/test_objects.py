"""Objects are read from JSON and YAML alike; what cannot be used is one line that names file, object and field."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders import manifest
from situate.core.model.base import EMPTY
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode, PersistentVolume
from situate.wire.errors import InputError
from situate.wire.objects import (
    KINDS,
    Objects,
    Source,
    decode,
    decode_checked,
    decode_node,
    decode_pod,
    objects_of,
    read_objects,
)

CONFORMANCE = Path(__file__).parents[1] / "conformance" / "data"
WEB = manifest("Pod", "web", namespace="prod")
NODE = manifest("Node", "n1")


def as_json(*objects: Any) -> bytes:
    (one,) = objects if len(objects) == 1 else ({"apiVersion": "v1", "kind": "List", "items": list(objects)},)
    return json.dumps(one).encode()


def as_yaml(*objects: Any) -> bytes:
    return yaml.safe_dump_all(objects).encode()


def read(*files: bytes) -> Objects:
    return read_objects(Source(f"{letter}.yaml", data) for letter, data in zip("abc", files, strict=False))


def complaint(*files: bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(*files)
    return str(caught.value)


def pod(**spec: Any) -> dict[str, Any]:
    return manifest("Pod", "web", spec={"containers": [{"name": "c"}], **spec})


# What is read


@pytest.mark.parametrize("written", [as_json, as_yaml], ids=["JSON", "YAML"])
def test_every_kind_is_filed_under_its_kind(written: Any) -> None:
    objects = read(written(*(manifest(kind, "x") for kind in KINDS)))
    found = [type(one).__name__ for one in objects.all()]
    assert sorted(found) == sorted(KINDS)
    assert [one.metadata.name for one in objects.nodes] == ["x"]
    assert objects.ignored == {}
    assert len(list(objects.named())) == len(KINDS) - 3


def test_documents_lists_and_files_are_read_in_order() -> None:
    many = {"apiVersion": "v1", "kind": "List", "items": [manifest("Node", "n2"), manifest("Node", "n3")]}
    objects = read(as_yaml(NODE, many, None), as_json(manifest("Node", "n0")))
    assert [one.metadata.name for one in objects.nodes] == ["n1", "n2", "n3", "n0"]


@pytest.mark.parametrize("written", [as_json, as_yaml], ids=["JSON", "YAML"])
def test_items_of_a_typed_list_need_not_say_what_they_are(written: Any) -> None:
    items = [{"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}} for name in ("a", "b")]
    objects = read(written({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}))
    assert [one.metadata.name for one in objects.pods] == ["a", "b"]


def test_other_kinds_are_counted_and_left_out() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    knative = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}}
    objects = read(as_yaml(deployment, NODE, knative, deployment))
    assert objects.ignored == {"Deployment (apps/v1)": 2, "Service (serving.knative.dev/v1)": 1}
    assert len(list(objects.all())) == 1


def test_objects_get_the_api_servers_defaults() -> None:
    (one,) = read(as_yaml(pod(containers=[{"name": "c", "resources": {"limits": {"cpu": "1"}}}]))).pods
    assert one.metadata.namespace == "default"
    assert one.spec.containers[0].resources.requests == {"cpu": "1"}


def test_priorities_come_from_classes_in_any_file() -> None:
    high = manifest("PriorityClass", "high", value=1000, preemptionPolicy="Never")
    (one,) = read(as_yaml(pod(priorityClassName="high")), as_json(high)).pods
    assert (one.spec.priority, one.spec.preemption_policy) == (1000, "Never")


def test_kubectls_output_is_read_with_all_its_nulls_and_unknown_fields() -> None:
    text = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: null
    labels: {app: web, empty: null}
    annotations:
    managedFields: [{manager: kubectl}]
    name: web
    uid: 1-2-3
  spec:
    affinity: null
    containers:
    - {name: c, image: nginx, resources: {requests: {cpu: null, memory: 1Gi}}, ports: null, env: [{value: null}]}
    nodeSelector: null
    volumes: [{name: v, configMap: {name: x, defaultMode: 0644}}]
  status: {phase: Pending, startTime: null}
"""
    (one,) = read(text.encode()).pods
    assert one.metadata.labels == {"app": "web", "empty": ""}
    assert one.metadata.creation_timestamp is None
    assert one.spec.containers[0].resources.requests == {"cpu": 0, "memory": "1Gi"}
    assert one.spec.volumes[0].name == "v"
    as_bytes = json.dumps(yaml.safe_load(text)).encode()
    assert read(as_bytes).pods == [one]


def test_json_may_have_a_byte_order_mark_and_yaml_may_begin_with_a_brace() -> None:
    assert len(read(b"\xef\xbb\xbf" + as_json(NODE)).nodes) == 1
    assert len(read(b"{apiVersion: v1, kind: Node, metadata: {name: n1}}").nodes) == 1


def test_an_empty_file_has_no_objects() -> None:
    for nothing in (b"", b"---\n", b"# only a remark\n", b"   \n"):
        assert list(read(nothing).all()) == []


def test_objects_may_come_one_by_one() -> None:
    objects = objects_of([as_json(NODE), msgspec.Raw(as_json(WEB))])
    assert (len(objects.nodes), len(objects.pods)) == (1, 1)
    with pytest.raises(InputError) as caught:
        objects_of([as_json(NODE), as_json({**WEB, "spec": {}})], "scenario 7")
    assert str(caught.value) == "scenario 7: Pod prod/web: spec.containers: Required value"


def test_names_on_the_wire_are_kubernetes() -> None:
    one = decode_pod(
        as_json(
            pod(
                containers=[{"name": "c", "ports": [{"containerPort": 1, "hostPort": 2, "hostIP": "10.0.0.1"}]}],
                volumes=[
                    {"name": "a", "awsElasticBlockStore": {"volumeID": "vol-1"}},
                    {"name": "b", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
                    {"name": "c", "azureDisk": {"diskName": "d", "diskURI": "uri"}},
                    {"name": "d", "iscsi": {"iqn": "iqn.1"}},
                    {"name": "e", "rbd": {"monitors": ["m"], "image": "i"}},
                    {"name": "f", "ephemeral": {"volumeClaimTemplate": {}}},
                    {"name": "g", "image": {"reference": "quay.io/x"}},
                ],
            )
        )
    )
    port, (ebs, gce, azure, iscsi, rbd, made, image) = one.spec.containers[0].ports[0], one.spec.volumes
    assert (port.host_port, port.host_ip) == (2, "10.0.0.1")
    assert ebs.aws_elastic_block_store is not None
    assert ebs.aws_elastic_block_store.volume_id == "vol-1"
    assert gce.gce_persistent_disk is not None
    assert (gce.gce_persistent_disk.pd_name, gce.gce_persistent_disk.read_only) == ("disk", True)
    assert azure.azure_disk is not None
    assert azure.azure_disk.disk_uri == "uri"
    assert iscsi.iscsi is not None
    assert iscsi.iscsi.iqn == "iqn.1"
    assert rbd.rbd is not None
    assert (rbd.rbd.monitors, rbd.rbd.pool) == (("m",), "rbd")
    assert made.ephemeral is not None
    assert image.image is not None
    assert image.image.reference == "quay.io/x"
    drivers = [{"name": "d", "nodeID": "id", "topologyKeys": ["zone"], "allocatable": {"count": 3}}]
    (driver,) = decode(CSINode, as_json(manifest("CSINode", "n1", spec={"drivers": drivers}))).spec.drivers
    assert (driver.node_id, driver.topology_keys, driver.allocatable and driver.allocatable.count) == (
        "id",
        ("zone",),
        3,
    )
    source = {"csi": {"driver": "d", "volumeHandle": "h"}, "claimRef": {"namespace": "a", "name": "b", "uid": "c"}}
    volume = decode(PersistentVolume, as_json(manifest("PersistentVolume", "pv", spec=source)))
    assert volume.spec.csi is not None
    assert volume.spec.csi.volume_handle == "h"


# What an API server writes


def test_a_pod_is_decoded_without_checks_or_defaults() -> None:
    one = decode_pod(b'{"metadata":{"name":"a","labels":null},"spec":{"containers":[{"name":"c","ports":null}]}}')
    assert one.metadata.namespace == ""
    assert one.metadata.labels is EMPTY
    assert isinstance(decode_node(msgspec.Raw(as_json(NODE))), Node)


@pytest.mark.parametrize(
    "data, says",
    [
        (b"", "not JSON: Input data was truncated"),
        (b"{", "not JSON: Input data was truncated"),
        (b"[]", "expected an object, got a list"),
        (b'{"metadata":{"name":5}}', "Pod: metadata.name: expected a string, got an integer"),
        (b'{"spec":{"priority":99999999999}}', "Pod: spec.priority: expected an integer <= 2147483647"),
        (b'{"metadata":{"name":"\xff"}}', "not UTF-8"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
        (b'{"spec":{"overhead":{"cpu":1e999}}}', "Pod: spec.overhead: Number out of range"),
    ],
)
def test_a_pod_that_cannot_be_decoded_is_an_input_error(data: bytes, says: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_pod(data)
    assert says in str(caught.value)


def test_a_pod_can_be_decoded_with_checks_and_defaults() -> None:
    assert decode_checked(Pod, as_json(pod())).metadata.namespace == "default"
    with pytest.raises(InputError) as caught:
        decode_checked(Pod, as_json(pod(containers=[])), file="w.json", within="pending 3")
    assert str(caught.value) == "w.json: Pod default/web: spec.containers: Required value"
    with pytest.raises(InputError) as caught:
        decode_checked(Pod, b"{", file="w.json", within="pending 3")
    assert str(caught.value) == "w.json: pending 3: not JSON: Input data was truncated"


# What cannot be used


@pytest.mark.parametrize(
    "data, line",
    [
        pytest.param(
            as_yaml(pod(containers=[])), "a.yaml: Pod default/web: spec.containers: Required value", id="no container"
        ),
        pytest.param(
            as_json(pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "1e100000000"}}}])),
            'a.yaml: Pod default/web: spec.containers[0].resources.requests.cpu: Invalid value: "1e100000000": '
            "quantity's exponent must be between -30 and 30",
            id="an absurd quantity",
        ),
        pytest.param(
            b"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
            b"spec: {overhead: {cpu: 1e100000000}, containers: [{name: c}]}",
            'a.yaml: Pod default/web: spec.overhead.cpu: Invalid value: "1e100000000": '
            "quantity's exponent must be between -30 and 30",
            id="an absurd number in YAML",
        ),
        pytest.param(
            b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"capacity":{"cpu":1e100000000}}}',
            "a.yaml: Node n: status.capacity: Number out of range",
            id="an absurd number in JSON",
        ),
        pytest.param(
            as_yaml({**WEB, "metadata": {"name": "web", "namespace": "prod", "labels": {"a": "b", "v": 1}}}),
            "a.yaml: Pod prod/web: metadata.labels[v]: expected a string, got an integer",
            id="a number for a label",
        ),
        pytest.param(
            as_json(pod(containers={"name": "c"})),
            "a.yaml: Pod default/web: spec.containers: expected a list, got an object",
            id="one container for a list of them",
        ),
        pytest.param(
            as_yaml(NODE, {"apiVersion": "v1", "kind": "Pod", "metadata": {}}),
            "a.yaml: Pod (document 2): metadata.name: Required value",
            id="no name",
        ),
        pytest.param(
            as_json(NODE, {"apiVersion": "v1", "kind": "Node"}),
            "a.yaml: Node (item 2): metadata.name: Required value",
            id="no name in a list",
        ),
        pytest.param(as_yaml({"metadata": {"name": "x"}}), "a.yaml: kind: Required value", id="no kind"),
        pytest.param(as_yaml({"kind": "Pod"}), "a.yaml: apiVersion: Required value", id="no version"),
        pytest.param(
            as_yaml({"kind": 5, "apiVersion": "v1"}), "a.yaml: kind: expected a string", id="a number for a kind"
        ),
        pytest.param(
            as_json({"kind": 5, "apiVersion": "v1"}), "a.yaml: kind: expected a string", id="the same in JSON"
        ),
        pytest.param(b"just words\n", "a.yaml: expected an object", id="text"),
        pytest.param(b"- a\n- b\n", "a.yaml: expected an object", id="a list of text"),
        pytest.param(
            as_json({"apiVersion": "v1", "kind": "List", "items": [5]}),
            "a.yaml: item 1: expected an object",
            id="items",
        ),
        pytest.param(b'{"apiVersion": "v1"', "a.yaml: not JSON: Input data was truncated", id="half a JSON file"),
        pytest.param(
            b"a: [\n", "a.yaml: line 2, column 1: not YAML: did not find expected node content", id="half a YAML file"
        ),
        pytest.param(
            as_yaml(pod(priorityClassName="nope")),
            "a.yaml: Pod default/web: spec.priorityClassName: no PriorityClass with name nope was found",
            id="a class that is not there",
        ),
        pytest.param(
            as_yaml(NODE, NODE),
            'a.yaml: Node n1: metadata.name: Duplicate value: "n1": already in a.yaml, document 1',
            id="two nodes of one name",
        ),
    ],
)
def test_the_line_says_what_is_wrong_and_where(data: bytes, line: str) -> None:
    assert complaint(data) == line


def test_a_name_twice_names_both_places() -> None:
    explicit = {**pod(), "metadata": {"name": "web", "namespace": "default"}}
    assert complaint(as_yaml(NODE, pod()), as_json(NODE | {"metadata": {"name": "n2"}}, explicit)) == (
        'b.yaml: Pod default/web: metadata.name: Duplicate value: "web": already in a.yaml, document 2'
    )


def test_one_name_in_two_namespaces_or_kinds_is_no_repetition() -> None:
    other = {**pod(), "metadata": {"name": "web", "namespace": "other"}}
    assert len(list(read(as_yaml(pod(), other, manifest("Service", "web"))).all())) == 3


def nested_lists(depth: int) -> bytes:
    return b'{"apiVersion":"v1","kind":"List","items":[' * depth + b"]}" * depth


def bomb() -> bytes:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 100_000, id="100 kB of brackets"),
        pytest.param(b'{"a":' * 100_000, id="500 kB of braces"),
        pytest.param(b'{"apiVersion":"v1","kind":"Pod","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}", id="deep JSON"),
        pytest.param(bomb(), id="a bomb of aliases"),
        pytest.param(b"a: &a [*a]", id="a list in itself"),
        pytest.param(bytes(range(256)) * 1000, id="256 kB of bytes"),
        pytest.param(as_yaml(pod(overhead={"cpu": "9" * 1_000_000})), id="a quantity of a million digits"),
        pytest.param(
            as_json(pod(overhead={"cpu": 0})).replace(b'"cpu": 0', b'"cpu": ' + b"9" * 1_000_000), id="a million digits"
        ),
        pytest.param(as_json(pod(tolerations=[{"key": "a b"}] * 20_000)), id="20,000 bad tolerations"),
        *(pytest.param(nested_lists(depth), id=f"{depth} lists in each other") for depth in (11, 300, 900, 50_000)),
        *(
            pytest.param(
                b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":5},"x":' + b"[" * depth + b"]" * depth + b"}",
                id=f"a wrong type beside {depth} brackets",
            )
            for depth in (300, 900, 980, 5_000)
        ),
    ],
)
def test_hostile_input_is_one_line_in_under_a_second(data: bytes) -> None:
    began = time.process_time()
    line = complaint(data)
    assert time.process_time() - began < 1
    assert line.startswith("a.yaml: ")
    assert len(line) < 1_100


def test_a_file_that_does_not_fit_into_memory_is_said_to_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("situate.wire.objects.load_yaml", full)
    assert complaint(as_yaml(NODE)) == "a.yaml: too large to be held in memory"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    "metadata spec status name namespace labels containers resources requests cpu affinity nodeAffinity tolerations "
    "kind items apiVersion priority volumes taints capacity overhead matchLabels".split()
)
shapes = st.recursive(
    json_values, lambda inner: st.dictionaries(fields, inner, max_size=5) | st.lists(inner, max_size=2), max_leaves=20
)


@given(st.sampled_from(sorted(KINDS)), shapes, shapes, shapes)
def test_any_shape_is_read_or_one_line(kind: str, metadata: Any, spec: Any, status: Any) -> None:
    data = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}
    for written in (json.dumps(data).encode(), json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")):
        try:
            read(written)
        except InputError as error:
            line = str(error)
            assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    "path", sorted(CONFORMANCE.glob("*.scenarios.jsonl.gz")), ids=lambda path: path.name.split(".")[0]
)
def test_the_clusters_that_kube_scheduler_judged_are_read(path: Path) -> None:
    class Scenario(msgspec.Struct):
        objects: list[msgspec.Raw]
        pending: list[msgspec.Raw]

    for line in gzip.decompress(path.read_bytes()).splitlines():
        scenario = msgspec.json.decode(line, type=Scenario)
        objects = objects_of([*scenario.objects, *scenario.pending])
        assert len(list(objects.all())) == len(scenario.objects) + len(scenario.pending)
        assert objects.ignored == {}
        assert all(one.spec.containers for one in objects.pods)


def test_there_are_clusters_to_read() -> None:
    assert len(list(CONFORMANCE.glob("*.scenarios.jsonl.gz"))) == 13
