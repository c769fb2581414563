"""`situate replay`: all as recorded, or where not; and what another configuration would have chosen."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from builders import node, pod
from device_builders import claim, device, device_class, exactly, pod_with, slice_of
from device_builders import node as gpu_node
from loop.small_world import record as record_small_world
from situate.cli import main
from situate.core.changes import Change, ClaimsBound, NodeSeen, ObjectSeen, PodRef, PodSeen
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, BindClaims, Effect
from situate.core.engine.engine import Engine
from situate.core.model.devices import DeviceTaintRule
from situate.core.model.named import NamedObject
from situate.loop.journal import Journal, Keep, segment_name
from situate.wire.config import load_config
from situate.wire.journal import JournalHeader, StepChanges, StepEffects, decode_record, encode_record, plain

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACKING = f"""{HEAD}profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated}}}}
"""


def config_of(text: str = HEAD) -> KubeSchedulerConfiguration:
    return load_config(text.encode())


def record(folder: Path, pods: int = 3, keep: Keep = Keep.EFFECTS) -> Path:
    """Two nodes of four cores, and pods of one that come one by one."""
    config = config_of()
    engine = Engine(config)
    told: list[list[Change]] = [[NodeSeen(node(name, cpu="4", pods=100)) for name in ("n1", "n2")]]
    told += [[PodSeen(pod(f"p{at}", uid=f"u{at}", cpu="1"))] for at in range(pods)]
    with Journal(folder, config, keep=keep) as journal:
        for at, changes in enumerate(told):
            journal.heard(at, changes)
            journal.decided(engine.step(at, changes))
    return folder


def rewrite(folder: Path, step: int, *changes: Change) -> None:
    file = folder / segment_name(1)
    lines = file.read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        told = decode_record(line)
        if isinstance(told, StepChanges) and told.step == step:
            lines[at] = encode_record(StepChanges(step, told.now, changes))
    file.write_bytes(b"".join(lines))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_a_journal_comes_out_as_recorded(tmp_path: Path) -> None:
    result = run(record(tmp_path))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "4 steps, 3 effects: all as recorded\n", "")


def test_the_first_differing_effect_of_a_step_is_shown(tmp_path: Path) -> None:
    rewrite(record(tmp_path), 1, *(NodeSeen(node(name, cpu="4", pods=100)) for name in ("n3", "n2")))
    result = run(tmp_path)
    assert result.exit_code == 1
    ref = '{"namespace": "default", "name": "p0", "uid": "u0"}'
    assert result.stdout.splitlines()[:3] == [
        "step 2, effect 1:",
        f'  recorded Bind {{"pod": {ref}, "node": "n1", "attempt": 1{binder()}}}',
        f'  replayed Bind {{"pod": {ref}, "node": "n3", "attempt": 1{binder()}}}',
    ]
    assert result.stdout.splitlines()[-1] == "4 steps, 3 effects: 2 steps differ"


def binder() -> str:
    """What else a bind has, which is not what these tests are about."""
    values = list(plain(Bind(PodRef("", "", ""), "", 1)).items())[4:]
    return "".join(f', "{name}": {json.dumps(value)}' for name, value in values)


def test_of_many_differing_steps_a_few_are_shown(tmp_path: Path) -> None:
    rewrite(record(tmp_path, pods=14), 1)
    result = run(tmp_path)
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[-2]) == (1, "and 4 more")
    assert lines[-1].endswith("14 steps differ")
    assert "  replayed SetCondition" in result.stdout


def test_an_effect_that_is_missing_is_told_as_nothing(tmp_path: Path) -> None:
    rewrite(record(tmp_path), 4)
    result = run(tmp_path)
    assert result.stdout.splitlines()[0] == "step 4, effect 1:"
    assert result.stdout.splitlines()[2:] == ["  replayed nothing", "4 steps, 2 effects: 1 step differs"]


def test_with_a_digest_only_the_step_is_told(tmp_path: Path) -> None:
    rewrite(record(tmp_path, keep=Keep.DIGEST), 4)
    result = run(tmp_path)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "step 4: its effects do not match the recorded digest"


def test_json_has_it_all(tmp_path: Path) -> None:
    rewrite(record(tmp_path), 4)
    result = run(tmp_path, "-o", "json")
    values = json.loads(result.stdout)
    (difference,) = values.pop("differences")
    assert result.exit_code == 1
    assert values == {"steps": 4, "effects": 2, "unrecorded": 0, "cutOff": None, "pods": None, "elsewhere": None}
    assert (difference["step"], difference["effect"], difference["replayed"]) == (4, 1, None)
    assert difference["recorded"]["is"] == "Bind"


def test_pods_that_another_configuration_would_have_put_elsewhere_are_a_table(tmp_path: Path) -> None:
    (tmp_path / "packing.yaml").write_text(PACKING)
    result = run(record(tmp_path / "j", pods=4), "--config", tmp_path / "packing.yaml")
    assert result.exit_code == 0
    assert result.stdout == (
        "POD         STEP  RECORDED  OTHER\n"
        "default/p1  3     n2        n1\n"
        "default/p3  5     n2        n1\n"
        "\n"
        "5 steps, 4 effects: all as recorded; 4 pods decided, 2 of them elsewhere\n"
    )


def test_the_same_as_json(tmp_path: Path) -> None:
    (tmp_path / "packing.yaml").write_text(PACKING)
    result = run(record(tmp_path / "j", pods=2), "--config", tmp_path / "packing.yaml", "-o", "json")
    values = json.loads(result.stdout)
    assert (result.exit_code, values["pods"]) == (0, 2)
    assert values["elsewhere"] == [
        {"pod": "default/p1", "uid": "u1", "step": 3, "recorded": "n2", "other": "n1", "note": ""}
    ]


def test_the_recorded_configuration_would_have_put_nothing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text(HEAD)
    result = run(record(tmp_path / "j"), "--config", tmp_path / "same.yaml")
    assert result.stdout == "4 steps, 3 effects: all as recorded; 3 pods decided, 0 of them elsewhere\n"


def test_a_record_that_was_cut_off_is_noted_and_the_rest_is_used(tmp_path: Path) -> None:
    file = record(tmp_path) / segment_name(1)
    file.write_bytes(file.read_bytes()[:-5])
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (0, "4 steps, 3 effects: all as recorded\n")
    first, second = result.stderr.splitlines()
    assert first.startswith(f"note: {file}: record 9: was cut off after ")
    assert second == "note: the effects of 1 step were not recorded"


def test_a_journal_of_another_format_is_noted(tmp_path: Path) -> None:
    file = record(tmp_path) / segment_name(1)
    first, *others = file.read_bytes().splitlines(keepends=True)
    header = decode_record(first)
    assert isinstance(header, JournalHeader)
    old = JournalHeader(config=header.config, batch=header.batch, situate="0.0.1", format="0123456789abcdef")
    file.write_bytes(b"".join([encode_record(old), *others]))
    result = run(tmp_path)
    assert result.exit_code == 0
    assert result.stderr == (
        "note: situate 0.0.1 recorded it, whose changes and effects differ from ours: that may explain differences\n"
    )


@pytest.mark.parametrize(
    "damage, problem",
    [
        pytest.param(lambda data: data.replace(b'"n1"', b'"n9"', 1), "damaged: its checksum is another", id="a flip"),
        pytest.param(lambda data: data[10:], "record 1: not a record of a journal", id="no beginning"),
        pytest.param(lambda _: b"", "is empty", id="nothing"),
    ],
)
def test_damage_is_one_line_and_exit_code_2(tmp_path: Path, damage: object, problem: str) -> None:
    file = record(tmp_path) / segment_name(1)
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {file}: ")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_journal_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere")
    assert (result.exit_code, result.stderr) == (2, f"error: {tmp_path / 'nowhere'}: No such file or directory\n")


def test_a_bad_configuration_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(f"{HEAD}parallelism: 0\n")
    result = run(record(tmp_path / "j"), "--config", tmp_path / "bad.yaml")
    assert result.exit_code == 2
    assert "parallelism: Invalid value: 0" in result.stderr


# ── plugins of others ───────────────────────────────────────────────────────────────────────────────────────────────

PLUGIN = """
class Picky:
    def check_one(self, pod, node):
        return None if node.name == "n2" else "node(s) were not n2"
"""


def with_plugin(folder: Path) -> Path:
    """A journal of an engine with somebody's plugin, which leaves a mark when it is imported."""
    folder.mkdir()
    (folder / "picky.py").write_text(f"{PLUGIN}\nopen({str(folder / 'mark')!r}, 'w').close()\n")
    text = f'{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: "picky.py:Picky"}}]}}}}}}]\n'
    config = config_of(text)
    with Journal(folder / "j", config) as journal:
        journal.heard(0, [])
        journal.decided([])
    return folder


def test_code_that_a_journal_names_is_not_run_unasked(tmp_path: Path) -> None:
    folder = with_plugin(tmp_path / "p")
    result = run(folder / "j")
    assert result.exit_code == 2
    assert 'plugin "picky.py:Picky": is third-party code; if you trust it' in result.stderr
    assert not (folder / "mark").exists()


def test_code_that_a_journal_names_is_run_from_the_folder_that_is_trusted(tmp_path: Path) -> None:
    folder = with_plugin(tmp_path / "p")
    result = run(folder / "j", "--plugins-from", folder)
    assert (result.exit_code, result.stdout) == (0, "1 step, 0 effects: all as recorded\n")
    assert (folder / "mark").exists()


def test_a_fault_of_ours_says_at_which_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    record(tmp_path)
    monkeypatch.setattr(Engine, "step", fail)
    result = run(tmp_path)
    assert isinstance(result.exception, RuntimeError)
    assert result.exception.__notes__ == [f"at step 1 of {tmp_path}"]


def test_effects_that_were_recorded_and_do_not_come_out_are_found(tmp_path: Path) -> None:
    """The other way round: the history is right, and what is said to have been decided is not."""
    file = record(tmp_path) / segment_name(1)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = encode_record(StepEffects(1, _effects(lines[4])))
    file.write_bytes(b"".join(lines))
    assert run(tmp_path).stdout.splitlines()[0] == "step 1, effect 1:"


def _effects(line: bytes) -> tuple[Effect, ...]:
    decided = decode_record(line)
    assert isinstance(decided, StepEffects)
    return decided.effects or ()


def test_another_process_with_another_hash_seed_replays_the_same(tmp_path: Path) -> None:
    record_small_world(tmp_path, config_of(), seed=3)
    done = subprocess.run(
        [sys.executable, "-m", "situate", "replay", str(tmp_path)],
        env={"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("60 steps, ")
    assert done.stdout.endswith(": all as recorded\n")


def test_what_another_version_would_have_decided_differently_is_a_table(tmp_path: Path) -> None:
    config = config_of()
    engine = Engine(config)
    changes = (NodeSeen(node("n1", cpu="1", pods="9")), PodSeen(pod("huge", uid="u1", cpu="9")))
    with Journal(tmp_path / "j", config) as journal:
        journal.heard(0, changes)
        journal.decided(engine.step(0, changes))
    result = run(tmp_path / "j", "--kubernetes-version", "1.37")
    assert result.exit_code == 0
    assert "no new claims to deallocate" in result.stdout
    assert result.stdout.endswith("1 pod decided, 1 of them differently\n")
    same = run(tmp_path / "j", "--kubernetes-version", "1.36")
    assert same.stdout.endswith("1 pod decided, 0 of them differently\n")


# ── devices ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def record_devices(folder: Path) -> Path:
    """Two nodes with a GPU each, of which a DeviceTaintRule taints one, and two pods that claim one each."""
    config, engine = config_of(), Engine(config_of())
    rule = {"deviceSelector": {"pool": "n1"}, "taint": {"key": "hot", "effect": "NoSchedule"}}
    named: list[NamedObject] = [
        device_class(),
        *(slice_of(name, device("d0")) for name in ("n1", "n2")),
        *(claim(f"c{at}", exactly()) for at in range(2)),
        msgspec.convert({"metadata": {"name": "hot"}, "spec": rule}, DeviceTaintRule),
    ]
    told: list[list[Change]] = [
        [*(NodeSeen(gpu_node(name)) for name in ("n1", "n2")), *(ObjectSeen(one) for one in named)]
    ]
    told += [[PodSeen(pod_with(f"p{at}", f"c{at}"))] for at in range(2)]
    with Journal(folder, config) as journal:
        now = 0
        while told:
            changes = told.pop(0)
            journal.heard(now, changes)
            effects = engine.step(now, changes)
            journal.decided(effects)
            now += 1
            asks = [one for one in effects if isinstance(one, BindClaims)]
            if asks:
                told.insert(0, [ClaimsBound(one.pod, one.attempt) for one in asks])
    return folder


def test_a_journal_with_devices_comes_out_as_recorded(tmp_path: Path) -> None:
    result = run(record_devices(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "5 steps, 4 effects: all as recorded\n"), result.output


def test_an_upgrade_that_reads_taint_rules_moves_the_pods_whose_devices_they_taint(tmp_path: Path) -> None:
    result = run(record_devices(tmp_path), "--kubernetes-version", "1.37", "-o", "json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["differences"], told["pods"]) == (0, [], 2)
    (moved,) = [one for one in told["elsewhere"] if one["other"] != one["recorded"] and one["pod"] == "default/p0"]
    assert (moved["recorded"], moved["other"]) == ("n1", "n2")
