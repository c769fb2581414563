"""Recorded clusters: a line of JSON with objects, pending pods, and optionally a configuration."""

import msgspec

from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.model.pod import Pod
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.config import config_of
from situate.wire.errors import InputError, from_decoder
from situate.wire.objects import Objects, objects_of


class Scenario(msgspec.Struct, frozen=True):
    """A cluster and the pods to decide about, in order."""

    id: str
    objects: Objects
    pending: list[Pod]
    sequence: bool
    """Whether to bind each pod before deciding the next."""
    config: KubeSchedulerConfiguration


class _Line(msgspec.Struct):
    id: str
    objects: list[msgspec.Raw]
    pending: list[msgspec.Raw]
    sequence: bool = False
    config: dict[str, object] | None = None


_LINE = msgspec.json.Decoder(_Line)


def decode_scenario(line: bytes, file: str = "", rules: KubernetesRules = DEFAULT) -> Scenario:
    """A scenario with the API server's defaults applied, for a version of Kubernetes. Raises InputError."""
    try:
        found = _LINE.decode(line)
    except msgspec.ValidationError as error:
        path, problem = from_decoder(str(error), None)
        raise InputError(problem, file=file, path=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=file) from None
    config = default_configuration(rules) if found.config is None else config_of(found.config, file, rules)
    pending = objects_of(found.pending, file).pods
    if len(pending) != len(found.pending):
        raise InputError("something other than a pod waits", file=file, path="pending")
    return Scenario(found.id, objects_of(found.objects, file), pending, found.sequence, config)
