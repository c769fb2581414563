"""`situate trace openb`: the table, the JSON, and what is said of files and arguments that are wrong."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.wire.config import load_config

EXAMPLE = Path(__file__).parents[3] / "examples" / "openb"
NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_example.csv"


def openb(*arguments: str, folder: Path = EXAMPLE) -> Result:
    return CliRunner().invoke(main, ["trace", "openb", str(folder), "--pods", "example", *arguments])


def copied(folder: Path, **replaced: str) -> Path:
    """The example's files, some with another text."""
    for name, key in ((NODES, "nodes"), (PODS, "pods")):
        (folder / name).write_text(replaced.get(key, (EXAMPLE / name).read_text()))
    return folder


def test_a_line_for_each_policy_with_mean_and_deviation() -> None:
    result = openb("--policy", "BestFit", "--policy", "foresight", "--seeds", "42..43", "--workers", "1")
    assert result.exit_code == 0
    head, _, columns, best_fit, foresight = result.stdout.splitlines()
    assert head.startswith("openb example: 16 nodes with 70 GPUs, 80 pods; seeds 42 to 43;")
    assert columns.split() == "POLICY 80 % 90 % 100 % 110 % 120 % 130 % ± PLACED".split()
    assert (best_fit.split()[0], foresight.split()[0]) == ("BestFit", "Foresight")
    curve = [float(figure) for figure in foresight.split()[1:7]]
    assert curve == sorted(curve)
    assert float(foresight.split()[7]) > 0
    assert result.stderr.splitlines()[-1].startswith("4 runs in ")


def test_one_seed_has_no_deviation() -> None:
    assert "±" not in openb("--policy", "bestfit", "--seeds", "42").stdout


def test_json_has_each_seed_and_the_mean_is_theirs() -> None:
    result = openb("--policy", "fgd", "--seeds", "42..44", "-o", "json", "--workers", "1")
    document = json.loads(result.stdout)
    assert (document["nodes"], document["gpus"], document["seeds"]) == (16, 70, [42, 43, 44])
    (policy,) = document["policies"]
    assert policy["policy"] == "FGD"
    *_, at_130 = policy["allocatedPercent"]
    assert [at["atPercent"] for at in policy["allocatedPercent"]] == [80, 90, 100, 110, 120, 130]
    assert at_130["mean"] == pytest.approx(sum(at_130["bySeed"]) / 3, abs=1e-3)
    assert at_130["published"] is None, "it was published of another cluster"
    assert len(policy["placedBySeed"]) == len(policy["arrivedBySeed"]) == 3


def test_the_same_bytes_come_out_however_many_work() -> None:
    asked = ("--policy", "random", "--policy", "fgd", "--policy", "foresight", "--seeds", "42..43", "-o", "json")
    assert openb(*asked, "--workers", "1").stdout == openb(*asked, "--workers", "2").stdout


def test_the_configuration_that_is_printed_can_be_given_back(tmp_path: Path) -> None:
    printed = openb("--print-config", "Foresight")
    assert printed.exit_code == 0
    assert load_config(printed.stdout.encode()).profiles[0].scheduler_name == "foresight"
    file = tmp_path / "mine.yaml"
    file.write_text(printed.stdout)
    ours = json.loads(openb("--policy", "foresight", "--seeds", "42", "-o", "json").stdout)["policies"][0]
    theirs = json.loads(openb("--config", str(file), "--seeds", "42", "-o", "json").stdout)["policies"][0]
    assert (ours.pop("policy"), theirs.pop("policy")) == ("Foresight", "mine.yaml")
    assert ours == theirs


def test_a_mix_is_derived_from_the_pods_and_named_in_the_head() -> None:
    result = openb("--mix", "bimodal", "--policy", "bestfit", "--seeds", "42")
    assert result.stdout.startswith("openb example bimodal: 16 nodes with 70 GPUs, 80 pods; seed 42;")
    assert openb("--mix", "bimodal", "--policy", "bestfit", "--seeds", "42").stdout == result.stdout


@pytest.mark.parametrize("mix", [(), ("--mix", "models")])
def test_foresight_is_not_below_fgd_at_any_point_of_the_curve(mix: tuple[str, ...]) -> None:
    asked = ("--policy", "fgd", "--policy", "foresight", "--seeds", "42..45", "--workers", "1", "-o", "json")
    fgd, foresight = (
        [at["mean"] for at in policy["allocatedPercent"]]
        for policy in json.loads(openb(*asked, *mix).stdout)["policies"]
    )
    assert all(ours >= theirs - 0.1 for ours, theirs in zip(foresight, fgd, strict=True)), (fgd, foresight)


def test_redrawn_pods_are_others() -> None:
    asked = ("--policy", "bestfit", "--seeds", "42", "-o", "json")
    assert openb(*asked).stdout != openb(*asked, "--redraw").stdout


def test_everybody_is_compared_where_nobody_is_named() -> None:
    document = json.loads(openb("--seeds", "42", "-o", "json", "--workers", "1").stdout)
    assert [one["policy"] for one in document["policies"]] == [
        "Random",
        "DotProd",
        "GpuClustering",
        "GpuPacking",
        "BestFit",
        "FGD",
        "Foresight",
    ]


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(*arguments: str, folder: Path = EXAMPLE) -> str:
    result = openb(*arguments, folder=folder)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    return line


def test_no_folder(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    said = f"error: {gone}: is not a folder; expected one with {NODES} and openb_pod_list_NAME.csv"
    assert refused(folder=gone) == said


def test_no_such_pods_says_which_there_are(tmp_path: Path) -> None:
    file = EXAMPLE / "openb_pod_list_nope.csv"
    assert refused("--pods", "nope") == f"error: {file}: No such file or directory; the pods there are example"
    (tmp_path / NODES).write_text("")
    assert refused(folder=tmp_path).endswith("the pods there are none")


def test_no_nodes(tmp_path: Path) -> None:
    (copied(tmp_path) / NODES).unlink()
    assert refused(folder=tmp_path) == f"error: {tmp_path / NODES}: No such file or directory"


def test_a_bad_row_is_said_with_its_line(tmp_path: Path) -> None:
    pods = (EXAMPLE / PODS).read_text()
    copied(tmp_path, pods=pods + "pod-x,many,1,1,500,\n")
    line = pods.count("\n") + 1
    assert refused(folder=tmp_path) == f'error: {tmp_path / PODS}:{line}: cpu_milli: "many" is not a whole number'


def test_an_unknown_policy_says_which_there_are() -> None:
    known = "Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD, Foresight"
    assert refused("--policy", "x") == f"error: --policy: unknown policy x; known are {known}"
    assert refused("--print-config", "x") == f"error: --print-config: unknown policy x; known are {known}"


def test_an_unknown_mix_says_which_there_are() -> None:
    known = "cpu-pods, whole-nodes, small-shares, bimodal, models, cpu-per-gpu and random-N"
    assert refused("--mix", "x") == f"error: --mix: unknown mix x; known are {known}"
    assert refused("--mix", "random-x") == f"error: --mix: unknown mix random-x; known are {known}"


def test_a_configuration_that_is_wrong_is_said_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("kind: Nothing\n")
    assert str(file) in refused("--config", str(file), "--policy", "fgd")
