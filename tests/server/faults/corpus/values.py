"""Objects whose fields have the right types and the wrong values."""

# ruff: noqa: E501 - tables read better in rows

from collections.abc import Iterator
from typing import Any

from server.faults.corpus.case import Case, dumped
from server.faults.corpus.objects import (
    BINDING,
    BUDGET,
    CLAIM,
    CONTAINER,
    CORE,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    LEASE,
    NODE,
    PODS,
    PRIORITY,
    ROLE,
    SAMPLES,
    SELECTOR,
    SERVICE,
    STATEFUL_SET,
    VOLUME,
    Object,
    pod,
)

QUANTITIES = (
    "1e999999999", "1e-999999999", "1e31", "1e400", "9" * 65, "9" * 10_000, "0." + "0" * 5000 + "1", "١٢٣", "１", "-1", "-0.5",
    "1.5.5", "1Kii", "1k1", "abc", "", " 1", "1 ", "1\n", "+", "-", ".", "1e", "1e1.5", "0x10", "NaN", "Inf", "1,000", "1Mi ",
    "1 Mi", "--1", "1E", "1mm", "1KI", "1b", "½", "1e+", "1e5x", "\x00", "1_000",
)  # fmt: skip
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def cases() -> Iterator[Case]:
    yield from _quantities()
    yield from _placing()
    yield from _containers()
    yield from _metadata()
    yield from _nodes()
    yield from _others()


def _pod(name: str, /, **spec: Any) -> Case:
    return Case(f"value: {name}", "POST", PODS, dumped(pod(**spec)))


def _container(name: str, /, **fields: Any) -> Case:
    return _pod(name, containers=[CONTAINER | fields])


def _quantities() -> Iterator[Case]:
    for text in QUANTITIES:
        shown = ascii(text) if len(text) < 30 else f"of {len(text)} characters"
        requests = {"resources": {"requests": {"cpu": text}}}
        yield Case(f"value: cpu {shown}", "POST", f"{PODS}?dryRun=All", dumped(pod(containers=[CONTAINER | requests])))
        allocatable = {"status": {"allocatable": {"memory": text}}}
        yield Case(f"value: memory {shown} of a node", "POST", "/api/v1/nodes?dryRun=All", dumped(NODE | allocatable))
    odd: tuple[Any, ...] = (1e300, -1, 1.5, True, [], {}, 2**80)
    for raw in odd:
        requests = {"resources": {"requests": {"cpu": raw}}}
        yield Case(f"value: cpu {raw!r}", "POST", f"{PODS}?dryRun=All", dumped(pod(containers=[CONTAINER | requests])))
    for name, resources in {
        "a request over its limit": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        "a resource without a domain": {"requests": {"odd": "1"}},
        "half a device": {"requests": {"example.com/gpu": "500m"}, "limits": {"example.com/gpu": "500m"}},
        "a device without a limit": {"requests": {"example.com/gpu": "1"}},
        "a device with another limit": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}},
        "a resource with a bad name": {"requests": {"example.com/a b": "1"}},
        "a resource with two slashes": {"requests": {"a/b/c": "1"}},
        "a resource without a name": {"requests": {"": "1"}},
        "huge pages alone": {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}},
        "huge pages that are unequal": {
            "requests": {"cpu": "1", "hugepages-2Mi": "2Mi"},
            "limits": {"hugepages-2Mi": "4Mi"},
        },
        "pods": {"requests": {"pods": "1"}},
        "a claim that is not there": {"claims": [{"name": "none"}]},
    }.items():
        yield _container(name, resources=resources)


def _terms(*expressions: Object, key: str = "matchExpressions") -> Object:
    return {"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": [{key: list(expressions)}]}}}


def _placing() -> Iterator[Case]:
    for operator, values in (
        ("In", []), ("In", None), ("NotIn", []), ("Exists", ["a"]), ("DoesNotExist", ["a"]), ("Gt", []), ("Gt", ["1", "2"]),
        ("Gt", ["x"]), ("Lt", ["1.5"]), ("Lt", [""]), ("Odd", ["a"]), ("in", ["a"]), ("", ["a"]), ("In", ["a b"]), ("In", ["a" * 64]),
    ):  # fmt: skip
        expression = {"key": "a", "operator": operator, "values": values}
        body = dumped(pod(affinity=_terms(expression)))
        yield Case(f"value: node affinity {operator} {str(values)[:30]}", "POST", f"{PODS}?dryRun=All", body)
        selector = {"matchExpressions": [expression]}
        spread = [{"labelSelector": selector, "topologyKey": "zone"}]
        yield _pod(
            f"pod affinity {operator} {str(values)[:30]}x", affinity={"podAffinity": {AFFINITY: spread}}, hostname="A_"
        )
    for key in ("", "a b", "-a", "a/b/c", "a" * 64, "é"):
        yield _pod(f"node affinity with the key {key[:10]!r}", affinity=_terms({"key": key, "operator": "Exists"}))
        yield _pod(f"a nodeSelector with the key {key[:10]!r}", nodeSelector={key: "a"})
        yield _pod(f"topologyKey {key[:10]!r}", affinity={"podAntiAffinity": {AFFINITY: [{"topologyKey": key}]}})
        yield _pod(f"spread by {key[:10]!r}", topologySpreadConstraints=[_spread(topologyKey=key)])
        yield _pod(f"a toleration of {key[:10]!r}", tolerations=[{"key": key, "operator": "Equal", "value": "x"}])
    yield _pod(
        "matchFields of another field",
        affinity=_terms({"key": "a", "operator": "In", "values": ["b"]}, key="matchFields"),
    )
    yield _pod("no nodeSelectorTerms", affinity={"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": []}}})
    for weight in (0, 101, -1):
        preference = {"weight": weight, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
        yield _pod(f"a weight of {weight} for a node", affinity={"nodeAffinity": {PREFERRED: [preference]}})
        term = {"weight": weight, "podAffinityTerm": {"topologyKey": "zone"}}
        yield _pod(f"a weight of {weight} for a pod", affinity={"podAffinity": {PREFERRED: [term]}})
    elsewhere = {"topologyKey": "zone", "namespaces": ["A_"]}
    yield _pod("affinity in a namespace that is none", affinity={"podAffinity": {AFFINITY: [elsewhere]}})
    spreads: dict[str, Object] = {
        "maxSkew 0": {"maxSkew": 0}, "maxSkew -1": {"maxSkew": -1}, "whenUnsatisfiable Odd": {"whenUnsatisfiable": "Odd"},
        "whenUnsatisfiable absent": {"whenUnsatisfiable": ""}, "minDomains 0": {"minDomains": 0},
        "minDomains of ScheduleAnyway": {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
        "nodeAffinityPolicy Odd": {"nodeAffinityPolicy": "Odd"}, "nodeTaintsPolicy Odd": {"nodeTaintsPolicy": "Odd"},
        "matchLabelKeys that are bad": {"matchLabelKeys": ["a b"]}, "a selector with Odd": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}},
    }  # fmt: skip
    for name, fields in spreads.items():
        yield _pod(f"spread with {name}", topologySpreadConstraints=[_spread(**fields)])
    yield _pod("two spreads alike", topologySpreadConstraints=[_spread(), _spread()])
    for name, toleration in {
        "operator Odd": {"key": "a", "operator": "Odd"}, "Exists with a value": {"key": "a", "operator": "Exists", "value": "b"},
        "Equal without a key": {"operator": "Equal", "value": "b"}, "effect Odd": {"key": "a", "operator": "Exists", "effect": "Odd"},
        "seconds without NoExecute": {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
        "a bad value": {"key": "a", "operator": "Equal", "value": "b c"},
    }.items():  # fmt: skip
        yield _pod(f"a toleration with {name}", tolerations=[toleration])
    yield _pod("a class of priority that is not there", priorityClassName="none")
    yield _pod("a class and another priority", priorityClassName="high", priority=7)
    yield _pod("a priority of its own", priority=2_000_000_001)
    yield _pod("preemptionPolicy Odd", preemptionPolicy="Odd")
    yield _pod("two gates alike", schedulingGates=[{"name": "a"}, {"name": "a"}])
    yield _pod("a gate without a name", schedulingGates=[{"name": ""}])
    yield _pod("a gate and a node", schedulingGates=[{"name": "a"}], nodeName="n1")
    yield _pod("a schedulerName that is bad", schedulerName="A_ b")
    yield _pod("a nodeName that is bad", nodeName="A_ b")


def _spread(**fields: Any) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": SELECTOR,
    } | fields


def _containers() -> Iterator[Case]:
    for number in (0, -1, 65536, 70000, 2**31 - 1):
        yield _container(f"containerPort {number}", ports=[{"containerPort": number}])
        yield _container(f"hostPort {number or -2}", ports=[{"containerPort": 80, "hostPort": number or -2}])
    yield _container(
        "two ports of one name", ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]
    )
    yield _container("a port with a long name", ports=[{"containerPort": 1, "name": "a" * 16}])
    yield _container("a protocol Odd", ports=[{"containerPort": 1, "protocol": "Odd"}])
    yield _container("a hostIP that is none", ports=[{"containerPort": 1, "hostPort": 2, "hostIP": "999.1.1.1"}])
    yield _pod(
        "host network and another host port",
        hostNetwork=True,
        containers=[CONTAINER | {"ports": [{"containerPort": 1, "hostPort": 2}]}],
    )
    yield _pod("no containers", containers=[])
    yield _pod("two containers of one name", containers=[CONTAINER, CONTAINER])
    for name in ("", "A", "a_b", "a" * 64, "a.b", "-"):
        yield _container(f"a container called {name[:10]!r}", name=name)
    yield _container("no image", image="")
    yield _container("imagePullPolicy Odd", imagePullPolicy="Odd")
    yield _container("an image with spaces", image=" a ")
    yield _container("a variable without a name", env=[{"name": "", "value": "x"}])
    yield _container("a variable with = in its name", env=[{"name": "a=b", "value": "x"}])
    yield _container(
        "a variable with two sources",
        env=[{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    )
    yield _container("a field that is none", env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "odd"}}}])
    yield _container("a mount of nothing", volumeMounts=[{"name": "none", "mountPath": "/a"}])
    yield _container("a probe with two ways", livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}})
    yield _container("a probe with none", livenessProbe={"periodSeconds": 5})
    yield _container("a probe with -1", livenessProbe={"tcpSocket": {"port": 1}, "periodSeconds": -1})
    yield _container("a probe of port 0", readinessProbe={"tcpSocket": {"port": 0}})
    yield _container("a relative mount up", volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "../b"}])
    yield _container(
        "privileged without escalation", securityContext={"privileged": True, "allowPrivilegeEscalation": False}
    )
    yield _pod("restartPolicy Odd", restartPolicy="Odd")
    yield _pod("dnsPolicy Odd", dnsPolicy="Odd")
    yield _pod("activeDeadlineSeconds 0", activeDeadlineSeconds=0)
    yield _pod("a grace of -5", terminationGracePeriodSeconds=-5, hostname="A_")
    yield _pod("a hostname that is bad", hostname="A_")
    yield _pod("a volume without a name", volumes=[{"emptyDir": {}}])
    yield _pod("two volumes of one name", volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}])
    yield _pod("a volume of two kinds", volumes=[{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}])
    yield _pod("a hostPath up", volumes=[{"name": "a", "hostPath": {"path": "/a/../b"}}])
    yield _pod("a hostPath of type Odd", volumes=[{"name": "a", "hostPath": {"path": "/a", "type": "Odd"}}])
    yield _pod("runAsUser -1", securityContext={"runAsUser": -1})
    yield _pod("a pull secret that is bad", containers=[], imagePullSecrets=[{"name": "A_"}])
    yield _pod("an init container with a container's name", initContainers=[CONTAINER])
    yield _pod("ephemeral containers", ephemeralContainers=[CONTAINER | {"name": "e"}])
    yield _pod("a sysctl that is bad", securityContext={"sysctls": [{"name": "a b", "value": "1"}]})
    yield _pod("an overhead that is negative", overhead={"cpu": "-1"})


def _metadata() -> Iterator[Case]:
    odd: dict[str, Object] = {
        "a label without a name": {"labels": {"": "a"}}, "a label with a space": {"labels": {"a b": "c"}},
        "a label with a long value": {"labels": {"a": "b" * 64}}, "a label with a bad value": {"labels": {"a": "-b"}},
        "a label with a long name": {"labels": {"a" * 64: "b"}}, "a label with two slashes": {"labels": {"a/b/c": "d"}},
        "a label with a bad prefix": {"labels": {"A_/b": "c"}}, "a label with a newline": {"labels": {"a": "b\n"}},
        "a label in Arabic": {"labels": {"a": "١"}}, "an annotation with a space": {"annotations": {"a b": "c"}},
        "an annotation without a name": {"annotations": {"": "c"}}, "a finalizer without a domain": {"finalizers": ["odd"]},
        "a finalizer with spaces": {"finalizers": ["a/b c"]}, "an owner of nothing": {"ownerReferences": [{}]},
        "an owner without a uid": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
        "an owner that is an event": {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "1"}]},
        "two controllers": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"]},
        "managedFields that are bad": {"managedFields": [{"operation": "Odd", "fieldsType": "Odd"}]},
        "no name": {"name": ""}, "a time that is none": {"creationTimestamp": "yesterday"}, "a time without a zone": {"creationTimestamp": "2020-01-01T00:00:00"},
        "a deletion time": {"deletionTimestamp": "x"},
    }  # fmt: skip
    for name, metadata in odd.items():
        for kind in ("pod", "configmap", "node"):
            path, sample = SAMPLES[kind]
            body = dumped(sample | {"metadata": {"name": "new"} | metadata})
            where = f"{path}?dryRun=All" if "managedFields" in metadata else path
            yield Case(f"value: {kind} with {name}", "POST", where, body)


def _nodes() -> Iterator[Case]:
    for name, spec in {
        "a taint without a key": {"taints": [{"key": "", "effect": "NoSchedule"}]}, "a taint with a bad key": {"taints": [{"key": "a b", "effect": "NoSchedule"}]},
        "a taint with effect Odd": {"taints": [{"key": "a", "effect": "Odd"}]}, "a taint without an effect": {"taints": [{"key": "a"}]},
        "a taint with a bad value": {"taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]},
        "two taints alike": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}, "podCIDRs that are none": {"podCIDRs": ["x"]},
        "podCIDR that is another": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.1.0/24"]},
    }.items():  # fmt: skip
        yield Case(f"value: a node with {name}", "POST", "/api/v1/nodes", dumped(NODE | {"spec": spec}))


def _changed(kind: str, sample: Object, **spec: Any) -> tuple[str, bytes]:
    return SAMPLES[kind][0], dumped(sample | {"spec": sample["spec"] | spec})


def _others() -> Iterator[Case]:
    other = {"matchLabels": {"app": "other"}}
    odd: list[tuple[str, Object, str, Any]] = [
        ("deployment", DEPLOYMENT, "replicas", -1), ("deployment", DEPLOYMENT, "selector", other), ("deployment", DEPLOYMENT, "selector", {}),
        ("deployment", DEPLOYMENT, "strategy", {"type": "Odd"}), ("deployment", DEPLOYMENT, "minReadySeconds", -1),
        ("deployment", DEPLOYMENT, "revisionHistoryLimit", -1), ("deployment", DEPLOYMENT, "progressDeadlineSeconds", 0),
        ("deployment", DEPLOYMENT, "strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
        ("deployment", DEPLOYMENT, "strategy", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
        ("deployment", DEPLOYMENT, "strategy", {"rollingUpdate": {"maxSurge": "x%"}}), ("deployment", DEPLOYMENT, "strategy", {"rollingUpdate": {"maxUnavailable": "200%"}}),
        ("deployment", DEPLOYMENT, "strategy", {"rollingUpdate": {"maxSurge": -1}}), ("deployment", DEPLOYMENT, "template", {}),
        ("statefulset", STATEFUL_SET, "replicas", -1), ("statefulset", STATEFUL_SET, "podManagementPolicy", "Odd"),
        ("statefulset", STATEFUL_SET, "updateStrategy", {"type": "Odd"}), ("statefulset", STATEFUL_SET, "selector", other),
        ("daemonset", DAEMON_SET, "selector", other), ("daemonset", DAEMON_SET, "updateStrategy", {"type": "Odd"}),
        ("job", JOB, "parallelism", -1), ("job", JOB, "completions", -1), ("job", JOB, "backoffLimit", -1), ("job", JOB, "completionMode", "Odd"),
        ("job", JOB, "activeDeadlineSeconds", -1), ("job", JOB, "ttlSecondsAfterFinished", -1), ("job", JOB, "selector", SELECTOR),
        ("job", JOB, "template", {"spec": {"containers": [CONTAINER]}}), ("job", JOB, "template", {"spec": {"containers": [CONTAINER], "restartPolicy": "Always"}}),
        ("job", JOB, "podFailurePolicy", {"rules": [{"action": "Odd"}]}), ("job", JOB, "manualSelector", True),
        ("cronjob", CRON_JOB, "schedule", "odd"), ("cronjob", CRON_JOB, "schedule", ""), ("cronjob", CRON_JOB, "schedule", "60 * * * *"),
        ("cronjob", CRON_JOB, "schedule", "* * * * * *"), ("cronjob", CRON_JOB, "schedule", "@odd"), ("cronjob", CRON_JOB, "schedule", "TZ=UTC * * * * *"),
        ("cronjob", CRON_JOB, "schedule", "*/0 * * * *"), ("cronjob", CRON_JOB, "schedule", "5-1 * * * *"), ("cronjob", CRON_JOB, "timeZone", "Odd/Place"),
        ("cronjob", CRON_JOB, "timeZone", "../../etc/passwd"), ("cronjob", CRON_JOB, "timeZone", "Local"), ("cronjob", CRON_JOB, "concurrencyPolicy", "Odd"),
        ("cronjob", CRON_JOB, "startingDeadlineSeconds", -1), ("cronjob", CRON_JOB, "successfulJobsHistoryLimit", -1),
        ("service", SERVICE, "type", "Odd"), ("service", SERVICE, "ports", []), ("service", SERVICE, "ports", [{"port": 0}]),
        ("service", SERVICE, "ports", [{"port": 70000}]), ("service", SERVICE, "ports", [{"port": 80}, {"port": 81}]),
        ("service", SERVICE, "ports", [{"name": "A_", "port": 80}]), ("service", SERVICE, "ports", [{"port": 80, "protocol": "Odd"}]),
        ("service", SERVICE, "ports", [{"port": 80, "targetPort": "A_"}]), ("service", SERVICE, "ports", [{"port": 80, "targetPort": 0x20000}]),
        ("service", SERVICE, "clusterIP", "x"), ("service", SERVICE, "sessionAffinity", "Odd"), ("service", SERVICE, "externalIPs", ["x"]),
        ("service", SERVICE, "ipFamilyPolicy", "Odd"), ("service", SERVICE, "selector", {"a b": "c"}), ("service", SERVICE, "externalName", "A_ b"),
        ("budget", BUDGET, "minAvailable", -1), ("budget", BUDGET, "minAvailable", "x"), ("budget", BUDGET, "minAvailable", "200%"),
        ("budget", BUDGET, "maxUnavailable", 1), ("budget", BUDGET, "unhealthyPodEvictionPolicy", "Odd"), ("budget", BUDGET, "selector", {"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
        ("claim", CLAIM, "accessModes", []), ("claim", CLAIM, "accessModes", ["Odd"]), ("claim", CLAIM, "resources", {}), ("claim", CLAIM, "volumeMode", "Odd"),
        ("claim", CLAIM, "resources", {"requests": {"storage": "-1"}}), ("claim", CLAIM, "resources", {"requests": {"storage": "0"}}), ("claim", CLAIM, "storageClassName", "A_"),
        ("volume", VOLUME, "capacity", {}), ("volume", VOLUME, "capacity", {"storage": "-1"}), ("volume", VOLUME, "accessModes", []),
        ("volume", VOLUME, "persistentVolumeReclaimPolicy", "Odd"), ("volume", VOLUME, "hostPath", {"path": "/a/../b"}), ("volume", VOLUME, "nfs", {"server": "a", "path": "/b"}),
        ("lease", LEASE, "leaseDurationSeconds", 0), ("lease", LEASE, "leaseDurationSeconds", -1), ("lease", LEASE, "leaseTransitions", -1),
        ("lease", LEASE, "renewTime", "x"), ("quota", SAMPLES["quota"][1], "hard", {"pods": "-1"}), ("quota", SAMPLES["quota"][1], "scopes", ["Odd"]),
        ("quota", SAMPLES["quota"][1], "hard", {"pods": "1.5"}), ("limitrange", SAMPLES["limitrange"][1], "limits", [{"type": ""}]),
        ("limitrange", SAMPLES["limitrange"][1], "limits", [{"type": "Pod", "default": {"cpu": "1"}}]),
        ("limitrange", SAMPLES["limitrange"][1], "limits", [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]),
    ]  # fmt: skip
    for kind, sample, field, value in odd:
        path, body = _changed(kind, sample, **{field: value})
        yield Case(f"value: {kind} with {field} {value}", "POST", path, body)
    whole: list[tuple[str, Object]] = [
        ("priorityclass", PRIORITY | {"value": 1_000_000_001}), ("priorityclass", PRIORITY | {"preemptionPolicy": "Odd"}),
        ("priorityclass", PRIORITY | {"metadata": {"name": "system-odd"}}), ("configmap", SAMPLES["configmap"][1] | {"data": {"a b": "c"}}),
        ("configmap", SAMPLES["configmap"][1] | {"data": {"..": "c"}}), ("configmap", SAMPLES["configmap"][1] | {"binaryData": {"a": "b"}}),
        ("configmap", SAMPLES["configmap"][1] | {"binaryData": {"a": "Yg=="}}), ("secret", SAMPLES["secret"][1] | {"data": {"a": "not base64!"}}),
        ("secret", SAMPLES["secret"][1] | {"data": {"a/b": "Yg=="}}), ("secret", SAMPLES["secret"][1] | {"type": "kubernetes.io/tls"}),
        ("secret", SAMPLES["secret"][1] | {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "Yg=="}}),
        ("storageclass", SAMPLES["storageclass"][1] | {"provisioner": ""}), ("storageclass", SAMPLES["storageclass"][1] | {"reclaimPolicy": "Odd"}),
        ("storageclass", SAMPLES["storageclass"][1] | {"volumeBindingMode": "Odd"}), ("role", ROLE | {"rules": [{"verbs": []}]}),
        ("role", ROLE | {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}), ("role", ROLE | {"rules": [{"verbs": ["get"]}]}),
        ("rolebinding", BINDING | {"roleRef": {}}), ("rolebinding", BINDING | {"roleRef": BINDING["roleRef"] | {"kind": "Odd"}}),
        ("rolebinding", BINDING | {"subjects": [{"kind": "Odd", "name": "x"}]}), ("rolebinding", BINDING | {"subjects": [{"kind": "User", "name": ""}]}),
        ("event", SAMPLES["event"][1] | {"involvedObject": {"namespace": "default"}}), ("endpointslice", SAMPLES["endpointslice"][1] | {"addressType": "Odd"}),
        ("endpointslice", SAMPLES["endpointslice"][1] | {"endpoints": [{"addresses": ["x"]}]}), ("endpointslice", SAMPLES["endpointslice"][1] | {"endpoints": [{"addresses": []}]}),
        ("namespace", SAMPLES["namespace"][1] | {"metadata": {"name": "corpus"}}), ("namespace", SAMPLES["namespace"][1] | {"spec": {"finalizers": ["odd"]}}),
    ]  # fmt: skip
    for number, (kind, body_of) in enumerate(whole):
        yield Case(f"value: {kind}, odd in another way, {number}", "POST", SAMPLES[kind][0], dumped(body_of))
    yield Case(
        "value: a secret in no namespace",
        "POST",
        f"{CORE.replace('corpus', 'none')}/secrets",
        dumped(SAMPLES["secret"][1]),
    )
