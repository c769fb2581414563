"""`situate plan`: how much more fits, how many nodes it takes, what a loss or a drain would do, what
has drifted, what makes room.

Every answer comes from placing pods as the scheduler would, on a copy. Only `situate plan defrag --apply` changes
anything.
"""

import click

from situate.cli import CommandGroup
from situate.cli.commands.plan.defrag import defrag
from situate.cli.commands.plan.drain import drain
from situate.cli.commands.plan.drift import drift
from situate.cli.commands.plan.fit import fit
from situate.cli.commands.plan.nodes import nodes
from situate.cli.commands.plan.survive import survive


@click.group(cls=CommandGroup)
def plan() -> None:
    """Answer capacity questions: what fits, how many nodes, losses, drains, drift, defragmentation."""


for command in (defrag, drain, drift, fit, nodes, survive):
    plan.add_command(command)
