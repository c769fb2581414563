"""`situate conformance`: decide about recorded clusters, and compare with kube-scheduler's recorded verdicts.

A family is a pair of files, FAMILY.scenarios.jsonl and FAMILY.verdicts.jsonl, gzipped or not, lines in the same order.
"""

import errno
import gzip
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import msgspec

from situate.cli.commands.conformance.comparison import Comparison, compare, profiles_of
from situate.cli.options import kubernetes_version_option
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.errors import InputError
from situate.wire.scenarios import decode_scenario

SCENARIOS = re.compile(r"(?P<family>.+)\.scenarios\.jsonl(?P<zipped>\.gz)?")

MAX_LINE_BYTES = 64 * 1024 * 1024

SHOWN_CHARS = 300
"""How much of an expected or found value one line shows."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@kubernetes_version_option("The version of kube-scheduler that was recorded; default: {default}.")
def conformance(paths: tuple[Path, ...], rules: KubernetesRules | None) -> None:
    """Compare our decisions with kube-scheduler's, as recorded in PATHS (files, or folders of them).

    Prints a line for every mismatch, and finally the number of decisions, mismatches and intended differences. Exits
    with 1 if there is a mismatch.
    """
    decisions = 0
    mismatches: list[str] = []  # printed at the end: nothing is printed if the input is wrong
    explained: Counter[str] = Counter()
    for scenarios, verdicts in _pairs(paths):
        for count, name, comparison in _compare_files(scenarios, verdicts, rules or DEFAULT):
            decisions += count
            mismatches += [
                f"{name} {one.pod} {one.field}: expected {_shown(one.expected)}, got {_shown(one.got)}"
                for one in comparison.differences
            ]
            explained.update(comparison.explained)
    for line in mismatches:
        click.echo(line)
    click.echo(f"{decisions} decisions, {len(mismatches)} mismatches{counted(explained)}")
    sys.exit(1 if mismatches else 0)


def counted(explained: Counter[str]) -> str:
    """`, 3 explained: 2 of one kind; 1 of another`; nothing if there are none."""
    if not explained:
        return ""
    each = "; ".join(f"{count} {name}" for name, count in sorted(explained.items()))
    return f", {explained.total()} explained: {each}"


def _pairs(paths: tuple[Path, ...]) -> list[tuple[Path, Path]]:
    """The two files of each family, in the order given; a folder stands for all in it."""
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
    plain = scenarios.name.removesuffix(".gz").replace(".scenarios.", ".verdicts.")
    for name in (plain, f"{plain}.gz"):
        if (verdicts := scenarios.with_name(name)).exists():
            return verdicts
    raise InputError(file=str(scenarios), problem=f"no {plain}[.gz] beside it")


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise InputError(file=str(path), problem=f"has a line of more than {MAX_LINE_BYTES} bytes")
                if line.strip():
                    yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(file=str(path), problem=f"cannot be unzipped: {error}") from error


def _compare_files(scenarios: Path, verdicts: Path, rules: KubernetesRules) -> Iterator[tuple[int, str, Comparison]]:
    pairs = zip_longest(_lines(scenarios), _lines(verdicts))
    for number, (scenario_line, verdict_line) in enumerate(pairs, 1):
        if scenario_line is None or verdict_line is None:
            short, other = (scenarios, verdicts) if scenario_line is None else (verdicts, scenarios)
            raise InputError(file=str(short), problem=f"has {number - 1} lines, fewer than {other.name}")
        place = f"{scenarios}:{number}"
        scenario = decode_scenario(scenario_line, place, rules)
        try:
            verdict = msgspec.json.decode(verdict_line)
        except RecursionError:
            raise InputError(file=f"{verdicts}:{number}", problem="not JSON: nested too deep") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(file=f"{verdicts}:{number}", problem=f"not JSON: {error}") from error
        expected = _expected(scenario, verdict, f"{verdicts}:{number}")
        yield len(expected), scenario.id, compare(scenario, expected, profiles_of(scenario, place))


def _expected(scenario: Any, verdict: Any, file: str) -> list[dict[str, Any]]:
    """The verdict on each pending pod. Raises InputError if it is about others."""
    pods = verdict.get("pods") if isinstance(verdict, dict) and verdict.get("id") == scenario.id else None
    if isinstance(pods, list) and len(pods) == len(scenario.pending) and all(isinstance(one, dict) for one in pods):
        return pods
    raise InputError(file=file, problem=f"is not a verdict on the {len(scenario.pending)} pods of {scenario.id}")


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
