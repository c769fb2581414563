"""`make fuzz-conformance` without kube-scheduler: the clusters it makes, and what it does where the two differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kubernetes.oracle import devices, fuzz, generate, mixtures
from situate.cli.commands.conformance.comparison import UNPREPARED, Comparison, FieldDifference, as_verdict, profiles_of
from situate.core.engine.decision import decide
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.core.versions import DEFAULT, RULES
from situate.wire.errors import InputError
from situate.wire.scenarios import decode_scenario

FAMILIES = (*generate.FAMILIES, *devices.FAMILIES)
ROUND = 2 * len(FAMILIES) + fuzz.MIXTURES


class Stand(fuzz.Oracle):
    """Says what situate says, but that a pod of the app `web` is told something else; every second time, if `moody`."""

    def __init__(self, moody: bool = False) -> None:
        self.rules = DEFAULT
        self._moody = moody
        self._asked = 0

    def ask(self, lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            self._asked += 1
            try:
                verdict = own_verdict(line)
            except InputError as error:
                yield {"id": "", "pods": [], "invalid": str(error)}
                continue
            for pod, said in zip(decode_scenario(line).pending, verdict["pods"], strict=True):
                if pod.metadata.labels.get("app") == "web" and not (self._moody and self._asked % 2 == 0):
                    said["preFilter"] = {"plugin": "Planted", "code": "Unschedulable", "reasons": ["planted"]}
            yield verdict


def own_verdict(line: bytes) -> dict[str, Any]:
    scenario = decode_scenario(line)
    profiles = profiles_of(scenario)
    cluster = Cluster()
    cluster.load(scenario.objects.nodes, scenario.objects.named(), scenario.objects.pods)
    pods = []
    for pod in scenario.pending:
        said = decide(profiles[pod.spec.scheduler_name], cluster.class_of(pod), View(cluster))
        pods.append({"pod": f"{pod.metadata.namespace}/{pod.metadata.name}", **as_verdict(said, cluster)})
    return {"id": scenario.id, "pods": pods}


def clusters(seed: str, count: int) -> list[dict[str, Any]]:
    return [fuzz.cluster(seed, index) for index in range(count)]


def one_pod(**labels: str) -> dict[str, Any]:
    """Several nodes and pods, of which one waits that has these labels."""
    made = generate.scenario("resources", False, "test", 0)
    made["pending"][2]["metadata"]["labels"] = labels
    for each in (0, 1, 3, 4):
        made["pending"][each]["metadata"]["labels"] = {"app": "db"}
    return made


# --- the clusters ---


def test_every_round_has_each_family_plain_and_wide_and_mixtures() -> None:
    kinds = Counter(made["id"].rpartition("-")[0] for made in clusters("s", ROUND))
    families = {name for family in FAMILIES for name in (f"{family}-s", f"{family}-wide-s")}
    assert kinds == dict.fromkeys(families, 1) | {"mixture-s": fuzz.MIXTURES}


def test_the_same_seed_gives_the_same_clusters_and_another_gives_others() -> None:
    assert clusters("s", ROUND) == clusters("s", ROUND)
    pairs = zip(clusters("s", ROUND), clusters("t", ROUND), strict=True)
    assert not any(one["objects"] == other["objects"] for one, other in pairs)


def test_no_two_clusters_of_a_run_are_the_same() -> None:
    ids = [made["id"] for made in clusters("s", 3 * ROUND)]
    assert len(set(ids)) == len(ids)


def test_mixtures_are_clusters_that_situate_reads() -> None:
    refused = 0
    for index in range(60):
        made = mixtures.mixture("read", index)
        try:
            profiles_of(decode_scenario(fuzz.as_line(made)))
        except InputError:
            refused += 1
            assert "config" in made
    assert refused < 10


@pytest.mark.parametrize("version", RULES)
@pytest.mark.parametrize("family", devices.FAMILIES)
def test_clusters_with_devices_are_read_and_have_what_they_are_about(family: str, version: str) -> None:
    kinds: Counter[str] = Counter()
    for index in range(12):
        made = devices.scenario(family, bool(index % 2), "read", index, version)
        scenario = decode_scenario(fuzz.as_line(made), rules=RULES[version])
        profiles_of(scenario)
        kinds.update(each["kind"] for each in made["objects"])
        assert any(pod.spec.resource_claims for pod in scenario.pending) or family == "draextended"
    assert {"ResourceSlice", "DeviceClass", "ResourceClaim"} <= kinds.keys()
    assert "DeviceTaintRule" not in kinds or version != "1.36"


def test_a_decision_that_raises_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LookupError("nothing refuses node row 0")

    monkeypatch.setattr(fuzz, "compare", fail)
    tally = fuzz.compared(Stand(), [one_pod(app="db")])
    assert [one.got for _, comparison in tally.differing for one in comparison.differences] == [
        "LookupError('nothing refuses node row 0')"
    ]


@pytest.mark.parametrize("put", [put for put, _ in mixtures.RARE], ids=lambda put: put.__name__)
def test_each_rare_thing_changes_some_cluster(put: Any) -> None:
    for index in range(40):
        made, same = mixtures.mixture("rare", index), mixtures.mixture("rare", index)
        put(generate.Dice(index), made)
        if made != same:
            return
    pytest.fail("it never did")


# --- what differs ---


def test_where_the_two_agree_there_is_nothing_to_tell() -> None:
    tally = fuzz.compared(Stand(), [one_pod(app="db")])
    assert (tally.differing, tally.told()) == ([], "1 clusters, 5 decisions, 0 mismatches")


def test_a_difference_is_found_and_made_small() -> None:
    oracle = Stand()
    tally = fuzz.compared(oracle, [one_pod(app="db"), one_pod(app="web", tier="back")])
    assert tally.mismatches == 1
    ((scenario, comparison),) = tally.differing
    small, verdict, left = fuzz.smallest(oracle, scenario, comparison)
    assert [pod["metadata"]["labels"] for pod in small["pending"]] == [{"app": "web"}]
    assert [each["kind"] for each in small["objects"]] == []
    assert verdict["id"] == small["id"] == scenario["id"]
    assert list(fuzz.readable(left))[:3] == [
        f"  {comparison.differences[0].pod} preFilter.plugin",
        '    - "Planted"',
        "    + nothing",
    ]


def test_what_kube_scheduler_says_only_sometimes_is_explained_and_counted() -> None:
    tally = fuzz.compared(Stand(moody=True), [one_pod(app="web")])
    assert tally.differing == []
    assert tally.told() == f"1 clusters, 5 decisions, 0 mismatches, 1 explained: 1 {fuzz.UNDETERMINED}"


def test_input_that_only_one_of_the_two_takes_is_a_difference() -> None:
    taken = fuzz.as_line(one_pod(app="db"))
    refused = fuzz.as_line(one_pod(app="db") | {"config": {"kind": "Nothing"}})
    said: dict[str, Any] = {"id": "", "pods": []}
    assert [one.field for one in fuzz.judged(taken, said | {"invalid": "no"}).differences] == ["input"]
    assert [one.field for one in fuzz.judged(refused, said).differences] == ["input"]
    assert fuzz.judged(refused, said | {"invalid": "no"}) == Comparison(())


def test_a_case_is_kept_where_the_tests_find_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "FOUND", tmp_path / "found")
    path = fuzz.keep({"id": "it", "objects": [], "pending": []}, {"id": "it", "pods": []}, DEFAULT)
    assert path.name == "it.scenarios.jsonl"
    assert path.read_bytes() == b'{"id":"it","objects":[],"pending":[]}\n'
    assert path.with_name("it.verdicts.jsonl").read_bytes() == b'{"id":"it","pods":[]}\n'


def test_tallies_add_up() -> None:
    one = fuzz.Tally(
        2, 10, 1, Counter({UNPREPARED: 1}), [({}, Comparison((FieldDifference("a/b", "best", ["n"], None),)))]
    )
    one.add(fuzz.Tally(3, 12, 0, Counter({UNPREPARED: 2})))
    assert one.told() == f"5 clusters, 22 decisions, 1 mismatches, 3 explained: 3 {UNPREPARED}, 1 refused by both"


def test_only_the_leaves_that_differ_are_shown() -> None:
    wanted = {"n0": {"plugin": "A", "code": "X"}, "n1": {"plugin": "B"}}
    got = {"n0": {"plugin": "A", "code": "Y"}}
    shown = list(fuzz.readable(Comparison((FieldDifference("ns/p", "rejected", wanted, got),))))
    assert shown == [
        "  ns/p rejected.n0.code",
        '    - "X"',
        '    + "Y"',
        "  ns/p rejected.n1.plugin",
        '    - "B"',
        "    + nothing",
    ]
