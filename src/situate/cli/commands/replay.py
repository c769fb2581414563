"""`situate replay`: run a journal again, and compare the choices of another configuration."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from situate.cli import one_line
from situate.cli.input.profiles import plugins_of_others, read_config
from situate.cli.options import kubernetes_version_option, output_option
from situate.cli.output.formats import NAME, dump, for_people
from situate.cli.output.text import columns, echo_lines, plural
from situate.core.config.defaults import BUILT_IN_POINTS, enabled_names, under_rules
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration, Plugins
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.core.plugins.support.errors import PluginError
from situate.core.versions import KubernetesRules
from situate.loop.history import History
from situate.loop.replay import ChoiceComparison, ChoiceDifference, Difference, Replay
from situate.wire.config import ConfigInputError
from situate.wire.errors import InputError
from situate.wire.journal import fingerprint, plain

NOT_AS_RECORDED: Final = 1
MOST_SHOWN: Final = 10
"""How many differing steps people see; one difference causes others after it."""
HEADINGS: Final = ("POD", "STEP", "RECORDED", "OTHER")
NOWHERE: Final = "-"


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--config", metavar="FILE", help="Compare the choices of this scheduler configuration, too.")
@click.option(
    "--plugins-from", metavar="FOLDER", help="Load the third-party plugins that the journal names; files from here."
)
@kubernetes_version_option("Compare the choices by the rules of this version of Kubernetes, too.")
@output_option(without=(NAME,))
def replay(
    journal: Path, config: str | None, plugins_from: str | None, rules: KubernetesRules | None, output: str
) -> None:
    """Run JOURNAL again, and check that every effect matches the recording.

    With --config or --kubernetes-version, also list the pods that another configuration or version would have placed
    elsewhere, and the messages that would differ. Exits with 1 if an effect differs.
    """

    history = History(journal)
    others = _plugins(history, journal, plugins_from)
    engine = _engine(history, journal, others)
    replayed = Replay(history, engine)
    shadow = None
    if config is not None:
        shadow = _shadow(replayed, engine, Path(config), rules or history.header.config.rules)
    elif rules is not None:
        other = under_rules(history.header.config, rules)
        shadow = ChoiceComparison(replayed, engine, other, others, messages=True)
    differences = _differences(replayed, journal)
    _note(history, replayed)
    if not for_people(output):
        click.echo(dump(_values(history, replayed, differences, shadow), output), nl=False)
    else:
        echo_lines([*_difference_lines(differences), *_table(shadow), _totals(replayed, differences, shadow)])
    if differences:
        sys.exit(NOT_AS_RECORDED)


def _plugins(history: History, journal: Path, plugins_from: str | None) -> dict[str, type]:
    """The third-party plugins of the journal. They run only if the user trusts them."""
    config = history.header.config
    if plugins_from is not None:
        return plugins_of_others(config, Path(plugins_from) / journal.name)
    if strangers := _plugins_of_others(config):
        problem = "is third-party code; if you trust it, name its folder with --plugins-from"
        raise InputError(problem, file=str(journal), subject=f'plugin "{strangers[0]}"')
    return {}


def _engine(history: History, journal: Path, others: dict[str, type]) -> Engine:
    """The engine of the journal."""
    header = history.header
    try:
        return Engine(header.config, others, batch=header.batch, unschedulable_limit_ms=header.unschedulable_limit_ms)
    except (ConfigError, PluginError) as error:
        raise InputError(str(error), file=str(journal)) from error


def _plugins_of_others(config: KubeSchedulerConfiguration) -> list[str]:

    names = (name for profile in config.profiles for name in enabled_names(profile.plugins or Plugins()))
    return [name for name in names if name not in BUILT_IN_POINTS]


def _shadow(replayed: Replay, engine: Engine, path: Path, rules: KubernetesRules) -> ChoiceComparison:

    other = read_config(path, rules)
    try:
        return ChoiceComparison(replayed, engine, other, plugins_of_others(other, path))
    except ConfigError as error:
        raise ConfigInputError(error.problems, str(path)) from None
    except PluginError as error:
        raise InputError(str(error), file=str(path)) from error


def _differences(replayed: Replay, journal: Path) -> list[Difference]:
    try:
        return list(replayed)
    except Exception as error:
        error.add_note(f"at step {replayed.step} of {journal}")  # where to look, if the bug is ours
        raise


def _note(history: History, replayed: Replay) -> None:
    """What may explain a difference, or could not be compared."""

    if history.header.format != fingerprint():
        by = f"situate {history.header.situate} recorded it, whose changes and effects differ from ours"
        click.echo(one_line(f"note: {by}: that may explain differences"), err=True)
    if history.cut_off:
        click.echo(one_line(f"note: {history.cut_off}"), err=True)
    if replayed.unrecorded:
        click.echo(f"note: the effects of {plural(replayed.unrecorded, 'step')} were not recorded", err=True)


def _difference_lines(differences: Sequence[Difference]) -> list[str]:
    lines = []
    for one in differences[:MOST_SHOWN]:
        if not one.effect:
            lines.append(f"step {one.step}: its effects do not match the recorded digest")
            continue
        lines += [
            f"step {one.step}, effect {one.effect}:",
            f"  {one_line(f'recorded {_effect(one.expected)}')}",
            f"  {one_line(f'replayed {_effect(one.got)}')}",
        ]
    if len(differences) > MOST_SHOWN:
        lines.append(f"and {len(differences) - MOST_SHOWN} more")
    return lines


def _effect(effect: Effect | None) -> str:
    """`Bind {"pod": {...}, "node": "n1", "attempt": 1}`."""
    if effect is None:
        return "nothing"
    values = plain(effect)
    return f"{values.pop('is')} {json.dumps(values, ensure_ascii=False)}"


def _table(shadow: ChoiceComparison | None) -> list[str]:
    if shadow is None or not shadow.differences:
        return []
    return [*columns(HEADINGS, [_cells(one) for one in shadow.differences]), ""]


def _cells(one: ChoiceDifference) -> tuple[str, str, str, str]:
    other = f"{NOWHERE} ({one.note})" if one.note else one.other or NOWHERE
    recorded = f"{NOWHERE} ({one.recorded_note})" if one.recorded_note else one.recorded or NOWHERE
    return one.pod.key, str(one.step), recorded, other


def _totals(replayed: Replay, differences: Sequence[Difference], shadow: ChoiceComparison | None) -> str:
    if not differences:
        found = "all as recorded"
    else:
        found = f"{plural(len(differences), 'step')} {'differs' if len(differences) == 1 else 'differ'}"
    text = f"{plural(replayed.steps, 'step')}, {plural(replayed.effects, 'effect')}: {found}"
    if shadow is not None:
        how = "differently" if shadow.messages else "elsewhere"
        text += f"; {plural(shadow.pods, 'pod')} decided, {len(shadow.differences)} of them {how}"
    return text


def _values(
    history: History, replayed: Replay, differences: Sequence[Difference], shadow: ChoiceComparison | None
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "steps": replayed.steps,
        "effects": replayed.effects,
        "unrecorded": replayed.unrecorded,
        "cutOff": history.cut_off or None,
        "differences": [
            {
                "step": one.step,
                "effect": one.effect or None,
                "recorded": None if one.expected is None else plain(one.expected),
                "replayed": None if one.got is None else plain(one.got),
            }
            for one in differences
        ],
        "pods": None,
        "elsewhere": None,
    }
    if shadow is not None:
        values["pods"] = shadow.pods
        values["elsewhere"] = [
            {
                "pod": one.pod.key,
                "uid": one.pod.uid,
                "step": one.step,
                "recorded": one.recorded or None,
                "other": one.other or None,
                "note": one.note,
                **({"recordedNote": one.recorded_note} if one.recorded_note else {}),
            }
            for one in shadow.differences
        ]
    return values
