"""Who writes a policy or a binding with parameters needs the right to read them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from server.registry.stories import World, namespace, no, tell
from situate.server.admission.policies.param_rights import ParamRights
from situate.server.admission.policies.params import ParamFinder
from situate.server.apiextensions.served import CustomKinds
from situate.server.identity.authorization.authorization import Authorization
from situate.server.registry.cache import Cache
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

API = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
KINDS = ("Validating", "Mutating")
CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
NAMED = {"name": "params", "namespace": "default", "parameterNotFoundAction": "Deny"}
SELECTED = {"selector": {}, "namespace": "default", "parameterNotFoundAction": "Deny"}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
LIM = Caller("lim", ("system:authenticated", "devs"), "7", {"b": ("2",), "a": ("1", "2")})
MASTER = Caller("root", ("system:masters",))
SHOWN = "&{lim 7 [system:authenticated devs] map[a:[1 2] b:[2]]}"


def policy(kind: str, **spec: Any) -> Object:
    own: Object = {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        }
    }
    if kind == "Validating":
        own["validations"] = [{"expression": "true"}]
    else:
        own["reinvocationPolicy"] = "Never"
        own["mutations"] = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]
    return {"apiVersion": API, "kind": f"{kind}AdmissionPolicy", "metadata": {"name": "p"}, "spec": own | spec}


def binding(kind: str, **spec: Any) -> Object:
    own = {"validationActions": ["Deny"]} if kind == "Validating" else {}
    whole = {"policyName": "p", **own, **spec}
    return {"apiVersion": API, "kind": f"{kind}AdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": whole}


def rights(*rules: Mapping[str, Any]) -> tuple[Object, Object]:
    subject = {"apiGroup": RBAC, "kind": "User", "name": "lim"}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "lim"}
    role = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "lim"}}
    return (
        role | {"kind": "ClusterRole", "rules": list(rules)},
        role | {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
    )


def rule(verb: str, resource: str, *names: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {"apiGroups": [""], "resources": [resource], "verbs": [verb]}
    return found | ({"resourceNames": list(names)} if names else {})


def told(story: Callable[[World], Awaitable[None]], *rules: Mapping[str, Any]) -> None:
    def admission(cache: Cache) -> Sequence[ParamRights]:
        return [ParamRights(cache, ParamFinder(cache, CustomKinds(cache)), Authorization(cache))]

    async def inside(here: World) -> None:
        for one in (namespace("default"), *rights(*rules)):
            await here.create(one)
        await story(here)

    tell(inside, admission=admission)


def refused(kind: str, field: str, why: str) -> tuple[int, str, str]:
    name = "p" if kind.endswith("Policy") else "b"
    return 422, "Invalid", f'{kind}.admissionregistration.k8s.io "{name}" is invalid: spec.{field}: Forbidden: {why}'


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_needs_get_on_its_whole_kind(kind: str) -> None:
    async def story(here: World) -> None:
        def why(named: str, version: str = "v1") -> tuple[int, str, str]:
            text = (
                f'user {SHOWN} must have "get" permission on all objects of the referenced paramKind '
                f"(kind={named}, apiVersion={version})"
            )
            return refused(f"{kind}AdmissionPolicy", "paramKind", text)

        assert await no(here.create(policy(kind, paramKind=SECRETS), LIM)) == why("Secret")
        unknown = {"apiVersion": "example.com/v1", "kind": "Gadget"}
        assert await no(here.create(policy(kind, paramKind=unknown), LIM)) == why("Gadget", "example.com/v1")
        await here.create(policy(kind, paramKind=unknown), MASTER, dry_run=True)
        # An invalid policy is refused for what is wrong with it.
        wrong = policy(kind, paramKind=SECRETS, failurePolicy="x")
        assert "paramKind" not in (await no(here.create(wrong, LIM)))[2]
        made = await here.create(policy(kind, paramKind=CONFIG_MAPS), LIM)
        # An update needs the right if it names another kind.
        secret = made | {"spec": made["spec"] | {"paramKind": SECRETS}}
        assert await no(here.update(secret, caller=LIM)) == why("Secret")
        target = Target(BY_KIND[API, f"{kind}AdmissionPolicy"], "", "p")
        patch = {"spec": {"paramKind": SECRETS}}
        assert await no(here.registry.patch(target, "merge", patch, LIM)) == why("Secret")
        made = await here.update(secret, caller=MASTER)
        made["metadata"]["labels"] = {"a": "b"}
        await here.update(made, caller=LIM)

    told(story, rule("get", "configmaps"), rule("list", "secrets"), rule("get", "secrets", "params"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb, other, reference", [("get", "list", NAMED), ("list", "get", SELECTED)])
def test_a_binding_needs_the_right_to_what_it_refers_to(kind: str, verb: str, other: str, reference: Object) -> None:
    async def story(here: World) -> None:
        parts = (verb, SHOWN) if kind == "Mutating" else (SHOWN, verb)  # kube-apiserver swaps them
        text = f'user {parts[0]} does not have "{parts[1]}" permission on the object referenced by paramRef'
        why = refused(f"{kind}AdmissionPolicyBinding", "paramRef", text)
        held = await here.create(policy(kind, paramKind=SECRETS), MASTER)
        assert await no(here.create(binding(kind, paramRef=reference), LIM)) == why
        await here.create(binding(kind), LIM)
        made = await here.get(BY_KIND[API, f"{kind}AdmissionPolicyBinding"], "b")
        made["spec"]["paramRef"] = reference
        assert await no(here.update(made, caller=LIM)) == why
        await here.update(held | {"spec": held["spec"] | {"paramKind": CONFIG_MAPS}}, caller=MASTER)
        made = await here.update(made, caller=LIM)
        # The policy may be about another kind by now: every update is asked for.
        held = await here.get(BY_KIND[API, f"{kind}AdmissionPolicy"], "p")
        await here.update(held | {"spec": held["spec"] | {"paramKind": SECRETS}}, caller=MASTER)
        made["metadata"]["labels"] = {"a": "b"}
        assert await no(here.update(made, caller=LIM)) == why

    names = ("params",) if verb == "get" else ()
    told(story, rule(verb, "configmaps", *names), rule(other, "secrets"))


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_kind_is_not_known_a_binding_needs_the_right_to_everything(kind: str) -> None:
    why = f'to determine minimum required permissions and user {SHOWN} does not have "get" permission for all groups'

    async def story(here: World) -> None:
        bound = binding(kind, paramRef=NAMED)
        assert f"unable to get policy p {why}" in (await no(here.create(bound, LIM)))[2]
        await here.create(policy(kind, paramKind={"apiVersion": "v1", "kind": "Gadget"}), MASTER)
        assert f"unable to resolve paramKind &{{v1 Gadget}} {why}" in (await no(here.create(bound, LIM)))[2]

    told(story, rule("get", "configmaps"))

    async def allowed(here: World) -> None:
        await here.create(binding(kind, paramRef=NAMED), LIM)
        await here.create(policy(kind, paramKind={"apiVersion": "v1", "kind": "Gadget"}), LIM)

    told(allowed, EVERYTHING)
