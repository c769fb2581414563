"""`situate conformance`: ask about recorded clusters, and compare with the recorded verdicts of kube-scheduler.

A family is a pair of files, FAMILY.scenarios.jsonl and FAMILY.verdicts.jsonl, gzipped or not, lines in the same order.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from situate.core.engine.decision import Decision
    from situate.core.engine.profile import Deciding
    from situate.core.state.cluster import Cluster

SCENARIOS = re.compile(r"(?P<family>.+)\.scenarios\.jsonl(?P<zipped>\.gz)?")

COMPARED = (
    "preFilter",
    "feasible",
    "rejected",
    "scores",
    "total",
    "best",
    "message",
    "nominated",
    "victims",
    "preemptCode",
    "preemptMessage",
)
"""The fields of a verdict that are compared. A field that is absent and one that is empty are the same."""

MAX_LINE_BYTES = 64 * 1024 * 1024

SHOWN_CHARS = 300
"""How much of an expected or found value one line shows."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
def conformance(paths: tuple[Path, ...]) -> None:
    """Compare our decisions with kube-scheduler's, as recorded in PATHS (files, or folders of them).

    Prints a line for every difference, and last how many decisions were compared and how many differences there were.
    Exits with 1 if there was any.
    """
    decisions = 0
    mismatches: list[str] = []  # shown when all is read: of input that is wrong somewhere, nothing is
    for scenarios, verdicts in _pairs(paths):
        for count, lines in _compare_files(scenarios, verdicts):
            decisions += count
            mismatches += lines
    for line in mismatches:
        click.echo(line)
    click.echo(f"{decisions} decisions, {len(mismatches)} mismatches")
    sys.exit(1 if mismatches else 0)


def _pairs(paths: tuple[Path, ...]) -> list[tuple[Path, Path]]:
    """The families that are named, each as its two files, in the order given; a folder stands for all in it."""
    from situate.wire.errors import InputError

    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise InputError(file=str(path), problem=os.strerror(errno.ENOENT))
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        scenarios = [file for file in files if SCENARIOS.fullmatch(file.name)]
        if not scenarios and not (path.is_file() and ".verdicts.jsonl" in path.name):
            raise InputError(file=str(path), problem="no FAMILY.scenarios.jsonl[.gz] here")
        for file in scenarios:
            found[file] = _verdicts_of(file)
    return list(found.items())


def _verdicts_of(scenarios: Path) -> Path:
    from situate.wire.errors import InputError

    plain = scenarios.name.removesuffix(".gz").replace(".scenarios.", ".verdicts.")
    for name in (plain, f"{plain}.gz"):
        if (verdicts := scenarios.with_name(name)).exists():
            return verdicts
    raise InputError(file=str(scenarios), problem=f"no {plain}[.gz] beside it")


def _lines(path: Path) -> Iterator[bytes]:
    from situate.wire.errors import InputError

    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise InputError(file=str(path), problem=f"has a line of more than {MAX_LINE_BYTES} bytes")
                if line.strip():
                    yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(file=str(path), problem=f"cannot be unzipped: {error}") from error


def _compare_files(scenarios: Path, verdicts: Path) -> Iterator[tuple[int, list[str]]]:
    import msgspec

    from situate.wire.errors import InputError
    from situate.wire.scenarios import decode_scenario

    pairs = zip_longest(_lines(scenarios), _lines(verdicts))
    for number, (scenario_line, verdict_line) in enumerate(pairs, 1):
        if scenario_line is None or verdict_line is None:
            short, other = (scenarios, verdicts) if scenario_line is None else (verdicts, scenarios)
            raise InputError(file=str(short), problem=f"has {number - 1} lines, fewer than {other.name}")
        place = f"{scenarios}:{number}"
        scenario = decode_scenario(scenario_line, place)
        try:
            verdict = msgspec.json.decode(verdict_line)
        except RecursionError:
            raise InputError(file=f"{verdicts}:{number}", problem="not JSON: nested too deep") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(file=f"{verdicts}:{number}", problem=f"not JSON: {error}") from error
        expected = _expected(scenario, verdict, f"{verdicts}:{number}")
        yield len(expected), _compare(scenario, expected, _profiles(scenario, place))


def _compare(scenario: Any, expected: list[dict[str, Any]], profiles: dict[str, Deciding]) -> list[str]:
    """Ask about every waiting pod of a scenario; the differences."""
    from situate.core.engine.decision import decide
    from situate.core.state.cluster import Cluster
    from situate.core.state.view import View

    cluster = Cluster()
    cluster.load(scenario.objects.nodes, scenario.objects.named(), scenario.objects.pods)
    found: list[str] = []
    for pod, wanted in zip(scenario.pending, expected, strict=True):
        decision = decide(profiles[pod.spec.scheduler_name], cluster.class_of(pod), View(cluster))
        got = as_verdict(decision, cluster)
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for field in COMPARED:
            if (wanted.get(field) or None) != (got.get(field) or None):
                found.append(f"{scenario.id} {key} {field}: expected {_shown(wanted, field)}, got {_shown(got, field)}")
        if scenario.sequence and wanted.get("chosen"):
            cluster.add_pod(_bound(pod, str(wanted["chosen"])))
    return found


def _expected(scenario: Any, verdict: Any, file: str) -> list[dict[str, Any]]:
    """The verdict on each waiting pod. Raises InputError if it is on others."""
    from situate.wire.errors import InputError

    pods = verdict.get("pods") if isinstance(verdict, dict) and verdict.get("id") == scenario.id else None
    if isinstance(pods, list) and len(pods) == len(scenario.pending) and all(isinstance(one, dict) for one in pods):
        return pods
    raise InputError(file=file, problem=f"is not a verdict on the {len(scenario.pending)} pods of {scenario.id}")


def _profiles(scenario: Any, file: str) -> dict[str, Deciding]:
    """What decides for the waiting pods of a scenario. Raises InputError if nothing does for one of them."""
    from situate.core.config.problems import ConfigError
    from situate.core.engine.profile import build_profiles
    from situate.wire.config import ConfigInputError
    from situate.wire.errors import InputError

    try:
        profiles = build_profiles(scenario.config)
    except ConfigError as error:
        raise ConfigInputError(error.problems, file) from None
    for pod in scenario.pending:
        if pod.spec.scheduler_name not in profiles:
            subject = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
            problem = f'no profile has this name: "{pod.spec.scheduler_name}"'
            raise InputError(problem, file=file, subject=subject, path="spec.schedulerName")
    return profiles


def _bound(pod: Any, node: str) -> Any:
    from msgspec.structs import replace

    return replace(pod, spec=replace(pod.spec, node_name=node), status=replace(pod.status, phase="Running"))


def _shown(values: dict[str, Any], field: str) -> str:
    import msgspec

    text = msgspec.json.encode(values.get(field)).decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def as_verdict(decision: Decision, cluster: Cluster) -> dict[str, Any]:
    """The decision in the form of the recorded verdicts."""
    names = cluster.nodes.names
    verdict: dict[str, Any] = {}
    filtered, diagnosis = decision.filtered, decision.diagnosis
    if diagnosis.turned_away is not None:
        refusal = diagnosis.turned_away.refusal
        verdict["preFilter"] = {
            "plugin": diagnosis.turned_away.plugin,
            "code": refusal.code,
            "reasons": [refusal.text],
        }
    rows = filtered.feasible.nonzero()[0].tolist()
    verdict["feasible"] = [names[row] for row in rows]
    verdict["rejected"] = {
        names[row]: {"plugin": refused.plugin, "code": refused.code, "reasons": sorted(refused.reasons)}
        for row, refused in diagnosis.refusals.items()
    }
    if decision.scored is not None:
        verdict["scores"] = {
            plugin: {names[row]: int(scores[row]) for row in rows}
            for plugin, scores in decision.scored.by_plugin.items()
        }
        verdict["total"] = {names[row]: int(decision.scored.total[row]) for row in rows}
        verdict["best"] = [names[row] for row in decision.best.tolist()]
        verdict["chosen"] = names[decision.best[0]]
        return verdict
    verdict["message"] = decision.message
    if (remedy := decision.remedy) is not None:
        verdict["nominated"] = names[remedy.node_row] if remedy.node_row is not None else None
        verdict["victims"] = sorted(victim.key for victim in remedy.victims)
        verdict["preemptCode"] = remedy.code
        verdict["preemptMessage"] = remedy.message
    return verdict
