"""`situate config`: what is wrong with a scheduler's configuration, and what holds where nothing is configured."""

import sys
from collections.abc import Mapping

import click
import msgspec

from situate.cli import BAD_INPUT, CommandGroup, one_line
from situate.cli.input.profiles import installed, read_config
from situate.cli.options import kubernetes_version_option, output_option
from situate.cli.output.formats import NAME, PREFIX, TABLE, WIDE, dump
from situate.core.config.defaults import BUILT_IN_POINTS, OUT_OF_TREE_POINTS, default_configuration, enabled_names
from situate.core.config.resolve import complete
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.config import ConfigInputError, dump_config, profiles_of


@click.group(cls=CommandGroup)
def config() -> None:
    """Validate a scheduler configuration, or print the default one."""


@config.command()
@click.argument("file", type=click.Path(allow_dash=True))
@kubernetes_version_option()
def validate(file: str, rules: KubernetesRules | None) -> None:
    """Read FILE as kube-scheduler would, and say what is wrong with it.

    Prints one line if the configuration is valid, else a line for each problem and exits with 2. Third-party
    plugins are not imported: those that an installed package offers, and those that the file names by where they are
    (`package.module:Class`, `path/to/file.py:Class`), are assumed to be valid.
    """
    try:
        loaded = read_config(file, rules)
        profiles = profiles_of(loaded, _known(loaded), file)
    except ConfigInputError as error:
        for problem in error.problems:
            click.echo(one_line(f"{file}: {problem}"), err=True)
        sys.exit(BAD_INPUT)
    count = f"{len(profiles)} profile{'' if len(profiles) == 1 else 's'}"
    click.echo(one_line(f"{file}: valid: {count}: {', '.join(profile.scheduler_name for profile in profiles)}"))


@config.command()
@output_option(without=(TABLE, WIDE, NAME), default="yaml")
@kubernetes_version_option()
def default(output: str, rules: KubernetesRules | None) -> None:
    """Print the configuration that is used where no other is given, with every default set."""
    found = complete(default_configuration(rules or DEFAULT))
    if output.startswith(PREFIX):
        click.echo(dump(msgspec.json.decode(dump_config(found, "json")), output), nl=False)
    else:
        click.echo(dump_config(found, output), nl=False)


def _known(loaded: KubeSchedulerConfiguration) -> Mapping[str, frozenset[str]]:
    """kube-scheduler's own plugins, and those of others that the file enables, whatever they turn out to implement."""
    enabled = (name for profile in loaded.profiles if profile.plugins for name in enabled_names(profile.plugins))
    others = [name for name in enabled if name not in BUILT_IN_POINTS]
    offered = installed() if others else {}
    return {**BUILT_IN_POINTS, **{name: OUT_OF_TREE_POINTS for name in others if ":" in name or name in offered}}
