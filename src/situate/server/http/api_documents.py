"""Discovery and OpenAPI documents of the kinds served now: made again when the set of custom kinds has changed."""

from __future__ import annotations

from collections.abc import Sequence

from situate.server.apiextensions.served import CustomKinds
from situate.server.discovery import Discovery
from situate.server.openapi import OpenApi
from situate.server.resources import RESOURCES, Resource


class ApiDocuments:
    def __init__(self, custom: CustomKinds, served: Sequence[Resource] = RESOURCES) -> None:
        """`served`: the resources of this server's version of Kubernetes."""
        self._served = served
        self._custom = custom
        self._version = custom.version if custom.resources else None
        self._discovery = Discovery((*served, *custom.resources))
        self._openapi = OpenApi((*served, *custom.resources))

    @property
    def discovery(self) -> Discovery:
        self._refresh()
        return self._discovery

    @property
    def openapi(self) -> OpenApi:
        self._refresh()
        return self._openapi

    def _refresh(self) -> None:
        version = self._custom.version
        if version != self._version:
            resources = (*self._served, *self._custom.resources)
            self._version = version
            self._discovery = Discovery(resources)
            self._openapi = self._openapi.of(resources)
