"""`situate replay`: a journal stepped through again, and what another configuration would have chosen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from situate.core.config.types import KubeSchedulerConfiguration
    from situate.core.effects import Effect
    from situate.core.engine.engine import Engine
    from situate.loop.history import History
    from situate.loop.replay import ChoiceComparison, ChoiceDifference, Difference, Replay

NOT_AS_RECORDED: Final = 1
MOST_SHOWN: Final = 10
"""How many differing steps a person is shown; one step that differs makes others after it differ."""
HEADINGS: Final = ("POD", "STEP", "RECORDED", "OTHER")
NOWHERE: Final = "-"


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--config", metavar="FILE", help="Ask this scheduler configuration about each choice, too.")
@click.option(
    "--plugins-from", metavar="FOLDER", help="Load the plugins of others that the journal names; files from here."
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def replay(journal: Path, config: str | None, plugins_from: str | None, output: str) -> None:
    """Step through JOURNAL again, and say whether every effect comes out as recorded.

    With --config, also say which pods another configuration would have put elsewhere. Exits with 1 if an effect is
    not as recorded.
    """
    from situate.loop.history import History
    from situate.loop.replay import Replay

    history = History(journal)
    engine = _engine(history, journal, plugins_from)
    replayed = Replay(history, engine)
    shadow: ChoiceComparison | None = None
    if config is not None:
        shadow = _shadow(replayed, engine, Path(config))
    differences = _differences(replayed, journal)
    _note(history, replayed)
    if output == "json":
        from situate.wire.dump import dump_json

        click.echo(dump_json(_values(history, replayed, differences, shadow)), nl=False)
    else:
        for line in [*_told(differences), *_table(shadow), _sums(replayed, differences, shadow)]:
            click.echo(line)
    if differences:
        sys.exit(NOT_AS_RECORDED)


# ── running ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _engine(history: History, journal: Path, plugins_from: str | None) -> Engine:
    """The engine that the journal is of. Its plugins are somebody's code: a journal may not have it run by itself."""
    from situate.cli.input.profiles import plugins_of_others
    from situate.core.config.errors import ConfigError
    from situate.core.engine.engine import Engine
    from situate.core.plugins.support.errors import PluginError
    from situate.wire.errors import InputError

    header = history.header
    strangers = _plugins_of_others(header.config)
    others: dict[str, type] = {}
    if plugins_from is not None:
        others = plugins_of_others(header.config, Path(plugins_from) / journal.name)
    elif strangers:
        problem = "is not ours; if you trust it, say with --plugins-from where its folder is"
        raise InputError(problem, file=str(journal), subject=f'plugin "{strangers[0]}"')
    try:
        return Engine(header.config, others, batch=header.batch, unschedulable_limit_ms=header.unschedulable_limit_ms)
    except (ConfigError, PluginError) as error:
        raise InputError(str(error), file=str(journal)) from error


def _plugins_of_others(config: KubeSchedulerConfiguration) -> list[str]:
    from situate.core.config.defaults import BUILT_IN_POINTS, enabled_names
    from situate.core.config.types import Plugins

    names = (name for profile in config.profiles for name in enabled_names(profile.plugins or Plugins()))
    return [name for name in names if name not in BUILT_IN_POINTS]


def _shadow(replayed: Replay, engine: Engine, path: Path) -> ChoiceComparison:
    from situate.cli.input.profiles import plugins_of_others, read_config
    from situate.core.config.errors import ConfigError
    from situate.core.plugins.support.errors import PluginError
    from situate.loop.replay import ChoiceComparison
    from situate.wire.config import ConfigInputError
    from situate.wire.errors import InputError

    other = read_config(path)
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
        error.add_note(f"at step {replayed.step} of {journal}")  # where to look, if the fault is ours
        raise


def _note(history: History, replayed: Replay) -> None:
    """What may explain a difference, or is missing from what was compared."""
    from situate.wire.journal import fingerprint

    if history.header.format != fingerprint():
        by = f"was recorded by situate {history.header.situate}, whose changes and effects are not the same as ours"
        click.echo(one_line(f"note: {by}: what differs may be due to that"), err=True)
    if history.cut_off:
        click.echo(one_line(f"note: {history.cut_off}"), err=True)
    if replayed.unrecorded:
        click.echo(f"note: of {_counted(replayed.unrecorded, 'step')} the effects were not recorded", err=True)


# ── for people ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _told(differences: Sequence[Difference]) -> list[str]:
    lines = []
    for one in differences[:MOST_SHOWN]:
        if not one.effect:
            lines.append(f"step {one.step}: its effects are not those whose digest was recorded")
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
    import json

    if effect is None:
        return "nothing"
    values = _plain(effect)
    return f"{values.pop('is')} {json.dumps(values, ensure_ascii=False)}"


def _table(shadow: ChoiceComparison | None) -> list[str]:
    from situate.cli.output.text import printable

    if shadow is None or not shadow.differences:
        return []
    rows = [HEADINGS, *(_cells(one) for one in shadow.differences)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*(printable(line) for line in lines), ""]


def _cells(one: ChoiceDifference) -> tuple[str, str, str, str]:
    other = f"{NOWHERE} ({one.note})" if one.note else one.other or NOWHERE
    return one.pod.key, str(one.step), one.recorded or NOWHERE, other


def _sums(replayed: Replay, differences: Sequence[Difference], shadow: ChoiceComparison | None) -> str:
    if not differences:
        found = "all as recorded"
    else:
        found = f"{_counted(len(differences), 'step')} {'differs' if len(differences) == 1 else 'differ'}"
    text = f"{_counted(replayed.steps, 'step')}, {_counted(replayed.effects, 'effect')}: {found}"
    if shadow is not None:
        text += f"; {_counted(shadow.pods, 'pod')} decided, {len(shadow.differences)} of them elsewhere"
    return text


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# ── for programs ────────────────────────────────────────────────────────────────────────────────────────────────────


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
                "recorded": None if one.expected is None else _plain(one.expected),
                "replayed": None if one.got is None else _plain(one.got),
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
            }
            for one in shadow.differences
        ]
    return values


def _plain(effect: Effect) -> dict[str, Any]:
    from situate.wire.journal import plain

    return plain(effect)
