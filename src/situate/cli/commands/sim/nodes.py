"""`situate sim --nodes`: worlds with agents and a control plane."""

import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

from situate.cli.commands.sim import Worlds
from situate.sim.nodes.world import NodeWorldResult, run

SHOWN: Final = 60
"""How many lines of the log are shown before the first violation."""


def node_worlds(*, devices: bool) -> Worlds:
    counted = ("starts", "allocations", "given_up", "evictions", "restarts", "minutes")
    return Worlds(
        partial(run, devices=devices or None),
        partial(_violations, devices),
        lambda result: f"{result.profile}; faults: {result.faults}",
        lambda result: {
            "faults": result.faults_played,
            "slowest": result.settled_s,
            **{name: getattr(result, name) for name in counted},
        },
        "{minutes:.0f} virtual minutes, {faults} faults, {starts} containers started, {allocations} allocations of "
        "devices, {given_up} nodes given up, {evictions} evictions, {restarts} restarts of the control plane, settled "
        "within {slowest:.0f} s",
        partial(logging.disable, logging.CRITICAL),
    )


def _violations(devices: bool, result: NodeWorldResult, traced: bool) -> Iterable[str]:
    """The log up to the first violation, and all violations."""
    if not result.violations or traced:
        return []
    first = next(index for index, line in enumerate(result.log) if "!!" in line)
    again = f"situate sim --nodes --seed {result.seed}{' --devices' if devices else ''} --trace"
    violations = [f"seed {result.seed}, {violation}  ({again})" for violation in result.violations]
    return [*result.log[max(0, first - SHOWN) : first], *violations]
