"""Watch frames and list pages, from bytes to objects."""

import json
from typing import Any

import msgspec
import pytest

from builders import manifest
from situate.core.model.base import Model
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode
from situate.core.model.workloads import ReplicationController
from situate.wire.errors import InputError
from situate.wire.objects import KINDS, NAMESAKES, decode
from situate.wire.watch import NO_NAME, Item, Reader

PODS = Reader(Pod)


def pod(name: str = "web", version: str = "7", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid of {name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"containers": [], **spec}, "status": {}}


def event(kind: str, found: object) -> bytes:
    return json.dumps({"type": kind, "object": found}).encode()


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_has_its_type_the_object_and_its_version(kind: str) -> None:
    frame = PODS.frame(event(kind, pod(nodeName="n1")))
    assert frame.type == kind
    assert (frame.item.namespace, frame.item.name, frame.item.uid) == ("default", "web", "uid of web")
    assert frame.item.version == "7"
    assert frame.item.object == decode(Pod, json.dumps(pod(nodeName="n1")).encode())


def test_what_the_model_does_not_have_is_left_out() -> None:
    odd = {**pod(), "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    odd["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]
    found = PODS.frame(event("ADDED", odd)).item.object
    assert found is not None
    assert found.status.phase == "Running"
    assert b"managedFields" not in msgspec.json.encode(found)


def test_a_bookmark_has_a_version_and_says_whether_the_list_is_complete() -> None:
    # As kube-apiserver writes it: an empty pod, with nulls in it.
    said = {"resourceVersion": "12", "creationTimestamp": None}
    empty = {"kind": "Pod", "apiVersion": "v1", "metadata": said, "spec": {"containers": None}, "status": {}}
    assert PODS.frame(event("BOOKMARK", empty)).item.version == "12"
    assert not PODS.frame(event("BOOKMARK", empty)).listed
    ends = {**empty, "metadata": {**said, "annotations": {"k8s.io/initial-events-end": "true"}}}
    assert PODS.frame(event("BOOKMARK", ends)).listed


def test_an_error_has_its_status_untouched() -> None:
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410}
    frame = PODS.frame(event("ERROR", status))
    assert frame.type == "ERROR"
    assert json.loads(frame.status) == status


def test_nulls_where_kubernetes_own_decoder_shrugs_are_no_problem() -> None:
    node = {"metadata": {"name": "n1", "resourceVersion": "3"}, "spec": {"drivers": None}}
    item = Reader(CSINode).frame(event("ADDED", node)).item
    assert item.object == decode(CSINode, b'{"metadata":{"name":"n1"},"spec":{}}')
    assert (item.problem, item.version) == ("", "3")


@pytest.mark.parametrize(
    "spec, problem",
    [
        ({"containers": 7}, "Pod default/web: spec.containers: expected a list, got an integer"),
        ({"priority": 2**40}, "Pod default/web: spec.priority: expected an integer <= 2147483647"),
    ],
)
def test_an_object_that_does_not_decode_is_known_by_its_metadata_and_says_why(
    spec: dict[str, Any], problem: str
) -> None:
    item = PODS.frame(event("MODIFIED", pod(**spec))).item
    assert item == Item("default", "web", "uid of web", "7", None, problem)


@pytest.mark.parametrize("meta", [{}, {"name": 7}, "text", None, []])
def test_an_object_without_a_name_does_not_decode(meta: object) -> None:
    item = PODS.frame(event("ADDED", {"metadata": meta})).item
    assert (item.object, item.problem) == (None, NO_NAME)


@pytest.mark.parametrize(
    "line",
    [b"<html>502</html>", b"", b"{}", b"[]", b"null", b'{"type":"ADDED"}', b'{"object":{}}', b'{"type":7,"object":{}}']
    + [b'{"type":"ADDED","object":{"metadata":{"name":"a"}', b"\xff\xfe", b"[" * 100_000],
    ids=lambda line: repr(line[:40]),
)
def test_what_is_no_frame_is_an_input_error(line: bytes) -> None:
    with pytest.raises(InputError, match="not a watch event"):
        PODS.frame(line)


def test_a_page_has_its_objects_the_version_of_the_list_and_what_to_ask_next() -> None:
    listed = {"metadata": {"resourceVersion": "90", "continue": "token"}, "items": [pod("a"), pod("b", "8")]}
    page = PODS.page(json.dumps(listed).encode())
    assert (page.version, page.more) == ("90", "token")
    assert [(item.name, item.version) for item in page.items] == [("a", "7"), ("b", "8")]


def test_one_bad_object_does_not_spoil_its_page() -> None:
    listed = {"metadata": {"resourceVersion": "90"}, "items": [pod("a"), pod("b", containers=7), pod("c")]}
    page = PODS.page(json.dumps(listed).encode())
    assert [(item.name, item.object is None) for item in page.items] == [("a", False), ("b", True), ("c", False)]
    assert page.more == ""


def test_an_empty_list_may_be_null() -> None:
    assert PODS.page(b'{"metadata":{"resourceVersion":"9"},"items":null}').items == []


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"items":[]}', b'{"metadata":{},"items":7}'])
def test_what_is_no_list_is_an_input_error(answer: bytes) -> None:
    with pytest.raises(InputError, match="not a list"):
        PODS.page(answer)


@pytest.mark.parametrize("model", [*(model for _, model in KINDS.values()), *NAMESAKES.values()])
def test_every_kind_is_read_as_a_file_of_it_would_be(model: type[Model]) -> None:
    written = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}}
    item = Reader(model).frame(event("ADDED", written)).item
    assert item.object == decode(model, json.dumps(written).encode())


def test_the_template_of_a_controller_may_have_a_null_time() -> None:
    controller = manifest("ReplicationController", "a", spec={"template": {"metadata": {"creationTimestamp": None}}})
    assert Reader(ReplicationController).frame(event("ADDED", controller)).item.object is not None
