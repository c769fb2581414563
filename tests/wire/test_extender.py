import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import container, node, pod
from situate.core.changes import ExtenderSaid, PodRef
from situate.core.effects import AskExtender, Bind, Victims
from situate.core.model.pod import ContainerPort
from situate.wire.extender import (
    TEXT_CHARS,
    ExtenderResponseError,
    encode_ask,
    encode_bind,
    one_line,
    read_answer,
    read_bind,
)

WEB = PodRef("default", "web", "uid-web")
OLD, OLDER = PodRef("default", "old", "uid-old"), PodRef("default", "older", "uid-older")
POD = pod("web", uid="uid-web", cpu="1", containers=(container(ports=(ContainerPort(container_port=80),)),))


def ask(verb: Any) -> AskExtender:
    victims = (Victims("n1", (OLD, OLDER), 1), Victims("n2", (), 0)) if verb == "preempt" else ()
    return AskExtender(7, 0, verb, WEB, ("n1", "n2"), victims)


def sent(verb: str, *, names_do: bool) -> Any:
    nodes = [node("n1", cpu="4"), node("n2", labels={"zone": "a"})]
    victims = {"uid-old": pod("old", uid="uid-old", node_name="n1")}
    return json.loads(encode_ask(ask(verb), POD, nodes, victims, names_do=names_do))


def read(verb: str, answer: Any, *, names_do: bool = True) -> ExtenderSaid:
    return read_answer(ask(verb), json.dumps(answer).encode(), names_do=names_do)


# -- what is sent ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_an_extender_that_knows_the_nodes_is_sent_their_names(verb: str) -> None:
    body = sent(verb, names_do=True)
    assert list(body) == ["Pod", "Nodes", "NodeNames"]
    assert (body["Nodes"], body["NodeNames"]) == (None, ["n1", "n2"])


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_an_extender_that_does_not_is_sent_the_nodes(verb: str) -> None:
    body = sent(verb, names_do=False)
    assert body["NodeNames"] is None
    first, second = body["Nodes"]["items"]
    assert (first["metadata"]["name"], first["status"]["allocatable"]) == ("n1", {"cpu": "4"})
    assert second["metadata"]["labels"] == {"zone": "a"}


def test_what_is_not_empty_by_default_is_written_out() -> None:
    spec = sent("filter", names_do=True)["Pod"]["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_victims_are_sent_by_uid_to_an_extender_that_knows_them() -> None:
    body = sent("preempt", names_do=True)
    assert body["NodeNameToVictims"] is None
    assert body["NodeNameToMetaVictims"] == {
        "n1": {"Pods": [{"UID": "uid-old"}, {"UID": "uid-older"}], "NumPDBViolations": 1},
        "n2": {"Pods": [], "NumPDBViolations": 0},
    }


def test_victims_that_are_still_known_are_sent_whole_to_one_that_does_not() -> None:
    body = sent("preempt", names_do=False)
    assert body["NodeNameToMetaVictims"] is None
    (victim,) = body["NodeNameToVictims"]["n1"]["Pods"]
    assert (victim["metadata"]["uid"], victim["spec"]["nodeName"]) == ("uid-old", "n1")


def test_a_bind_names_the_pod_and_the_node() -> None:
    assert json.loads(encode_bind(Bind(WEB, "n1", 3, 0))) == {
        "PodName": "web",
        "PodNamespace": "default",
        "PodUID": "uid-web",
        "Node": "n1",
    }


# -- what is answered --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, names_do, nodes",
    [
        pytest.param({"NodeNames": ["n1"]}, True, ("n1",), id="names"),
        pytest.param({"nodenames": ["n1"]}, True, ("n1",), id="names under a name of another case"),
        pytest.param({"Nodes": {"items": [{"metadata": {"name": "n2"}}]}}, False, ("n2",), id="whole nodes"),
        pytest.param({"nodes": {"Items": [{"Metadata": {"Name": "n2"}}]}}, False, ("n2",), id="nodes in another case"),
        pytest.param({"Nodes": {"items": [{"metadata": {"name": "n2"}}]}}, True, ("n2",), id="nodes where names do"),
        pytest.param({"NodeNames": ["n1"]}, False, (), id="names where nodes were sent"),
        pytest.param({"NodeNames": None}, True, (), id="null"),
        pytest.param({}, True, (), id="nothing"),
        pytest.param(None, True, (), id="null alone"),
        pytest.param({"NodeNames": ["n1"], "Nodes": {"items": []}, "Other": 1}, True, ("n1",), id="names go first"),
    ],
)
def test_what_is_left_is_read_as_go_reads_it(answer: Any, names_do: bool, nodes: tuple[str, ...]) -> None:
    assert read("filter", answer, names_do=names_do) == ExtenderSaid(7, nodes=nodes)


def test_refusals_are_read_with_their_reasons() -> None:
    said = read("filter", {"FailedNodes": {"n1": "full"}, "FailedAndUnresolvableNodes": {"n2": "no\ngpu"}})
    assert said == ExtenderSaid(7, nodes=(), refused=(("n1", "full"),), refused_for_good=(("n2", "no gpu"),))


def test_scores_are_read_whatever_they_are() -> None:
    said = read("prioritize", [{"Host": "n1", "Score": 3}, {"host": "n2", "score": -1000}, {"Host": "n3"}])
    assert said.scores == (("n1", 3), ("n2", -1000), ("n3", 0))
    assert read("prioritize", None).scores == ()


def test_victims_are_read_by_uid() -> None:
    agreed = {"n1": {"Pods": [{"UID": "a"}, {"uid": "b"}]}, "n2": None, "n3": {"Pods": None}}
    assert read("preempt", {"NodeNameToMetaVictims": agreed}).victims == (("n1", ("a", "b")), ("n2", ()), ("n3", ()))
    assert read("preempt", {}).victims == ()


@pytest.mark.parametrize("answer, problem", [({"Error": ""}, ""), ({}, ""), ({"error": "taken"}, "taken")])
def test_a_bind_is_done_unless_the_answer_has_an_error(answer: Any, problem: str) -> None:
    assert read_bind(json.dumps(answer).encode()) == problem


@pytest.mark.parametrize(
    "verb, answer",
    [
        ("filter", []),
        ("filter", "n1"),
        ("filter", {"NodeNames": "n1"}),
        ("filter", {"NodeNames": [1]}),
        ("filter", {"NodeNames": {"n1": True}}),
        ("filter", {"Nodes": ["n1"]}),
        ("filter", {"Nodes": {"items": ["n1"]}}),
        ("filter", {"Nodes": {"items": [{"metadata": {"name": 1}}]}}),
        ("filter", {"FailedNodes": ["n1"]}),
        ("filter", {"FailedNodes": {"n1": 1}}),
        ("filter", {"Error": 1}),
        ("filter", {"Error": "out of luck", "NodeNames": ["n1"]}),
        ("prioritize", {"n1": 1}),
        ("prioritize", [["n1", 1]]),
        ("prioritize", [{"Host": 1, "Score": 1}]),
        ("prioritize", [{"Host": "n1", "Score": 1.5}]),
        ("prioritize", [{"Host": "n1", "Score": True}]),
        ("prioritize", [{"Host": "n1", "Score": 1 << 63}]),
        ("preempt", {"NodeNameToMetaVictims": []}),
        ("preempt", {"NodeNameToMetaVictims": {"n1": ["a"]}}),
        ("preempt", {"NodeNameToMetaVictims": {"n1": {"Pods": ["a"]}}}),
        ("preempt", {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 1}]}}}),
    ],
    ids=json.dumps,
)
def test_an_answer_of_another_shape_is_none(verb: str, answer: Any) -> None:
    with pytest.raises(ExtenderResponseError) as raised:
        read(verb, answer)
    assert "\n" not in str(raised.value)


@given(st.binary(max_size=64), st.sampled_from(["filter", "prioritize", "preempt"]))
def test_any_bytes_are_an_answer_or_an_answer_error(data: bytes, verb: str) -> None:
    with contextlib.suppress(ExtenderResponseError):
        assert read_answer(ask(verb), data, names_do=True).ask == 7


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Error", "NodeNames", "Nodes", "items", "metadata", "name", "FailedNodes", "Host", "Score"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(VALUES, st.sampled_from(["filter", "prioritize", "preempt"]), st.booleans())
def test_any_json_is_an_answer_or_an_answer_error(value: Any, verb: str, names_do: bool) -> None:
    with contextlib.suppress(ExtenderResponseError):
        assert read(verb, value, names_do=names_do).ask == 7


@pytest.mark.parametrize(
    "text, line",
    [
        ("as it is", "as it is"),
        (" two\r\n lines\t", "two lines"),
        ("\x1b[31mred", "[31mred"),
        ("x" * TEXT_CHARS, "x" * TEXT_CHARS),
        ("x" * 10_000, "x" * (TEXT_CHARS - 4) + " ..."),
        ("\n" * 10_000, " ..."),
    ],
    ids=["plain", "lines", "colour", "as long as may be", "too long", "empty lines"],
)
def test_a_text_becomes_one_line(text: str, line: str) -> None:
    assert one_line(text) == line
