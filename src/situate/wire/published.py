"""The configuration that a scheduler publishes for others to read: one key of a ConfigMap that all schedulers share.

It says which schedulerNames somebody serves, and by which profiles. It contains no secrets, and a reader loads no code
that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from situate.core.config.encode import encode
from situate.core.config.resolve import complete
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.versions import DEFAULT, KubernetesRules
from situate.wire.config import load_config
from situate.wire.errors import InputError

NAMESPACE: Final = "kube-system"
NAME: Final = "situate-schedulers"
LARGEST: Final = 512 << 10
"""How many bytes a published configuration has at most: a ConfigMap has room for one MiB."""
OWN_SCHEDULER: Final = "kube-system.situate-scheduler.json"
"""The key of the scheduler in situate's own control plane."""


def published_key(namespace: str, name: str) -> str:
    """The key of the schedulers that share this lease."""
    return f"{namespace}.{name}.json"


def published_text(config: KubeSchedulerConfiguration) -> str:
    """The configuration with its defaults, as JSON. Raises InputError if it is too large."""
    text = msgspec.json.format(msgspec.json.encode(encode(without_secrets(complete(config)))), indent=2).decode()
    if len(text.encode()) > LARGEST:
        raise InputError(f"the configuration has more than {LARGEST >> 10} KiB")
    return text


def published_map(key: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {key: text},
    }


def read_published(
    data: Mapping[str, object], rules: KubernetesRules = DEFAULT
) -> tuple[dict[str, KubeSchedulerConfiguration], list[str]]:
    """The configurations by key, and what is wrong with those that cannot be read.

    Without the extenders: nobody but the scheduler calls them, and they are published without their keys.
    """
    found: dict[str, KubeSchedulerConfiguration] = {}
    problems: list[str] = []
    for key, text in sorted(data.items()):
        where = f"{NAMESPACE}/{NAME}: {key}"
        try:
            fields = msgspec.json.decode(str(text), type=dict[str, Any])
            fields.pop("extenders", None)
            found[key] = load_config(msgspec.json.encode(fields), where, rules)
        except msgspec.DecodeError as error:
            problems.append(f"{where}: {error}")
        except InputError as error:
            problems.append(str(error).splitlines()[0])
    return found, problems


def without_secrets(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Without the keys of extenders."""
    extenders = tuple(
        one if one.tls_config is None else replace(one, tls_config=replace(one.tls_config, key_data=b""))
        for one in config.extenders
    )
    return replace(config, extenders=extenders)
