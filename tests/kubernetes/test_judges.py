"""What `make judges` compares: the file of what is left has reasons, and may not go stale."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from kubernetes import images
from kubernetes.judges.__main__ import SUITES
from kubernetes.judges.common import JudgeError, Outcome
from kubernetes.judges.conformance import MAX_STARTS, Work, hollow_plane
from kubernetes.judges.go_suites import START_FILE, START_LIMIT_S, give_time_to_start
from kubernetes.judges.kueue_performance import read_events
from kubernetes.judges.left import NEEDS_A_KUBELET, ON_HOLLOW_NODES, RACES, differences, read_left


def test_each_entry_has_a_reason() -> None:
    for suite in read_left().values():
        for name, why in suite.items():
            assert why.strip(), name


def test_each_suite_that_has_entries_is_one_of_those_that_run() -> None:
    assert read_left().keys() <= SUITES.keys()


def test_what_is_not_tried_without_a_kubelet_is_named_by_its_reason() -> None:
    assert NEEDS_A_KUBELET in read_left()["conformance"].values()


def test_an_unknown_failure_and_a_known_one_that_passes_are_reported() -> None:
    outcome = Outcome(passed={"a", "b"}, failed={"c": "broken", "d": "as known"})
    said = list(differences(outcome, {"b": "not served", "d": "not served"}))
    assert said == ["fails: c: broken", "passes now, and is in left.json: b"]


def test_a_spec_that_races_on_kube_apiserver_too_may_pass_and_fail() -> None:
    left = {"a": f"{RACES} with its own controller.", "b": f"{RACES} with its own controller."}
    assert not list(differences(Outcome(passed={"a"}, failed={"b": "broken"}), left))


def test_what_is_left_with_a_kubelet_is_of_what_is_left_without_one() -> None:
    without = {name for name, why in read_left()["conformance"].items() if why in ON_HOLLOW_NODES}
    assert read_left()["conformance-kubelet"].keys() <= without


def test_an_outcome_is_read_as_it_was_written(tmp_path: Path) -> None:
    outcome = Outcome(passed={"a"}, failed={"b": "broken"}, skipped={"c"})
    outcome.write(tmp_path / "outcome.json")
    assert Outcome.read(tmp_path / "outcome.json") == outcome


def test_an_image_has_its_layers_from_the_lowest_on_under_all_its_names(tmp_path: Path) -> None:
    lower = images.layer({"bin/one": (b"1", 0o6755)}, {"bin/two": "one"})
    upper = images.layer({"etc/three": (b"3", 0o644)})
    images.archive(tmp_path / "made.tar", ["here/a:1", "here/a:2"], [lower, upper], {"Cmd": ["one"]})
    with tarfile.open(tmp_path / "made.tar") as whole:
        read = {one.name: file.read() for one in whole if (file := whole.extractfile(one)) is not None}
    [manifest] = json.loads(read["manifest.json"])
    assert manifest["RepoTags"] == ["here/a:1", "here/a:2"]
    assert [read[name] for name in manifest["Layers"]] == [lower, upper]
    with tarfile.open(fileobj=io.BytesIO(lower)) as tar:
        assert (tar.getmember("bin/one").mode, tar.getmember("bin/two").linkname) == (0o6755, "one")


def test_a_spec_that_is_kept_from_starting_waits_again_and_fails_in_the_end(tmp_path: Path) -> None:
    work = Work(tmp_path / "program", tmp_path, 0, lambda _: hollow_plane(tmp_path))
    for _ in range(MAX_STARTS - 1):
        work._begin_again(["a"], "too busy")
        assert work._take() == ("a",)
        assert not work.outcome.failed
    work._begin_again(["a"], "too busy")
    assert work._take() == ()
    assert work.outcome.failed == {"a": "too busy"}


def test_the_time_to_start_is_set_in_a_copy_of_controller_runtime_and_in_no_other(tmp_path: Path) -> None:
    give_time_to_start(tmp_path)
    assert not list(tmp_path.iterdir())
    file = tmp_path / START_FILE
    file.parent.mkdir(parents=True)
    file.write_text("\t\tps.StartTimeout = 20 * time.Second\n\t\tps.StopTimeout = 20 * time.Second\n")
    for _ in range(2):  # a copy is used more than once
        give_time_to_start(tmp_path)
        assert file.read_text() == (
            f"\t\tps.StartTimeout = {START_LIMIT_S} * time.Second\n\t\tps.StopTimeout = 20 * time.Second\n"
        )
    file.write_text("func nothing() {}\n")
    with pytest.raises(JudgeError, match="does not set the time to start once, but 0 times"):
        give_time_to_start(tmp_path)


def test_go_tests_are_read_without_those_that_only_have_others_below_them() -> None:
    lines = (
        '{"Action":"start"}',
        '{"Action":"run","Test":"TestAll"}',
        '{"Action":"run","Test":"TestAll/Time"}',
        '{"Action":"output","Test":"TestAll/Time","Output":"=== RUN   TestAll/Time\\n"}',
        '{"Action":"output","Test":"TestAll/Time","Output":"    a_test.go:7: 5s is more than 4s\\n"}',
        '{"Action":"output","Test":"TestAll/Time","Output":"--- FAIL: TestAll/Time (0.00s)\\n"}',
        '{"Action":"fail","Test":"TestAll/Time","Elapsed":0}',
        '{"Action":"pass","Test":"TestAll/Queues/all","Elapsed":0}',
        '{"Action":"pass","Test":"TestAll/Queues","Elapsed":0}',
        '{"Action":"fail","Test":"TestAll","Elapsed":0}',
        '{"Action":"fail","Elapsed":0.1}',
    )
    outcome = read_events("\n".join(lines), "it: ")
    assert outcome.passed == {"it: Queues/all"}
    assert outcome.failed == {"it: Time": "a_test.go:7: 5s is more than 4s"}


def test_a_go_test_that_does_not_run_has_failed() -> None:
    outcome = read_events('{"Action":"output","Output":"no such file"}', "it: ")
    assert not outcome.passed
    assert outcome.failed.keys() == {"it: checker"}
