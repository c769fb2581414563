"""Scheduler profiles from a configuration file, with the third-party plugins that it names.

A configuration names a third-party plugin in one of three ways: by an entry point in the group `situate.plugins`, as
`package.module:Class`, or as `path/to/file.py:Class`, relative to the configuration file. Such a plugin runs inside
this process with all its rights: there is no sandbox.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from situate.cli.input.files import read_file
from situate.core.config.defaults import BUILT_IN_POINTS, default_configuration, enabled_names
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration, Plugins
from situate.core.engine.framework import Framework, build_frameworks, points_of
from situate.core.plugins.latency import LatencyArgs
from situate.core.plugins.support.errors import PluginError, describe
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.config import ConfigInputError, load_config
from situate.wire.errors import InputError
from situate.wire.latency import load_latencies

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "situate.plugins"


def read_config(path: Path | str, rules: KubernetesRules | None = None) -> KubeSchedulerConfiguration:
    """The configuration of a file, with the content of other files that it names. Raises InputError, OSError."""
    return _with_tables(load_config(read_file(path), str(path), rules or DEFAULT), Path(path).parent)


def _with_tables(config: KubeSchedulerConfiguration, folder: Path) -> KubeSchedulerConfiguration:
    """Fill in latency tables from their files, and make the file names absolute, so that they can be read again."""

    def filled(args: Any) -> Any:
        if not isinstance(args, LatencyArgs) or not args.table_file:
            return args
        file = folder / args.table_file
        return replace(args, table_file=str(file.absolute()), places=load_latencies(read_file(file), str(file)))

    return replace(
        config,
        profiles=tuple(
            replace(profile, plugin_config=tuple(replace(one, args=filled(one.args)) for one in profile.plugin_config))
            for profile in config.profiles
        ),
    )


def read_profiles(file: Path | str | None, rules: KubernetesRules | None = None) -> dict[str, Framework]:
    """Profiles by scheduler name: the file's, or without one the default. Raises InputError."""
    if file is None:
        return build_frameworks(default_configuration(rules or DEFAULT))
    path = Path(file)
    config = read_config(file, rules)
    try:
        return build_frameworks(config, plugins_of_others(config, path))
    except ConfigError as error:
        raise ConfigInputError(error.problems, str(path)) from None
    except PluginError as error:
        raise InputError(str(error), file=str(path)) from error


def plugins_of_others(config: KubeSchedulerConfiguration, path: Path) -> dict[str, type]:
    """The classes of the third-party plugins that the configuration enables. Raises InputError."""
    found: dict[str, type] = {}
    for profile in config.profiles:
        for name in enabled_names(profile.plugins or Plugins()):
            if name not in BUILT_IN_POINTS and name not in found and (":" in name or name in installed()):
                found[name] = _plugin(name, path)
    return found


def entry_point_plugins(config: KubeSchedulerConfiguration) -> dict[str, type]:
    """The classes of the installed plugins that a configuration from elsewhere enables. Imports nothing else."""
    names = {name for profile in config.profiles for name in enabled_names(profile.plugins or Plugins())}
    wanted = [name for name in sorted(names - set(BUILT_IN_POINTS)) if ":" not in name]
    return {name: _plugin(name, Path()) for name in wanted if name in installed()}


def installed() -> dict[str, EntryPoint]:
    """The plugins of installed packages, by name. Imports none of them."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _plugin(name: str, path: Path) -> type:
    """Raises InputError, too, for whatever the plugin's own code raises."""
    problem = ""
    where, _, class_name = name.rpartition(":")
    file = path.parent / where
    try:
        if not where:
            found = installed()[name].load()
        elif not where.endswith(".py"):
            found = getattr(importlib.import_module(where), class_name, None)
        elif file.is_file():
            found = getattr(_file_module(file), class_name, None)
        else:
            found, problem = None, f"no such file: {file}"
    except (Exception, SystemExit) as error:
        raise InputError(describe(error), file=str(path), subject=f'plugin "{name}"') from error
    if not isinstance(found, type):
        problem = problem or "there is no class of that name"
    elif not points_of(found):
        problem = "has none of check, check_one, score, score_one"
    else:
        return found
    raise InputError(problem, file=str(path), subject=f'plugin "{name}"')


def _file_module(file: Path) -> Any:
    """The module of a single file; the same one for all its classes."""
    spec = importlib.util.spec_from_file_location(f"situate plugin {file.resolve()}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"no such file: {file}")
    if spec.name not in sys.modules:
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where dataclasses look
        spec.loader.exec_module(module)
    return sys.modules[spec.name]
