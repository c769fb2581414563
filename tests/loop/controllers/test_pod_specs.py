"""Pods of one template share what controllers decode of their specs, and are read as ever."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from situate.core.model.managed import ManagedPod
from situate.loop.controllers.pod_specs import MAX_SPECS, PodDecoder

SPEC: dict[str, Any] = {
    "containers": [{"name": "main", "ports": [{"containerPort": 80}]}],
    "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
}


def body(spec: Any, name: str = "p") -> bytes:
    return msgspec.json.encode({"metadata": {"name": name}, "spec": spec, "status": {"phase": "Running"}})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(body(SPEC), id="a pod without a node"),
        pytest.param(body({**SPEC, "nodeName": "n-1"}), id="a bound pod"),
        pytest.param(body({"nodeName": "n-1", **SPEC}), id="the node's name is the first field"),
        pytest.param(body({"nodeName": "n-1"}), id="nothing but a node's name"),
        pytest.param(body({**SPEC, "nodeName": 'n"1'}), id="a quote in the name"),
        pytest.param(body({**SPEC, "nodeName": "n\\1"}), id="a backslash in the name"),
        pytest.param(body({**SPEC, "nodeName": "nö"}), id="a letter of several bytes in the name"),
        pytest.param(body({**SPEC, "nodeName": ""}), id="an empty name"),
        pytest.param(body({**SPEC, "hostname": ',"nodeName":"n"}'}), id="another field looks like it"),
        pytest.param(body({**SPEC, "affinity": {"x": "y", "nodeName": "n"}}), id="a field inside has its name"),
        pytest.param(
            b'{"spec":{"nodeName":"a","hostname":"h","nodeName":"b"}}', id="the name is there twice: the last counts"
        ),
        pytest.param(body({**SPEC, "hostname": "h" * 20_000, "nodeName": "n"}), id="a spec too long to be shared"),
        pytest.param(b'{"metadata":{"name":"p"}}', id="no spec"),
    ],
)
def test_a_pod_is_read_as_without_sharing(text: bytes) -> None:
    decoder = PodDecoder()
    assert decoder.decode(text) == decoder.decode(text) == msgspec.json.decode(text, type=ManagedPod)


def test_the_pods_of_a_template_share_their_specs_but_for_the_node() -> None:
    decoder = PodDecoder()
    one, two = (decoder.decode(body({**SPEC, "nodeName": node}, node)) for node in ("n-1", "n-2"))
    assert (one.spec.node_name, two.spec.node_name) == ("n-1", "n-2")
    assert one.spec.volumes is two.spec.volumes
    assert one.spec.tolerations is two.spec.tolerations


@pytest.mark.parametrize("spec", [{"containers": [{"ports": 1}]}, None, "text"])
def test_what_is_wrong_is_said_with_its_place_in_the_pod(spec: Any) -> None:
    with pytest.raises(msgspec.DecodeError) as whole:
        msgspec.json.decode(body(spec), type=ManagedPod)
    with pytest.raises(msgspec.DecodeError) as shared:
        PodDecoder().decode(body(spec))
    assert str(shared.value) == str(whole.value)


def test_no_more_specs_are_kept_than_the_limit() -> None:
    decoder = PodDecoder()
    for number in range(MAX_SPECS + 1):
        decoder.decode(body({**SPEC, "hostname": f"h{number}"}))
    again, before = (decoder.decode(body({**SPEC, "hostname": f"h{MAX_SPECS}"})).spec for _ in range(2))
    assert again is before
    assert len(decoder) <= MAX_SPECS
