"""Publishes the scheduler's configuration in the server's own ConfigMap, where `situate why` and the views read it."""

from __future__ import annotations

from typing import Final

from situate.core.config.types import KubeSchedulerConfiguration
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.objects import Object
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND
from situate.store.errors import StoreError
from situate.wire.errors import InputError
from situate.wire.published import NAME, NAMESPACE, published_map, published_text

CONFIG_MAPS: Final = BY_KIND["v1", "ConfigMap"]
MAP: Final = Target(CONFIG_MAPS, NAMESPACE, NAME)

NOT_FOUND, CONFLICT = 404, 409

_log = Log(__name__)


class _PublishedError(Exception):
    """It is published already."""


async def publish(registry: Registry, key: str, config: KubeSchedulerConfiguration) -> bool:
    """Publish the configuration under this key. False, and a line in the log, if that is not possible."""
    try:
        text = published_text(config)
        try:
            await _write(registry, key, text)
        except StatusError as error:
            if error.code != NOT_FOUND:
                raise
            try:
                await registry.create(Target(CONFIG_MAPS, NAMESPACE), published_map(key, text), SYSTEM)
            except StatusError as raced:
                if raced.code != CONFLICT:
                    raise
                await _write(registry, key, text)
    except _PublishedError:
        pass
    except (StatusError, StoreError, InputError) as error:
        _log.warning("The configuration was not published; `situate why` assumes another", err=str(error))
        return False
    return True


async def _write(registry: Registry, key: str, text: str) -> None:
    def change(held: Object, _stored: StoredObject) -> Object:
        data = held.setdefault("data", {})
        if data.get(key) == text:
            raise _PublishedError
        data[key] = text
        return held

    await registry.modify(MAP, change, SYSTEM)
