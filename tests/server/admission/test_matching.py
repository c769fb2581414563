"""Which requests a webhook or a policy is about. What kube-apiserver does is compared in tests/kubernetes."""

import asyncio
from typing import Any

import pytest

from server.registry.stories import ANN, CONFIG_MAP, NAMESPACE, POD, World, config_map, namespace, no, pod, tell
from situate.server.admission.matching import Equivalents, RequestMatcher, in_version
from situate.server.registry.user_admission import AdmissionRequest, Operation
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND, Resource

NEW_EVENT, OLD_EVENT = BY_KIND["events.k8s.io/v1", "Event"], BY_KIND["v1", "Event"]
EQUIVALENTS = Equivalents(lambda: ())


def rule(**fields: Any) -> dict[str, Any]:
    return {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "*", **fields}


def asked(
    resource: Resource,
    operation: Operation = "CREATE",
    subresource: str = "",
    obj: Object | None = None,
    old: Object | None = None,
) -> AdmissionRequest:
    name = ((obj or old or {}).get("metadata") or {}).get("name", "x")
    target = Target(resource, "default" if resource.namespaced else "", name, subresource)
    return AdmissionRequest(operation, target, obj, old, ANN, {})


def found(matcher: RequestMatcher, world: World, request: AdmissionRequest) -> str:
    """The apiVersion in which it matches."""
    equivalents = EQUIVALENTS.of(request.target.resource)
    as_what = matcher.matched(request, world.cache, equivalents)
    may = matcher.concerns(request.target.resource, request.target.subresource, request.operation, equivalents)
    assert may or as_what is None
    return "" if as_what is None else as_what.api_version


@pytest.mark.parametrize(
    "fields, request_, matches",
    [
        pytest.param({}, asked(POD), True, id="everything matches a resource"),
        pytest.param({}, asked(POD, subresource="status"), False, id="* is not about subresources"),
        pytest.param({"resources": ["*/*"]}, asked(POD, subresource="status"), True, id="*/* is"),
        pytest.param({"resources": ["*/*"]}, asked(POD), True, id="*/* is about resources, too"),
        pytest.param({"resources": ["pods/*"]}, asked(POD, subresource="exec"), True, id="all subresources of one"),
        pytest.param({"resources": ["*/scale"]}, asked(POD, subresource="exec"), False, id="one subresource of all"),
        pytest.param({"resources": ["pods"]}, asked(CONFIG_MAP), False, id="another resource"),
        pytest.param({"operations": ["UPDATE"]}, asked(POD), False, id="another operation"),
        pytest.param({"operations": ["DELETE", "CREATE"]}, asked(POD), True, id="one of the operations"),
        pytest.param({"apiGroups": ["apps"]}, asked(POD), False, id="another group"),
        pytest.param({"apiVersions": ["v2"]}, asked(POD), False, id="another version"),
        pytest.param({"scope": "Namespaced"}, asked(POD), True, id="within a namespace"),
        pytest.param({"scope": "Cluster"}, asked(POD), False, id="not of the cluster"),
        pytest.param({"scope": "Cluster"}, asked(NAMESPACE), True, id="a namespace is of the cluster"),
        pytest.param({"scope": "Namespaced"}, asked(NAMESPACE), False, id="and not within one"),
        pytest.param({"resourceNames": ["x"]}, asked(POD), True, id="by its name"),
        pytest.param({"resourceNames": ["y"]}, asked(POD), False, id="not by another name"),
    ],
)
def test_rules(fields: dict[str, Any], request_: AdmissionRequest, matches: bool) -> None:
    async def story(world: World) -> None:
        assert bool(found(RequestMatcher([rule(**fields)], None, None, "Exact"), world, request_)) is matches

    tell(story)


def test_selectors() -> None:
    async def story(world: World) -> None:
        await world.create({**namespace("default"), "metadata": {"name": "default", "labels": {"a": "b"}}})
        here, there = {"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "c"}}
        assert found(RequestMatcher([rule()], here, None, "Exact"), world, asked(POD, obj=pod("p")))
        assert not found(RequestMatcher([rule()], there, None, "Exact"), world, asked(POD, obj=pod("p")))
        assert found(RequestMatcher([rule()], there, None, "Exact"), world, asked(BY_KIND["v1", "Node"]))
        labelled = pod("p", labels={"a": "b"})
        assert not found(RequestMatcher([rule()], None, here, "Exact"), world, asked(POD, obj=pod("p")))
        assert found(RequestMatcher([rule()], None, here, "Exact"), world, asked(POD, obj=labelled))
        assert found(RequestMatcher([rule()], None, here, "Exact"), world, asked(POD, obj=pod("p"), old=labelled))
        assert found(RequestMatcher([rule()], None, here, "Exact"), world, asked(POD, "DELETE", old=labelled))

    tell(story)


def test_a_new_namespace_is_selected_by_its_own_labels_and_a_missing_one_is_a_404() -> None:
    async def story(world: World) -> None:
        matcher = RequestMatcher([rule()], {"matchLabels": {"a": "b"}}, None, "Exact")
        new = {**namespace("n"), "metadata": {"name": "n", "labels": {"a": "b"}}}
        assert found(matcher, world, asked(NAMESPACE, obj=new))

        async def lost() -> None:
            found(matcher, world, asked(CONFIG_MAP, obj=config_map("c")))

        assert (await no(lost()))[2] == 'namespaces "default" not found'

    tell(story)


def test_excluded_rules_count_more() -> None:
    async def story(world: World) -> None:
        matcher = RequestMatcher([rule()], None, None, "Exact", [rule(resources=["pods"])])
        assert not found(matcher, world, asked(POD))
        assert found(matcher, world, asked(CONFIG_MAP))

    tell(story)


def test_another_version_of_the_same_resource_is_equivalent_if_the_policy_says_so() -> None:
    async def story(world: World) -> None:
        rules = [rule(apiGroups=["events.k8s.io"], resources=["events"])]
        assert not found(RequestMatcher(rules, None, None, "Exact"), world, asked(OLD_EVENT))
        assert found(RequestMatcher(rules, None, None, "Equivalent"), world, asked(OLD_EVENT)) == "events.k8s.io/v1"

    tell(story)
    event = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}, "message": "m", "involvedObject": {}}
    shown = asyncio.run(in_version(event, OLD_EVENT, NEW_EVENT))
    assert shown is not None
    assert (shown["apiVersion"], shown["note"]) == ("events.k8s.io/v1", "m")


def test_nothing_is_about_the_configurations_themselves() -> None:
    hooks = Resource(
        "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
        "validatingwebhookconfiguration", False, ("create",),
        stored_as="admissionregistration.k8s.io/validatingwebhookconfigurations",
    )  # fmt: skip
    assert not RequestMatcher([rule()], None, None, "Equivalent").concerns(hooks, "", "CREATE", ())
