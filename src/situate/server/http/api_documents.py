"""Discovery and OpenAPI documents of what is served now: made again when the custom kinds or the aggregated APIs have
changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from situate.server.aggregation.apis import AggregatedApi, AggregatedApis
from situate.server.apiextensions.served import CustomKinds
from situate.server.discovery import Discovery, Document, document
from situate.server.openapi import OpenApi
from situate.server.resources import RESOURCES, Resource


class ApiDocuments:
    def __init__(
        self, custom: CustomKinds, served: Sequence[Resource] = RESOURCES, aggregated: AggregatedApis | None = None
    ) -> None:
        """`served`: the resources of this server's version of Kubernetes."""
        self._served = served
        self._custom = custom
        self._aggregated = aggregated
        self._version = custom.version if custom.resources else None
        self._resources = (*served, *custom.resources)
        self._others: Sequence[AggregatedApi] = ()
        self._discovery = Discovery(self._resources)
        self._openapi = OpenApi(self._resources)

    @property
    def discovery(self) -> Discovery:
        self._refresh()
        return self._discovery

    @property
    def openapi(self) -> OpenApi:
        self._refresh()
        return self._openapi

    def openapi_index(self) -> Document:
        """The documents of aggregated APIs are their servers'."""
        index = self.openapi.index()
        available = [one for one in self._others if not one.problem]
        if not available:
            return index
        content = msgspec.json.decode(index.body)
        for one in available:
            content["paths"][one.path[1:]] = {"serverRelativeURL": f"/openapi/v3{one.path}?hash={one.discovered.hash}"}
        return document(content)

    def _refresh(self) -> None:
        version = self._custom.version
        others = self._aggregated.all if self._aggregated is not None else ()
        if version == self._version and others == self._others:
            return
        theirs = {(one.group, one.version) for one in others}
        custom = [one for one in self._custom.resources if (one.group, one.version) not in theirs]
        resources = (*self._served, *custom)
        self._version, self._others = version, others
        self._discovery = Discovery(resources, others)
        if resources != self._resources:
            self._openapi = self._openapi.of(resources)
            self._resources = resources
