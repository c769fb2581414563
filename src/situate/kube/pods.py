"""Reads one pod from the API server."""

from __future__ import annotations

from typing import Final

from situate.core.changes import PodRef
from situate.core.model.pod import Pod
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.wire.errors import InputError
from situate.wire.objects import decode_pod

READ_S: Final = 5.0
"""The timeout of reading one object."""
ANOTHER: Final = 422
"""The status of a patch that names a uid, if another object has the name by now ("field is immutable"); and of an
invalid patch."""


def pod_path(ref: PodRef) -> str:
    return f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}"


async def read_pod(client: Client, ref: PodRef) -> Pod | None:
    """The pod of this name as it is now, whatever its uid; None if there is none. Raises ApiError."""
    try:
        return decode_pod(await client.request("GET", pod_path(ref), timeout_s=READ_S))
    except ApiError as error:
        if error.not_found:
            return None
        raise
    except InputError as error:
        raise ApiError(0, "Unreadable", f"pod {ref.key} cannot be read: {error}") from None
