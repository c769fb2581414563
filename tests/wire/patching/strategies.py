"""Objects and configurations for Hypothesis: Deployments with a little of everything that is merged in its own way.

As stored objects are, they have no lists and, but for one, no objects that are empty.
"""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

NAMES = st.sampled_from("abcd")
SCALARS = st.sampled_from(["1", "2"])
TEXTS = st.dictionaries(NAMES, SCALARS, min_size=1, max_size=3)


def fields(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """An object with some of these."""
    return st.fixed_dictionaries({}, optional=values).filter(bool)


def items(key: str, keys: st.SearchStrategy[Any], **values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Json]]:
    """A list with at most one item for each key."""
    one = st.fixed_dictionaries({key: keys}, optional=values)
    return st.lists(one, unique_by=lambda item: item[key], min_size=1, max_size=3)


ENV = items("name", NAMES, value=SCALARS, valueFrom=st.just({"fieldRef": {"fieldPath": "metadata.name"}}))
PORTS = items("containerPort", st.sampled_from([80, 81, 82]), name=SCALARS, protocol=st.sampled_from(["TCP", "UDP"]))
RESOURCES = fields(requests=TEXTS, limits=TEXTS)
CONTAINERS = items(
    "name", NAMES, image=SCALARS, env=ENV, ports=PORTS, command=st.lists(SCALARS, max_size=2), resources=RESOURCES
)
POD = fields(
    containers=CONTAINERS,
    volumes=items("name", NAMES, emptyDir=st.just({}), secret=st.just({"secretName": "s"})),
    imagePullSecrets=items("name", NAMES),
    tolerations=st.lists(fields(key=SCALARS), max_size=2),
    nodeSelector=TEXTS,
    securityContext=fields(runAsUser=st.integers(0, 2)),
)
METADATA = fields(
    labels=TEXTS,
    annotations=TEXTS,
    finalizers=st.lists(NAMES, unique=True, min_size=1, max_size=3),
    ownerReferences=items("uid", NAMES, name=SCALARS, kind=SCALARS),
)
DEPLOYMENTS = st.builds(
    lambda metadata, spec: {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", **metadata},
        **({"spec": spec} if spec else {}),
    },
    st.just({}) | METADATA,
    st.just({})
    | fields(
        replicas=st.integers(0, 3),
        template=fields(spec=POD),
        selector=fields(matchLabels=TEXTS),
        strategy=fields(type=SCALARS),
    ),
)
