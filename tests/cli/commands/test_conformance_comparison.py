"""What is excused of a verdict, and what is not: each exception is narrow, has a name and is counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from situate.cli import main
from situate.cli.commands.conformance.comparison import COMPARED, EXPLAINED, ONE_NODE, UNPREPARED, UNREADABLE, excused

POINTS = {
    "filter": ("NodePorts", "InterPodAffinity", "NodeVolumeLimits"),
    "preFilter": ("NodePorts", "NodeVolumeLimits"),
    "score": ("TaintToleration", "NodeAffinity"),
    "preScore": ("NodeAffinity",),
}
BEFORE_SCORES = ("preFilter", "feasible", "rejected")


def told(error: str, **fields: Any) -> dict[str, Any]:
    return {"pod": "default/p", "error": error, **fields}


@pytest.mark.parametrize(
    "recorded, fields, name",
    [
        pytest.param({"feasible": ["n0"]}, COMPARED, "", id="nothing of a verdict without an error"),
        pytest.param(
            told('running "InterPodAffinity" filter plugin: error reading "X" from cycleState: not found'),
            ("preFilter",),
            UNPREPARED,
            id="what a filter without its preFilter says of nodes",
        ),
        pytest.param(
            told('running "NodePorts" filter plugin: error reading "X" from cycleState: not found'),
            ("error",),
            "",
            id="nothing of a filter that is prepared",
        ),
        pytest.param(
            told('running Score plugins: plugin "TaintToleration" failed with: failed to read "X" from cycleState'),
            BEFORE_SCORES,
            UNPREPARED,
            id="the scores of a scorer without its preScore",
        ),
        pytest.param(
            told('running Score plugins: plugin "NodeAffinity" failed with: failed to read "X" from cycleState'),
            ("error",),
            "",
            id="nothing of a scorer that is prepared",
        ),
        pytest.param(
            {
                "preemptCode": "Error",
                "preemptMessage": 'preemption: running "InterPodAffinity" filter plugin: not found',
            },
            BEFORE_SCORES,
            UNPREPARED,
            id="what preemption says of a filter without its preFilter",
        ),
        pytest.param(
            {"preemptCode": "Error", "preemptMessage": 'preemption: running "NodeVolumeLimits" filter plugin: a'},
            COMPARED,
            "",
            id="nothing of another failure in preemption",
        ),
        pytest.param(
            told('running PreScore plugin "NodeAffinity": [0].matchExpressions[0].values[0]: Invalid value: "x"'),
            BEFORE_SCORES,
            UNREADABLE,
            id="the scores of a pod whose preference cannot be read",
        ),
        pytest.param(
            told('running PreScore plugin "PodTopologySpread": calculating preScoreState'),
            ("error",),
            "",
            id="nothing of another failure before scores",
        ),
        pytest.param(
            told('running PreFilter plugin "PodTopologySpread": get constraints from pod'),
            ("error",),
            "",
            id="nothing of a failure before nodes",
        ),
    ],
)
def test_what_is_excused(recorded: dict[str, Any], fields: tuple[str, ...], name: str) -> None:
    assert excused(recorded, POINTS) == (recorded, fields, name)


def test_a_node_that_cannot_be_judged_is_expected_to_be_refused_and_all_else_is_compared() -> None:
    failing = {"plugin": "NodeVolumeLimits", "code": "Error", "reasons": ["cannot count"]}
    refused = {"plugin": "NodePorts", "code": "Unschedulable", "reasons": ["taken"]}
    recorded = told(
        'running "NodeVolumeLimits" filter plugin: cannot count', rejected={"n0": failing, "n1": refused}, best=["n2"]
    )
    wanted, fields, name = excused(recorded, POINTS)
    assert (fields, name) == (COMPARED, ONE_NODE)
    assert wanted["rejected"] == {"n0": failing | {"code": "UnschedulableAndUnresolvable"}, "n1": refused}
    assert (wanted["error"], wanted["best"]) == ("", ["n2"])


def test_what_is_explained_is_listed_with_its_reason() -> None:
    assert list(EXPLAINED) == [ONE_NODE, UNPREPARED, UNREADABLE]
    page = (Path(__file__).parents[3] / "docs" / "internals" / "conformance.md").read_text()
    assert [name for name in EXPLAINED if f"**{name}**" not in page] == []


def test_the_command_counts_what_is_explained(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    scenario = {"id": "it", "objects": [], "pending": [pod | {"spec": {"containers": [{"name": "c", "image": "i"}]}}]}
    verdict = {"id": "it", "pods": [told('running PreScore plugin "NodeAffinity": no', feasible=[])]}
    (tmp_path / "it.scenarios.jsonl").write_text(json.dumps(scenario))
    (tmp_path / "it.verdicts.jsonl").write_text(json.dumps(verdict))
    result = CliRunner().invoke(main, ["conformance", str(tmp_path)], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (
        0,
        f"1 decisions, 0 mismatches, 1 explained: 1 {UNREADABLE}\n",
    )


def test_an_error_that_we_do_not_have_is_a_difference(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    scenario = {"id": "it", "objects": [], "pending": [pod | {"spec": {"containers": [{"name": "c", "image": "i"}]}}]}
    verdict = {"id": "it", "pods": [told("something went wrong", message="no nodes available to schedule pods")]}
    (tmp_path / "it.scenarios.jsonl").write_text(json.dumps(scenario))
    (tmp_path / "it.verdicts.jsonl").write_text(json.dumps(verdict))
    result = CliRunner().invoke(main, ["conformance", str(tmp_path)], catch_exceptions=False)
    assert result.stdout.splitlines() == [
        'it default/p error: expected "something went wrong", got null',
        "1 decisions, 1 mismatches",
    ]
