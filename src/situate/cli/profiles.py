"""What decides: profiles from a configuration file, with the plugins of others that it names.

A plugin of somebody else's comes in one of three ways: under the name of an entry point in the group `situate.plugins`;
as `package.module:Class`; or as `path/to/file.py:Class`, the path being taken from the configuration file's folder.
Such a plugin runs inside this process with all its rights: it is code that you chose to trust, not a sandbox.
"""

from __future__ import annotations

import importlib
import importlib.util
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situate.core.config.types import KubeSchedulerConfiguration
    from situate.core.engine.profile import Deciding

ENTRY_POINT_GROUP = "situate.plugins"


def read_profiles(path: Path | None) -> dict[str, Deciding]:
    """Profiles by scheduler name: the file's, or the defaults where there is none. Raises InputError."""
    from situate.core.config.defaults import default_configuration
    from situate.core.config.problems import ConfigError
    from situate.core.engine.profile import build_profiles
    from situate.wire.config import ConfigInputError, load_config

    if path is None:
        return build_profiles(default_configuration())
    config = load_config(path.read_bytes(), str(path))
    try:
        return build_profiles(config, plugins_of_others(config, path))
    except ConfigError as error:
        raise ConfigInputError(error.problems, str(path)) from None


def plugins_of_others(config: KubeSchedulerConfiguration, path: Path) -> dict[str, type]:
    """The classes of the plugins that the configuration enables and that are not built in."""
    from situate.core.config.defaults import KNOWN, enabled_names
    from situate.core.config.types import Plugins

    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    found: dict[str, type] = {}
    for profile in config.profiles:
        for name in enabled_names(profile.plugins or Plugins()):
            if name in KNOWN or name in found:
                continue
            if ":" in name:
                found[name] = _named(name, path)
            elif name in installed:
                found[name] = _class(installed[name].load(), name, path)
    return found


def _named(name: str, path: Path) -> type:
    """The class that `package.module:Class` or `path/to/file.py:Class` stands for."""
    where, _, class_name = name.rpartition(":")
    module = _file_module(path.parent / where, name, path) if where.endswith(".py") else _module(where, name, path)
    return _class(getattr(module, class_name, None), name, path)


def _module(where: str, name: str, path: Path) -> Any:
    try:
        return importlib.import_module(where)
    except Exception as error:  # somebody else's code: whatever it raises is the reason why it cannot be used
        raise _unusable(name, path, f"{type(error).__name__}: {error}") from error


def _file_module(file: Path, name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"situate_plugin_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise _unusable(name, path, f"no such file: {file}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # as above
        raise _unusable(name, path, f"{type(error).__name__}: {error}") from error
    return module


def _class(found: object, name: str, path: Path) -> type:
    from situate.core.engine.profile import points_of

    if not isinstance(found, type):
        raise _unusable(name, path, "there is no class of that name")
    if not points_of(found):
        raise _unusable(name, path, "has none of check, check_one, score, score_one")
    return found


def _unusable(name: str, path: Path, problem: str) -> Exception:
    from situate.wire.errors import InputError

    return InputError(problem, file=str(path), subject=f'plugin "{name}"')
