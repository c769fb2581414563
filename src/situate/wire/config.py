"""Reads and writes KubeSchedulerConfiguration files.

What is wrong with one is raised as one InputError that has all of it: a line for people who want one, and the lines.
As kube-scheduler does, only the first document of a file is read.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.config.encode import encode
from situate.core.config.errors import ConfigError
from situate.core.config.resolve import ResolvedProfile, resolve
from situate.core.config.types import KIND, KubeSchedulerConfiguration
from situate.core.config.validate import validate
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.dump import dump_yaml
from situate.wire.errors import InputError
from situate.wire.yaml import load_yaml

JSON_INDENT: Final = 4  # as kubectl's


class ConfigInputError(InputError):
    """`problems` has every error, a line each, with field paths; `str()` has the first, and how many more."""

    def __init__(self, problems: Sequence[str], file: str = "") -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}", file=file, subject=KIND)
        self.problems = tuple(problems)


def load_config(data: bytes, file: str = "", rules: KubernetesRules = DEFAULT) -> KubeSchedulerConfiguration:
    """The file's configuration for a version of Kubernetes, defaults set, validated. Raises InputError."""
    documents = list(load_yaml(data, file))
    return config_of(documents[0] if documents else None, file, rules)


def config_of(raw: object, file: str = "", rules: KubernetesRules = DEFAULT) -> KubeSchedulerConfiguration:
    """The same for a decoded document."""
    try:
        config = with_defaults(decode(raw, rules))
    except ConfigError as error:
        raise ConfigInputError(error.problems, file) from None
    problems = validate(config)
    if problems:
        raise ConfigInputError(problems, file)
    return config


def profiles_of(
    config: KubeSchedulerConfiguration, known: Mapping[str, frozenset[str]], file: str = ""
) -> tuple[ResolvedProfile, ...]:
    """The profiles of the configuration, with the available plugins. Raises InputError."""
    try:
        return resolve(config, known)
    except ConfigError as error:
        raise ConfigInputError(error.problems, file) from None


def dump_config(config: KubeSchedulerConfiguration, output: str = "yaml") -> str:
    """As text that `load_config` reads back: "yaml", as kube-scheduler writes it, or "json"."""
    document = encode(config)
    if output == "json":
        return json.dumps(document, indent=JSON_INDENT, ensure_ascii=False) + "\n"
    return dump_yaml(document, sort_keys=True)
