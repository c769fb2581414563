"""Selectors of labels and fields: the grammars, and the texts of kube-apiserver v1.36.4 for what is none."""

from typing import Any

import pytest

from server.registry.stories import CONFIG_MAP, JOB, NODE, POD, refused
from situate.core.model.labels import Selector
from situate.server.errors import StatusError
from situate.server.registry.codec import encode
from situate.server.registry.selectable_fields import field_names, selector_values, values_after
from situate.server.registry.selectors import parse_labels, selection
from situate.server.registry.stored_object import StoredObject, read_stored
from situate.server.resources import BY_KIND, Resource

EVENT = BY_KIND["v1", "Event"]
CSR = BY_KIND["certificates.k8s.io/v1", "CertificateSigningRequest"]
NEW_EVENT = BY_KIND["events.k8s.io/v1", "Event"]
LETTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
KEY_RULE = (
    f"name part must consist of {LETTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    f"a valid label must be an empty string or consist of {LETTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    "text, matching, other",
    [
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a==b", {"a": "b"}, {}),
        ("a!=b", {}, {"a": "b"}),
        ("a in (b, c)", {"a": "c"}, {"a": "d"}),
        ("a notin (b,c)", {}, {"a": "c"}),
        ("a", {"a": ""}, {}),
        ("!a", {}, {"a": ""}),
        ("a=b,!c , d in(e)", {"a": "b", "d": "e"}, {"a": "b", "d": "e", "c": ""}),
        ("a>3", {"a": "4"}, {"a": "3"}),
        ("a<3", {"a": "2"}, {"a": "x"}),
        ("a=", {"a": ""}, {"a": "b"}),
        ("a in ()", {"a": ""}, {"a": "b"}),
        ("a in (,b)", {"a": ""}, {"a": "c"}),
        ("in in (notin)", {"in": "notin"}, {"in": "in"}),
        ("x.io/a=b", {"x.io/a": "b"}, {"a": "b"}),
    ],
)
def test_a_label_selector_matches(text: str, matching: dict[str, str], other: dict[str, str]) -> None:
    selector: Selector = parse_labels(text)
    assert selector.matches(matching)
    assert not selector.matches(other)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("_a", f'unable to parse requirement: <nil>: Invalid value: "_a": {KEY_RULE}'),
        ("a=_b-", f'unable to parse requirement: values[0][a]: Invalid value: "_b-": {VALUE_RULE}'),
        (
            "a>x",
            (
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value "
                "must be an integer"
            ),
        ),
    ],
)
def test_what_is_no_label_selector_is_refused_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_labels(text)
    assert refused(caught) == (400, "BadRequest", message)


def _held(resource: Resource, obj: dict[str, object]) -> StoredObject:
    place = "ns/x" if resource.namespaced else "x"
    group, plural = resource.stored_as.split("/")
    return read_stored(f"/objects/{group or 'core'}/{plural}/{place}", encode(obj), 7)


BOUND: dict[str, object] = {
    "metadata": {"name": "x"},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running", "podIP": "1.2.3.4"},
}
TOLD = {"metadata": {"name": "x"}, "involvedObject": {"name": "p"}, "reason": "R", "reportingComponent": "c"}


@pytest.mark.parametrize(
    "resource, obj, matching, other",
    [
        pytest.param(POD, BOUND, "spec.nodeName=n1", "spec.nodeName=n2", id="the node of a pod"),
        pytest.param(POD, BOUND, "spec.host=n1", "spec.host!=n1", id="the node of a pod by its old name"),
        pytest.param(POD, BOUND, "status.phase!=Failed", "status.phase!=Running", id="a phase that it is not"),
        pytest.param(POD, BOUND, "spec.hostNetwork=false", "spec.hostNetwork=true", id="a flag that is not set"),
        pytest.param(POD, BOUND, "status.podIP=1.2.3.4", "status.podIPs=1.2.3.4", id="addresses"),
        pytest.param(POD, BOUND, "metadata.name==x", "metadata.name!=x", id="a name"),
        pytest.param(POD, BOUND, "metadata.namespace=ns", "metadata.namespace!=ns", id="a namespace"),
        pytest.param(POD, BOUND, "metadata.name=x,status.phase=Running", "metadata.name=x,status.phase=", id="both"),
        pytest.param(POD, BOUND, ",", r"metadata.name=a\,b\=c\\", id="nothing at all, and escapes"),
        pytest.param(
            NODE, {"metadata": {"name": "x"}}, "spec.unschedulable=false", "spec.unschedulable=true", id="a node"
        ),
        pytest.param(
            JOB,
            {"metadata": {"name": "x"}, "status": {"succeeded": 2}},
            "status.successful=2",
            "status.successful=0",
            id="a number",
        ),
        pytest.param(
            CSR,
            {"metadata": {"name": "x"}, "spec": {"signerName": "example.com/one"}},
            "spec.signerName=example.com/one",
            "spec.signerName=example.com/two",
            id="the signer of a request",
        ),
        pytest.param(EVENT, TOLD, "involvedObject.name=p,source=c", "source=d", id="an event"),
        pytest.param(NEW_EVENT, TOLD, "regarding.name=p,reportingController=c", "reason=S", id="an event of events"),
    ],
)
def test_a_field_selector_matches(resource: Resource, obj: dict[str, object], matching: str, other: str) -> None:
    held = _held(resource, obj)
    assert selection(resource, "", "", "", matching).matches(held)
    assert not selection(resource, "", "", "", other).matches(held)


FULL_POD: dict[str, object] = {
    "metadata": {"name": "x"},
    "spec": {
        "nodeName": "spec.nodeName",
        "restartPolicy": "spec.restartPolicy",
        "schedulerName": "spec.schedulerName",
        "serviceAccountName": "spec.serviceAccountName",
        "hostNetwork": True,
    },
    "status": {
        "phase": "status.phase",
        "podIP": "status.podIP",
        "podIPs": [{"ip": "status.podIP"}],
        "nominatedNodeName": "status.nominatedNodeName",
    },
}
REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
FULL_EVENT: dict[str, object] = {
    "metadata": {"name": "x"},
    "involvedObject": {name: f"involvedObject.{name}" for name in REFERENCE},
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": {"component": "source"},
    "type": "type",
}


@pytest.mark.parametrize(
    "resource, obj, others",
    [
        pytest.param(POD, FULL_POD, {"spec.hostNetwork": "true", "status.podIPs": ""}, id="a pod"),
        pytest.param(EVENT, FULL_EVENT, {}, id="an event"),
        pytest.param(
            EVENT,
            {name: value for name, value in FULL_EVENT.items() if name != "source"},
            {"source": "reportingComponent"},
            id="an event without a source",
        ),
    ],
)
def test_each_value_stands_under_its_own_name(
    resource: Resource, obj: dict[str, object], others: dict[str, str]
) -> None:
    assert _held(resource, obj).fields == {name: name for name in field_names(resource.stored_as)} | others


@pytest.mark.parametrize(
    "resource, text, message",
    [
        (POD, "spec.foo=1", "field label not supported: spec.foo"),
        (POD, "x", "invalid selector: 'x'; can't understand 'x'"),
        (POD, r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b"),
        (POD, "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (
            CONFIG_MAP,
            "spec.foo=1",
            '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (NODE, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (CSR, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (JOB, "x.y=1", 'field label "x.y" not supported for Job'),
        (NEW_EVENT, "source=1", "field label not supported: source"),
        (NEW_EVENT, "involvedObject.name=1", "field label not supported: involvedObject.name"),
    ],
)
def test_what_is_no_field_selector_is_refused_in_kubernetes_words(resource: Resource, text: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        selection(resource, "", "", "", text)
    assert refused(caught) == (400, "BadRequest", message)


def test_a_name_in_two_namespaces_selects_nothing() -> None:
    assert not selection(POD, "ns", "", "", "metadata.namespace=other").matches(_held(POD, BOUND))


WAITING: dict[str, Any] = {
    "metadata": {"name": "p", "uid": "u", "labels": {"app": "web"}},
    "spec": {"restartPolicy": "Always", "schedulerName": "s", "serviceAccountName": "a", "hostNetwork": True},
    "status": {"phase": "Pending", "nominatedNodeName": "n2"},
}


@pytest.mark.parametrize(
    "stored_as, old, new, known",
    [
        pytest.param("/pods", WAITING, {**WAITING, "spec": {**WAITING["spec"], "nodeName": "n"}}, True, id="a bind"),
        pytest.param(
            "/pods", WAITING, {**WAITING, "status": {"phase": "Running", "podIP": "1.2.3.4"}}, True, id="a start"
        ),
        pytest.param("/pods", WAITING, {**WAITING, "spec": {}, "status": {}}, True, id="nothing is set"),
        pytest.param("/pods", WAITING, {"metadata": WAITING["metadata"]}, True, id="there is no spec"),
        pytest.param(
            "/pods", WAITING, {**WAITING, "metadata": {"name": "p", "uid": "u"}}, False, id="no labels any more"
        ),
        pytest.param(
            "/pods", WAITING, {**WAITING, "metadata": {**WAITING["metadata"], "uid": "v"}}, False, id="another uid"
        ),
        pytest.param("/configmaps", WAITING, {**WAITING, "data": {"a": "b"}}, True, id="a kind without such fields"),
        pytest.param(
            "/nodes", WAITING, {**WAITING, "spec": {"unschedulable": True}}, False, id="another kind with them"
        ),
    ],
)
def test_what_selectors_read_of_a_new_version_is_known_without_decoding_it(
    stored_as: str, old: dict[str, Any], new: dict[str, Any], known: bool
) -> None:
    found = values_after(stored_as, selector_values(stored_as, encode(old)), new)
    assert found == (selector_values(stored_as, encode(new)) if known else None)


def test_a_phase_that_is_no_text_is_not_known() -> None:
    held = selector_values("/pods", encode(WAITING))
    assert values_after("/pods", held, {**WAITING, "status": {"phase": 7}}) is None
