"""`situate conformance`: what differs is told, what does not is counted; of the recorded clusters, nothing differs."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from situate.cli import main

DATA = Path(__file__).parents[2] / "conformance" / "data"
FAMILIES = sorted(path.name.partition(".")[0] for path in DATA.glob("*.scenarios.jsonl.gz"))


def conformance(*paths: Path) -> Result:
    return CliRunner().invoke(main, ["conformance", *map(str, paths)], catch_exceptions=False)


def lines(family: str, kind: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in gzip.decompress((DATA / f"{family}.{kind}.jsonl.gz").read_bytes()).splitlines()
    ]


def copied(folder: Path, scenarios: list[Any], verdicts: list[Any], *, zipped: bool = False) -> Path:
    for kind, items in (("scenarios", scenarios), ("verdicts", verdicts)):
        data = "".join(f"{json.dumps(item)}\n" for item in items).encode()
        (folder / f"some.{kind}.jsonl{'.gz' if zipped else ''}").write_bytes(gzip.compress(data) if zipped else data)
    return folder


def test_there_are_families() -> None:
    assert len(FAMILIES) >= 13


@pytest.mark.parametrize("family", FAMILIES)
def test_no_decision_differs_from_kube_schedulers(family: str) -> None:
    result = conformance(DATA / f"{family}.scenarios.jsonl.gz")
    count = sum(len(scenario["pending"]) for scenario in lines(family, "scenarios"))
    assert result.stdout.splitlines()[-1] == f"{count} decisions, 0 mismatches"
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)


@pytest.mark.parametrize("zipped", [True, False], ids=["gzipped", "plain"])
def test_a_folder_stands_for_the_families_in_it(tmp_path: Path, zipped: bool) -> None:
    scenarios, verdicts = lines("taints", "scenarios")[:2], lines("taints", "verdicts")[:2]
    result = conformance(copied(tmp_path, scenarios, verdicts, zipped=zipped))
    count = sum(len(scenario["pending"]) for scenario in scenarios)
    assert (result.exit_code, result.stdout) == (0, f"{count} decisions, 0 mismatches\n")


def test_a_family_named_twice_is_compared_once(tmp_path: Path) -> None:
    copied(tmp_path, lines("taints", "scenarios")[:1], lines("taints", "verdicts")[:1])
    both = conformance(tmp_path, tmp_path / "some.scenarios.jsonl")
    assert both.stdout == conformance(tmp_path).stdout


def first_with(family: str, field: str) -> tuple[dict[str, Any], dict[str, Any], int]:
    """A recorded cluster and its verdicts, of which one has this field; and which one."""
    for scenario, verdict in zip(lines(family, "scenarios"), lines(family, "verdicts"), strict=True):
        for at, one in enumerate(verdict["pods"]):
            if one.get(field):
                return scenario, verdict, at
    raise LookupError(f"{family} has no {field}")


@pytest.mark.parametrize(
    "family, field, other",
    [
        ("volumes", "preFilter", {"plugin": "Nobody", "code": "Unschedulable", "reasons": []}),
        ("taints", "feasible", ["nowhere"]),
        ("taints", "rejected", {}),
        ("taints", "scores", {}),
        ("taints", "total", {"n0": -1}),
        ("taints", "best", ["nowhere"]),
        ("resources", "message", "0/1 nodes are available."),
        ("preempt", "nominated", "nowhere"),
        ("preempt", "victims", ["default/nobody"]),
        ("preempt", "preemptCode", "Error"),
        ("resources", "preemptMessage", "preemption: no"),
    ],
)
def test_a_difference_in_a_field_is_told(tmp_path: Path, family: str, field: str, other: Any) -> None:
    scenario, verdict, at = first_with(family, field)
    expected = json.dumps(other, separators=(",", ":"))
    verdict["pods"][at][field] = other
    result = conformance(copied(tmp_path, [scenario], [verdict]))
    told, last = result.stdout.splitlines()
    assert told.startswith(f"{scenario['id']} {verdict['pods'][at]['pod']} {field}: expected {expected}, got ")
    assert (result.exit_code, last) == (1, f"{len(scenario['pending'])} decisions, 1 mismatches")


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    scenario, verdict, at = first_with("resources", "message")
    verdict["pods"][at]["message"] = "x" * 10_000
    told, _ = conformance(copied(tmp_path, [scenario], [verdict])).stdout.splitlines()
    assert len(told) < 1_000


def test_nothing_differs_from_kube_scheduler_1_37_by_its_rules() -> None:
    recorded = DATA.with_name("data-1.37")
    arguments = ["conformance", "--kubernetes-version", "1.37", str(recorded)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "628 decisions, 0 mismatches")
    older = conformance(recorded / "preempt.scenarios.jsonl.gz")
    assert older.exit_code == 1, "the versions do differ"
