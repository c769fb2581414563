"""Discovery and OpenAPI documents of the kinds served now: made again when the set of custom kinds has changed."""

from __future__ import annotations

from situate.server.apiextensions.served import CustomKinds
from situate.server.discovery import Discovery
from situate.server.openapi import OpenApi
from situate.server.resources import RESOURCES


class ApiDocuments:
    def __init__(self, custom: CustomKinds) -> None:
        self._custom = custom
        self._version = custom.version if custom.resources else None
        self._discovery = Discovery((*RESOURCES, *custom.resources))
        self._openapi = OpenApi((*RESOURCES, *custom.resources))

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
            resources = (*RESOURCES, *self._custom.resources)
            self._version = version
            self._discovery = Discovery(resources)
            self._openapi = OpenApi(resources, documents=self._openapi.unchanged(resources))
