"""Publishes the scheduler's configuration on the API server, so that `situate why` can use it. Never in the way."""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.config.types import KubeSchedulerConfiguration
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.loop.logs import Log
from situate.wire.errors import InputError
from situate.wire.published import NAME, NAMESPACE, published_key, published_map, published_text

PUBLISH_S: Final = 30.0
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
APPLY: Final = "application/apply-patch+yaml"

_log = Log(__name__)


async def publish(client: Client, namespace: str, name: str, config: KubeSchedulerConfiguration) -> bool:
    """Publish the configuration under the key of this lease. False, and a line in the log, if that is not possible."""
    key = published_key(namespace, name)
    try:
        body = msgspec.json.encode(published_map(key, published_text(config)))
        params = {"fieldManager": f"situate-scheduler.{namespace}.{name}"[:128], "force": "true"}
        await client.request("PATCH", PATH, params=params, body=body, content_type=APPLY, timeout_s=PUBLISH_S)
    except (ApiError, InputError) as error:
        where = f"{NAMESPACE}/{NAME}"
        _log.warning("The configuration was not published; `situate why` assumes another", map=where, err=str(error))
        return False
    return True
