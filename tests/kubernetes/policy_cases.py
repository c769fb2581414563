"""Admission policies, their bindings and writes, for comparing what two servers say of them."""

from __future__ import annotations

from typing import Any

from kubernetes.objects import Json

API = "admissionregistration.k8s.io/v1"
SHOWN = {"matchLabels": {"case": "yes"}}


def rule(resources: str = "configmaps", groups: str = "", operations: str = "*", **more: Any) -> Json:
    return {
        "apiGroups": [groups],
        "apiVersions": ["v1"],
        "operations": operations.split(),
        "resources": resources.split(),
        **more,
    }


def validating(name: str, *validations: Any, rules: list[Json] | None = None, **spec: Any) -> Json:
    """A validation is a map, or an expression."""
    constraints = {"resourceRules": [rule()] if rules is None else rules}
    given = [{"expression": one} if isinstance(one, str) else one for one in validations]
    whole = {"matchConstraints": constraints, **({"validations": given} if given else {}), **spec}
    return {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}


def bound(policy: str, name: str = "", actions: str = "Deny", kind: str = "Validating", **spec: Any) -> Json:
    acting = {"validationActions": actions.split()} if kind == "Validating" else {}
    return {
        "apiVersion": API,
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": name or policy},
        "spec": {"policyName": policy, **acting, **spec},
    }


def mutating(name: str, *mutations: str, rules: list[Json] | None = None, **spec: Any) -> Json:
    """A mutation is an expression: for JSON patches if it begins with a bracket."""
    made = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": one}}
        if one.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}}
        for one in mutations
    ]
    whole = {
        "matchConstraints": {"resourceRules": [rule(operations="CREATE UPDATE")] if rules is None else rules},
        "mutations": made,
        "reinvocationPolicy": "Never",
        **spec,
    }
    return {"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Json:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(name: str, replicas: int = 1) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


INVALID: list[Json] = [
    {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "empty"}, "spec": {}},
    validating("no-rules", "true", rules=[]),
    validating("syntax", "object.x ++"),
    validating("not-bool", "object.x", "1 + 1", "'a'", "request.dryRun"),
    validating("undefined", "foo == 1", "params.x == 1", "variables.x == 1", "request.foo == 1"),
    validating("with-params", "params.x == 1", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
    validating("kinds", "true", paramKind={"apiVersion": "a/b/c", "kind": "No_Kind"}),
    validating("kinds-2", "true", paramKind={"apiVersion": "A_b/V1"}),
    validating("kinds-3", "true", paramKind={"kind": "ConfigMap"}),
    validating(
        "variables",
        "variables.a > 1",
        "variables.text > 1",
        "variables.none",
        "variables.user.foo == 'a'",
        "variables.list[0] + 'a' == ''",
        variables=[
            {"name": "a", "expression": "object.x"},
            {"name": "text", "expression": "'a'"},
            {"name": "list", "expression": "[1, 2].map(x, x + 1)"},
            {"name": "user", "expression": "request.userInfo"},
            {"name": "b", "expression": "variables.c"},
            {"name": "c", "expression": "variables.b"},
            {"name": "in", "expression": "1"},
            {"name": "a-b", "expression": " "},
            {"name": " ", "expression": "size(1)"},
        ],
    ),
    validating(
        "messages",
        {"expression": "true", "messageExpression": "1"},
        {"expression": "true", "messageExpression": " "},
        {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"},
        {"expression": "true", "message": " "},
        {"expression": "true", "message": "a\nb"},
        {"expression": "true", "reason": "NotFound"},
        {"expression": " "},
    ),
    validating(
        "audits",
        auditAnnotations=[
            {"key": "a", "valueExpression": "'x'"},
            {"key": "a", "valueExpression": "null"},
            {"key": "b", "valueExpression": "1"},
            {"key": "c", "valueExpression": " "},
            {"key": "a b", "valueExpression": "object.x"},
            {"key": "long", "valueExpression": "'" + "x" * 6000 + "'"},
        ],
    ),
    validating(
        "conditions",
        "true",
        matchConditions=[
            {"name": "a", "expression": "variables.x"},
            {"name": "a", "expression": "1"},
            {"name": "", "expression": ""},
            {"name": "a b", "expression": "params.x == 1"},
        ],
    ),
    validating("failure", "true", failurePolicy="Maybe"),
    validating(
        "rules",
        "true",
        rules=[
            rule("pods *", operations="CREATE *"),
            rule("pods/* pods/status", operations="GET", scope="Some"),
            rule("*/status pods/status */*", resourceNames=["a", "a", "a/b"]),
            {},
        ],
    ),
    validating(
        "selectors",
        "true",
        matchConstraints={
            "resourceRules": [rule()],
            "matchPolicy": "Some",
            "namespaceSelector": {"matchLabels": {"a b": "c d"}},
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]},
        },
    ),
    bound("", name="nameless"),
    bound("A_b", name="odd", actions="Deny Warn Warn Log"),
    bound("p", name="none", actions=""),
    bound("p", name="refs", paramRef={}),
    bound("p", name="refs-2", paramRef={"name": "a/b", "selector": {}, "parameterNotFoundAction": "Maybe"}),
    bound("p", name="refs-3", paramRef={"selector": {"matchLabels": {"a b": ""}}, "parameterNotFoundAction": "Deny"}),
    bound("p", name="resources", matchResources={"resourceRules": [rule("")], "matchPolicy": "Any"}),
    {"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "empty"}, "spec": {}},
    mutating("deleting", "Object{}", rules=[rule(operations="DELETE CREATE")]),
    mutating("types", "Object.spec{}", "{'a': 1}", "[1]", "object", "[JSONPatch{op: 1}]", "Objects{}", "Object{a: b}"),
    mutating("fields", "[JSONPatch{op: 'add', path: '/a', value: Object.x{a: 1}}]", "Object{a: Object.b{c: 1}}"),
    mutating("never", "Object{}", reinvocationPolicy="Sometimes"),
    mutating("again", "Object{}", reinvocationPolicy=""),
    mutating(
        "patches",
        mutations=[
            {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
            {"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": " "}},
            {"patchType": "Merge"},
            {},
        ],
    ),
    bound("p", kind="Mutating", matchResources={"resourceRules": [rule(operations="DELETE")]}),
    validating("reserved.static.k8s.io", "true"),
]
"""What is refused when it is written, and what only looks as if it should be."""


# -- what policies say of writes ---------------------------------------------------------------------------------------

Write = tuple[str, Json]
"""A verb, and the object."""
Case = tuple[list[Json], list[Write]]
"""What is there, and what is written. Policies are about the objects of their own case, by a label."""


CASES: dict[str, Case] = {
    "deny": (
        [validating("deny", "object.data.a == 'yes'"), bound("deny")],
        [
            ("create", config_map("good", a="yes")),
            ("create", config_map("bad", a="no")),
            ("create", config_map("missing", b="no")),
            ("update", config_map("good", a="no")),
            ("update", config_map("good", a="yes", b="more")),
            ("create", {**config_map("", a="no"), "metadata": {"generateName": "prefix-"}}),
        ],
    ),
    "reasons": (
        [
            validating(
                "reasons",
                {"expression": "object.data.a != '1'", "reason": "Forbidden", "message": "not one"},
                {"expression": "object.data.a != '2'", "reason": "RequestEntityTooLarge"},
                {"expression": "object.data.a != '3'", "messageExpression": "'not ' + object.data.a + ' please '"},
                {
                    "expression": "object.data.a != '4'",
                    "messageExpression": "string(object.data.none)",
                    "message": " none ",
                },
                {"expression": "object.data.a != '5'", "messageExpression": "'two\\nlines'"},
                {"expression": "!(object.data.a in ['6', '7'])", "message": "first"},
                {"expression": "object.data.a != '6'", "message": "second"},
            ),
            bound("reasons"),
        ],
        [("create", config_map(f"reason-{at}", a=str(at))) for at in range(9)],
    ),
    "warn": (
        [
            validating("warn", {"expression": "object.data.a == '1'", "message": "not one"}, "object.data.b == '1'"),
            bound("warn", actions="Warn Audit"),
        ],
        [("create", config_map("warned", a="2", b="1")), ("create", config_map("warned-2", a="2"))],
    ),
    "ignored": (
        [validating("ignored", "object.data.none == 'x'", "object.data.a == '1'", failurePolicy="Ignore")]
        + [bound("ignored")],
        [("create", config_map("ignored", a="1")), ("create", config_map("ignored-2", a="2"))],
    ),
    "conditions": (
        [
            validating(
                "conditions",
                {"expression": "false", "message": "matched"},
                matchConditions=[
                    {"name": "named", "expression": "object.metadata.name.startsWith('yes')"},
                    {"name": "data", "expression": "object.data.a == '1'"},
                ],
            ),
            bound("conditions"),
        ],
        [
            ("create", config_map("yes", a="1")),
            ("create", config_map("no", a="1")),
            ("create", config_map("yes-2")),
            ("create", config_map("no-2")),
        ],
    ),
    "variables": (
        [
            validating(
                "variables",
                {"expression": "variables.sum < 10", "messageExpression": "'sum is ' + string(variables.sum)"},
                "variables.fails || object.data.a != '2'",
                variables=[
                    {"name": "numbers", "expression": "object.data.a.split(',').map(x, int(x))"},
                    {"name": "sum", "expression": "variables.numbers.sum()"},
                    {"name": "fails", "expression": "object.data.none == 'x'"},
                ],
            ),
            bound("variables"),
        ],
        [
            ("create", config_map("sum", a="1,2")),
            ("create", config_map("sum-2", a="1,2,8")),
            ("create", config_map("sum-3", a="2")),
            ("create", config_map("sum-4", a="x")),
        ],
    ),
    "params": (
        [
            config_map("limit", {"limits": "yes"}, most="3"),
            config_map("limit-2", {"limits": "yes"}, most="5"),
            validating(
                "params",
                {
                    "expression": "params == null || object.data.a.size() <= int(params.data.most)",
                    "messageExpression": "'at most ' + params.data.most + ' by ' + params.metadata.name",
                },
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            ),
            bound("params", paramRef={"name": "limit", "parameterNotFoundAction": "Deny"}),
            bound("params", "unlimited"),
        ],
        [("create", config_map("short", a="abc")), ("create", config_map("long", a="abcd"))],
    ),
    "selected": (
        [
            validating(
                "selected",
                {
                    "expression": "object.data.a.size() <= int(params.data.most)",
                    "messageExpression": "string(params.data.most)",
                },
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            ),
            bound(
                "selected",
                paramRef={"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"},
            ),
        ],
        [("create", config_map("abc", a="abc")), ("create", config_map("abcde", a="abcde"))],
    ),
    "no-params": (
        [
            validating("no-params", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            bound("no-params", paramRef={"name": "none", "parameterNotFoundAction": "Deny"}),
        ],
        [("create", config_map("without"))],
    ),
    "allowed-params": (
        [
            validating("allowed-params", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            bound("allowed-params", paramRef={"name": "none", "parameterNotFoundAction": "Allow"}),
        ],
        [("create", config_map("allowed"))],
    ),
    "unknown-params": (
        [
            validating("unknown-params", "true", paramKind={"apiVersion": "example.com/v1", "kind": "None"}),
            bound("unknown-params", paramRef={"name": "none", "parameterNotFoundAction": "Allow"}),
        ],
        [("create", config_map("unknown"))],
    ),
    "request": (
        [
            validating(
                "request",
                {
                    "expression": "false",
                    "messageExpression": (
                        "[request.operation, request.kind.kind, request.resource.resource, request.name, "
                        "request.userInfo.username, string(request.dryRun), string(has(request.subResource)), "
                        "string(oldObject == null), string(object == null), string(request.options.kind), "
                        "string(namespaceObject.metadata.name == request.namespace)].join(' ')"
                    ),
                },
            ),
            bound("request"),
        ],
        [
            ("create", config_map("requested")),
            ("create", {**config_map(""), "metadata": {"generateName": "prefix-"}}),
        ],
    ),
    "authorizer": (
        [
            validating(
                "authorizer",
                "authorizer.group('apps').resource('deployments').namespace('default').check('create').allowed()",
                "authorizer.requestResource.check('create').allowed()",
                "!authorizer.serviceAccount('default', 'none').path('/metrics').check('get').allowed()",
                {
                    "expression": "object.data.a != '1'",
                    "message": "one",
                },
            ),
            bound("authorizer"),
        ],
        [("create", config_map("authorized", a="2")), ("create", config_map("authorized-2", a="1"))],
    ),
    "deletes": (
        [
            validating("deletes", "oldObject.data.a == 'yes' && object == null", rules=[rule(operations="DELETE")]),
            bound("deletes"),
        ],
        [
            ("create", config_map("kept", a="no")),
            ("create", config_map("deleted", a="yes")),
            ("delete", config_map("kept")),
            ("delete", config_map("deleted")),
        ],
    ),
    "scaled": (
        [
            validating(
                "scaled",
                {"expression": "object.spec.replicas <= 2", "messageExpression": "object.kind + ' is too large'"},
                rules=[rule("deployments deployments/scale", "apps")],
            ),
            bound("scaled"),
        ],
        [("create", deployment("two", 2)), ("create", deployment("three", 3))],
    ),
    "excluded": (
        [
            validating(
                "excluded",
                {"expression": "false", "message": "not excluded"},
                matchConstraints={
                    "resourceRules": [rule("configmaps")],
                    "excludeResourceRules": [rule(resourceNames=["excluded"])],
                },
            ),
            bound("excluded"),
        ],
        [("create", config_map("excluded")), ("create", config_map("included"))],
    ),
    "bindings": (
        [
            validating("bindings", "false"),
            bound("bindings", matchResources={"resourceRules": [rule(resourceNames=["named"])]}),
        ],
        [("create", config_map("named")), ("create", config_map("other"))],
    ),
    "unbound": ([validating("unbound", "false")], [("create", config_map("unbound"))]),
    "expensive": (
        [validating("expensive", "object.data.a.split(',').all(x, object.data.a.split(',').all(y, x != y + '.'))")]
        + [bound("expensive")],
        [("create", config_map("cheap", a="1,2,3"))],
    ),
    "audit": (
        [
            validating(
                "audit",
                auditAnnotations=[
                    {"key": "a", "valueExpression": "'a is ' + object.data.a"},
                    {"key": "null", "valueExpression": "null"},
                ],
            ),
            bound("audit"),
        ],
        [("create", config_map("audited", a="1")), ("create", config_map("unaudited"))],
    ),
    "labelled": (
        [
            mutating("labelled", "Object{metadata: Object.metadata{labels: {'added': object.data.a}}}"),
            bound("labelled", kind="Mutating"),
        ],
        [("create", config_map("labelled", a="1")), ("create", config_map("labelled-2"))],
    ),
    "patched": (
        [
            mutating(
                "patched",
                "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, "
                "JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('b/c'), value: 'd'}, "
                "JSONPatch{op: 'copy', from: '/data/a', path: '/data/copied'}]",
            ),
            bound("patched", kind="Mutating"),
        ],
        [("create", config_map("patched", a="1")), ("create", config_map("unpatched", a="2"))],
    ),
    "in-order": (
        [
            mutating(
                "in-order",
                "Object{data: Object.data{b: object.data.a + '-first'}}",
                "Object{data: Object.data{c: object.data.b + '-' + variables.kind}}",
                "[JSONPatch{op: 'remove', path: '/data/a'}]",
                variables=[{"name": "kind", "expression": "object.kind"}],
            ),
            bound("in-order", kind="Mutating"),
        ],
        [("create", config_map("ordered", a="1")), ("update", config_map("ordered", a="2"))],
    ),
    "merged": (
        [
            mutating(
                "merged",
                "Object{spec: Object.spec{replicas: 3, template: Object.spec.template{spec: "
                "Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'c', "
                "imagePullPolicy: 'Never'}, Object.spec.template.spec.containers{name: 'd', image: 'j'}]}}}}",
                rules=[rule("deployments", "apps", "CREATE")],
            ),
            bound("merged", kind="Mutating"),
        ],
        [("create", deployment("merged"))],
    ),
    "wrong": (
        [
            mutating(
                "wrong-atomic",
                "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}",
                rules=[rule("deployments", "apps", "CREATE")],
            ),
            bound("wrong-atomic", kind="Mutating"),
        ],
        [("create", deployment("atomic"))],
    ),
    "misnamed": (
        [
            mutating("misnamed", "Object{data: Object.daten{b: 'c'}}"),
            bound("misnamed", kind="Mutating"),
        ],
        [("create", config_map("misnamed"))],
    ),
    "undeclared": (
        [mutating("undeclared", "Object{date: Object.date{b: 'c'}}"), bound("undeclared", kind="Mutating")],
        [("create", config_map("undeclared"))],
    ),
    "failing": (
        [
            mutating("failing", "Object{data: Object.data{b: object.data.none}}"),
            bound("failing", kind="Mutating"),
        ],
        [("create", config_map("failing", a="1"))],
    ),
    "failing-quietly": (
        [
            mutating("quiet", "Object{data: Object.data{b: object.data.none}}", failurePolicy="Ignore"),
            bound("quiet", kind="Mutating"),
        ],
        [("create", config_map("quiet", a="1"))],
    ),
    "conditional": (
        [
            mutating(
                "conditional",
                "Object{data: Object.data{b: 'added'}}",
                matchConditions=[{"name": "a", "expression": "object.data.a == '1'"}],
            ),
            bound("conditional", kind="Mutating"),
        ],
        [
            ("create", config_map("conditional", a="1")),
            ("create", config_map("conditional-2", a="2")),
            ("create", config_map("conditional-3")),
        ],
    ),
    "reinvoked": (
        [
            mutating(
                "reinvoked-a",
                "Object{data: Object.data{count: string(int(object.data.count) + 1)}}",
                reinvocationPolicy="IfNeeded",
            ),
            bound("reinvoked-a", kind="Mutating"),
        ],
        [("create", config_map("reinvoked", count="1"))],
    ),
    "mutated-params": (
        [
            config_map("owner", who="ann"),
            mutating(
                "mutated-params",
                "Object{metadata: Object.metadata{annotations: {'owner': string(params.data.who)}}}",
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            ),
            bound("mutated-params", kind="Mutating", paramRef={"name": "owner", "parameterNotFoundAction": "Deny"}),
        ],
        [("create", config_map("owned"))],
    ),
    "validated-after": (
        [
            mutating("validated-after", "Object{data: Object.data{a: 'mutated'}}"),
            bound("validated-after", kind="Mutating"),
            validating("validated-after", "object.data.a != 'mutated'"),
            bound("validated-after"),
        ],
        [("create", config_map("both", a="1"))],
    ),
}
