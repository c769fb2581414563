"""Every plugin's arguments are checked, with kube-scheduler's texts."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.config.validate import validate
from situate.core.model.field_errors import distinct
from situate.core.plugins.table import ARGS
from situate.core.versions import DEFAULT, V1_37, KubernetesRules

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
STRATEGIES = 'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'


def problems_of(plugin: str, rules: KubernetesRules = DEFAULT, **args: Any) -> list[str]:
    """As if the arguments stood at `args`."""
    profile = {"pluginConfig": [{"name": plugin, "args": args}]}
    config = with_defaults(decode(HEAD | {"profiles": [profile]}, rules))
    given = config.profiles[0].plugin_config[0].args
    return distinct([*given.validate("args"), *given.rule_problems("args", rules)])


NEED_ARGUMENTS = ("Cost", "Latency")
"""Without prices, or a table, these have nothing to go by."""


@pytest.mark.parametrize("plugin", sorted(name for name in ARGS if name not in NEED_ARGUMENTS))
def test_the_defaults_are_valid(plugin: str) -> None:
    assert problems_of(plugin) == []


def test_arguments_of_others_are_not_judged() -> None:
    config = with_defaults(
        decode(HEAD | {"profiles": [{"pluginConfig": [{"name": "Theirs", "args": {"any": "thing"}}]}]})
    )
    assert validate(config) == []


@pytest.mark.parametrize(
    "args, problems",
    [
        pytest.param(
            {"minCandidateNodesPercentage": 101},
            ["args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
            id="more than all nodes",
        ),
        pytest.param(
            {"minCandidateNodesAbsolute": -1},
            ["args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"],
            id="fewer than no nodes",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                (
                    "args.minCandidateNodesPercentage: Invalid value: 0: "
                    "cannot be zero at the same time as minCandidateNodesAbsolute"
                ),
                (
                    "args.minCandidateNodesAbsolute: Invalid value: 0: "
                    "cannot be zero at the same time as minCandidateNodesPercentage"
                ),
            ],
            id="no nodes at all",
        ),
        pytest.param({"minCandidateNodesPercentage": 0}, [], id="one of them may be zero"),
        pytest.param({"neverBreakBudgets": True}, [], id="our own option"),
    ],
)
def test_default_preemption(args: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("DefaultPreemption", **args) == problems


@pytest.mark.parametrize(
    "args, problems",
    [
        pytest.param(
            {"filterTimeout": "-1s"},
            ['args.filterTimeout: Invalid value: "-1s": must be zero or positive'],
            id="a negative timeout",
        ),
        pytest.param(
            {"bindingTimeout": "999ms"},
            ['args.bindingTimeout: Invalid value: "999ms": must be at least 1 second'],
            id="a timeout below a second",
        ),
        pytest.param({"filterTimeout": "0s", "bindingTimeout": "1s"}, [], id="the least that is allowed"),
    ],
)
def test_dynamic_resources(args: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("DynamicResources", **args) == problems


@pytest.mark.parametrize(
    "weight, problems",
    [
        pytest.param(0, [], id="the least"),
        pytest.param(100, [], id="the most"),
        pytest.param(-1, ["args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"], id="less"),
        pytest.param(101, ["args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"], id="more"),
    ],
)
def test_inter_pod_affinity(weight: int, problems: list[str]) -> None:
    assert problems_of("InterPodAffinity", hardPodAffinityWeight=weight) == problems


def test_balanced_allocation() -> None:
    resources = [{"name": "cpu", "weight": 2}, {"name": "cpu"}, {"name": "memory", "weight": -3}]
    assert problems_of("NodeResourcesBalancedAllocation", resources=resources) == [
        "args.resources[0].weight: Invalid value: 2: must be 1",
        'args.resources[1].name: Duplicate value: "cpu"',
        "args.resources[2].weight: Invalid value: -3: must be 1",
    ]


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    return {"shape": [{"utilization": utilization, "score": score} for utilization, score in points]}


RATIO = "args.scoringStrategy.requestedToCapacityRatio"


@pytest.mark.parametrize(
    "strategy, problems",
    [
        pytest.param({}, [f'args.scoringStrategy.type: Unsupported value: "": {STRATEGIES}'], id="no type"),
        pytest.param(
            {"type": "Foo"}, [f'args.scoringStrategy.type: Unsupported value: "Foo": {STRATEGIES}'], id="another type"
        ),
        pytest.param(
            {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}, {"name": "m", "weight": -1}]},
            [
                (
                    "args.scoringStrategy.resources[0].weight: Invalid value: 101: "
                    "resource weight of cpu not in valid range (0, 100]"
                ),
                (
                    "args.scoringStrategy.resources[1].weight: Invalid value: -1: "
                    "resource weight of m not in valid range (0, 100]"
                ),
            ],
            id="weights out of range",
        ),
        pytest.param(
            {"type": "RequestedToCapacityRatio"},
            [f"{RATIO}: Required value: must be specified when type is RequestedToCapacityRatio"],
            id="a ratio without a shape",
        ),
        pytest.param(
            {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {}},
            [f"{RATIO}.shape: Required value: at least one point must be specified"],
            id="a shape without points",
        ),
        pytest.param(
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": shape((50, 11), (50, -1), (20, 1), (101, 1), (-1, 1)),
            },
            [
                f"{RATIO}.shape[1].utilization: Invalid value: 50: values must be sorted in increasing order",
                f"{RATIO}.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
                f"{RATIO}.shape[1].score: Invalid value: -1: not in valid range [0, 10]",
                f"{RATIO}.shape[3].utilization: Invalid value: 101: not in valid range [0, 100]",
                f"{RATIO}.shape[4].utilization: Invalid value: -1: not in valid range [0, 100]",
            ],
            id="points out of order and range",
        ),
        pytest.param(
            {"type": "MostAllocated", "requestedToCapacityRatio": shape((0, 0))},
            [f"{RATIO}: Forbidden: must be nil when type is not RequestedToCapacityRatio"],
            id="a shape for another strategy",
        ),
        pytest.param(
            {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": shape((0, 0), (100, 10))},
            [],
            id="a good shape",
        ),
    ],
)
def test_node_resources_fit_scoring(strategy: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("NodeResourcesFit", scoringStrategy=strategy) == problems


def test_node_resources_fit_ignores_only_what_has_a_name() -> None:
    problems = problems_of("NodeResourcesFit", ignoredResources=["a.b/c", "a b"], ignoredResourceGroups=["a/b", "-x"])
    assert problems == [
        f'args.ignoredResources[1]: Invalid value: "a b": {NAME_RULE}',
        "args.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'",
        f'args.ignoredResourceGroups[1]: Invalid value: "-x": {NAME_RULE}',
    ]


CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    "args, problems",
    [
        pytest.param(
            {"defaultingType": "Foo<"},
            ['args.defaultingType: Unsupported value: "Foo\\u003c": supported values: "System", "List"'],
            id="another type",
        ),
        pytest.param(
            {"defaultConstraints": [CONSTRAINT]},
            ['args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="constraints that nobody asked for",
        ),
        pytest.param({"defaultingType": "List"}, [], id="an empty list"),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [{}]},
            [
                "args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "args.defaultConstraints[0].topologyKey: Required value: can not be empty",
                "args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="an empty constraint",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    CONSTRAINT | {"topologyKey": "a b", "whenUnsatisfiable": "Sometimes", "labelSelector": {}}
                ],
            },
            [
                f'args.defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME_RULE}',
                (
                    'args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Sometimes": '
                    'supported values: "DoNotSchedule", "ScheduleAnyway"'
                ),
                (
                    "args.defaultConstraints[0].labelSelector: Forbidden: "
                    "constraint must not define a selector, as they deduced for each pod"
                ),
            ],
            id="a constraint with nothing right",
        ),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [CONSTRAINT, CONSTRAINT | {"maxSkew": 2}]},
            ['args.defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
            id="a constraint twice",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [CONSTRAINT, CONSTRAINT | {"whenUnsatisfiable": "ScheduleAnyway"}],
            },
            [],
            id="one key for two actions",
        ),
    ],
)
def test_pod_topology_spread(args: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("PodTopologySpread", **args) == problems


GATE_OFF = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"


@pytest.mark.parametrize(
    "args, problems",
    [
        pytest.param(
            {"bindTimeoutSeconds": -1},
            [
                (
                    "args.bindTimeoutSeconds: Invalid value: -1: "
                    "invalid BindTimeoutSeconds, should not be a negative value"
                )
            ],
            id="a negative timeout",
        ),
        pytest.param({"bindTimeoutSeconds": 0}, [], id="no waiting"),
        pytest.param(
            shape((0, 10)),
            [f'args.shape: Invalid value: [{{"Utilization":0,"Score":10}}]: {GATE_OFF}'],
            id="a shape, whose feature is off",
        ),
        pytest.param({"shape": []}, [f"args.shape: Invalid value: []: {GATE_OFF}"], id="even an empty one"),
    ],
)
def test_volume_binding(args: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("VolumeBinding", **args) == problems


@pytest.mark.parametrize(
    "args, problems",
    [
        pytest.param({}, [], id="the default shape"),
        pytest.param({"shape": []}, [], id="an empty shape is the default one"),
        pytest.param(shape((0, 10)), [], id="a shape"),
        pytest.param(
            shape((0, 11)),
            ["args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
            id="a score too high",
        ),
    ],
)
def test_1_37_scores_volumes_by_a_shape(args: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("VolumeBinding", V1_37, **args) == problems


REQUIRED = "args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED = "args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"


def required(**term: Any) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def expression(operator: str, *values: str, key: str = "a") -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


@pytest.mark.parametrize(
    "requirement, problems",
    [
        pytest.param(expression("In", "x", ""), [], id="In with values"),
        pytest.param(expression("Gt", "5"), [], id="Gt with a number"),
        pytest.param(expression("Exists"), [], id="Exists without values"),
        pytest.param(
            expression("Foo", "x"),
            [
                (
                    f'{REQUIRED}.matchExpressions[0].operator: Unsupported value: "Foo": supported values: '
                    '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
                )
            ],
            id="another operator",
        ),
        pytest.param(
            expression("NotIn"),
            [
                (
                    f"{REQUIRED}.matchExpressions[0].values: Invalid value: null: "
                    "for 'in', 'notin' operators, values set can't be empty"
                )
            ],
            id="NotIn without values",
        ),
        pytest.param(
            expression("DoesNotExist", "x", "z"),
            [
                (
                    f'{REQUIRED}.matchExpressions[0].values: Invalid value: ["x","z"]: '
                    "values set must be empty for exists and does not exist"
                )
            ],
            id="DoesNotExist with values",
        ),
        pytest.param(
            expression("Lt", "1", "x"),
            [
                (
                    f'{REQUIRED}.matchExpressions[0].values: Invalid value: ["1","x"]: '
                    "for 'Gt', 'Lt' operators, exactly one value is required"
                ),
                (
                    f'{REQUIRED}.matchExpressions[0].values[1]: Invalid value: "x": '
                    "for 'Gt', 'Lt' operators, the value must be an integer"
                ),
            ],
            id="Lt with two values, one no number",
        ),
        pytest.param(
            expression("In", "q z", "v" * 64, key="-b"),
            [
                f'{REQUIRED}.matchExpressions[0].key: Invalid value: "-b": {NAME_RULE}',
                f'{REQUIRED}.matchExpressions[0].values[0][-b]: Invalid value: "q z": {VALUE_RULE}',
                (
                    f'{REQUIRED}.matchExpressions[0].values[1][-b]: Invalid value: "{"v" * 64}": '
                    "must be no more than 63 bytes"
                ),
            ],
            id="a key and values that are no label's",
        ),
    ],
)
def test_added_affinity_over_labels(requirement: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("NodeAffinity", addedAffinity=required(matchExpressions=[requirement])) == problems


@pytest.mark.parametrize(
    "requirement, problems",
    [
        pytest.param(expression("In", "n1", key="metadata.name"), [], id="a node by name"),
        pytest.param(
            expression("In", "n1", "n2", key="metadata.name"),
            [f'{REQUIRED}.matchFields[0].values: Invalid value: ["n1","n2"]: must have one element'],
            id="two names",
        ),
        pytest.param(
            expression("Exists", key="metadata.name"),
            [f'{REQUIRED}.matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"'],
            id="another operator",
        ),
    ],
)
def test_added_affinity_over_fields(requirement: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("NodeAffinity", addedAffinity=required(matchFields=[requirement])) == problems


def test_preferred_terms_are_read_unless_they_weigh_nothing() -> None:
    wrong = {"matchExpressions": [expression("Foo")]}
    terms = [{"weight": 0, "preference": wrong}, {"weight": 5, "preference": wrong}, {"weight": 1, "preference": {}}]
    problems = problems_of("NodeAffinity", addedAffinity={"preferredDuringSchedulingIgnoredDuringExecution": terms})
    assert [problem.split(": ")[0] for problem in problems] == [f"{PREFERRED}[1].matchExpressions[0].operator"]


def test_an_empty_term_is_no_fault() -> None:
    assert problems_of("NodeAffinity", addedAffinity=required()) == []


# -- plugins of ours -----------------------------------------------------------------------------------------------


def test_the_resources_to_pack_are_named_once_and_weigh_something() -> None:
    resources = [{"name": "cpu"}, {"name": "cpu", "weight": 3}, {"name": "memory", "weight": 101}]
    assert problems_of("BinPack", resources=resources) == [
        "args.resources[2].weight: Invalid value: 101: resource weight of memory not in valid range (0, 100]",
        'args.resources[1].name: Duplicate value: "cpu"',
    ]


@pytest.mark.parametrize(
    "args, problems",
    [
        pytest.param(
            {},
            ["args.prices: Required value: or priceLabel: without either no node has a price"],
            id="no price",
        ),
        pytest.param({"priceLabel": "example.com/price"}, [], id="a label"),
        pytest.param({"prices": [{"node": "n1", "price": 0}, {"label": "spot", "price": 1.5}]}, [], id="a table"),
        pytest.param(
            {"prices": [{"price": 1}, {"node": "n1", "instanceType": "m5", "price": 1}]},
            [
                f"args.prices[{at}]: Required value: exactly one of node, instanceType and label says what the price "
                "is of"
                for at in range(2)
            ],
            id="a price of nothing and one of two things",
        ),
        pytest.param(
            {"prices": [{"node": "n1", "value": "x"}, {"node": "n2", "price": -1}], "inUsePercent": 101},
            [
                "args.prices[0].value: Forbidden: may only be given together with label",
                "args.prices[0].price: Required value",
                "args.prices[1].price: Invalid value: -1.0: not in valid range [0, 1000000000]",
                "args.inUsePercent: Invalid value: 101: not in valid range [0, 100]",
            ],
            id="a price that is missing and one that is negative",
        ),
    ],
)
def test_prices(args: dict[str, Any], problems: list[str]) -> None:
    assert problems_of("Cost", **args) == problems


def test_a_latency_table_is_somewhere_and_has_no_negative_distances() -> None:
    assert problems_of("Latency") == [
        "args.tableFile: Required value: or places: without either nothing is known of any place"
    ]
    assert problems_of("Latency", tableFile="table.yaml") == []
    assert problems_of("Latency", places={"eu": {"zones": {"a": 3, "b": -1}}}) == [
        "args.places[eu].zones[b]: Invalid value: -1.0: not in valid range [0, 1000000000]"
    ]
