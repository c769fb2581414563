"""The two plugins: webhooks that may change the object, one after another, and those that only check, all at once."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from situate.core.model.field_errors import quoted
from situate.server.admission.matching import MatchedAs, in_version
from situate.server.admission.webhooks.asking import Asked, Asking, internal_error
from situate.server.admission.webhooks.configurations import Configurations
from situate.server.admission.webhooks.review import JSON_PATCH
from situate.server.errors import StatusError
from situate.server.kinds import STRATEGIES
from situate.server.registry.normalize import decode_body
from situate.server.registry.user_admission import AdmissionRequest, Operation
from situate.server.registry.warning import annotate
from situate.server.requests import Object
from situate.server.resources import Resource
from situate.wire.patching import PatchError, json_patched
from situate.wire.schema import DecodeError, normalised

MUTATION: Final = "mutation.webhook.admission.k8s.io/"
PATCH: Final = "patch.webhook.admission.k8s.io/"
VALIDATION_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"
NO_OBJECT: Final = "admission webhook {name} attempted to modify the object, which is not supported for this operation"
CALLS_PER_REQUEST: Final = 64
"""Webhooks that are asked about one request at the same time; the next ones wait."""
_encode: Final = msgspec.json.Encoder().encode


class _Remembered(Struct):
    """Which webhooks were asked in the first round, and are asked again if the object has changed since."""

    invoked: list[str] = field(default_factory=list)
    due: set[str] = field(default_factory=set)
    output: Object | None = None
    """The object after the last of them."""

    def require(self) -> None:
        self.due.update(self.invoked)
        self.invoked.clear()


class MutatingWebhooks:
    name: Final = "MutatingAdmissionWebhook"

    def __init__(self, configurations: Configurations, asking: Asking) -> None:
        self._configurations = configurations
        self._asking = asking

    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        return bool(self._configurations.concerned(resource, subresource, operation))

    async def admit(self, request: AdmissionRequest) -> None:
        remembered: _Remembered = request.memory.setdefault(self.name, _Remembered())
        if request.is_reinvoked and request.object != remembered.output:
            remembered.require()
        target = request.target
        hooks = self._configurations.concerned(target.resource, target.subresource, request.operation)
        for webhook in hooks:
            matched = await self._asking.matched(webhook, request)
            if matched is None or (request.is_reinvoked and webhook.uid not in remembered.due):
                continue
            if await self._ask(Asked(webhook, matched), request, self._configurations.index(webhook)):
                remembered.require()
            if webhook.is_reinvoked:
                remembered.invoked.append(webhook.uid)
        remembered.output = request.object

    async def _ask(self, asked: Asked, request: AdmissionRequest, index: int) -> bool:
        """Whether it has changed the object."""
        webhook, round_ = asked.webhook, int(request.is_reinvoked)
        where, changed = f"round_{round_}_index_{index}", False
        named: Object = {"configuration": webhook.configuration, "webhook": webhook.name}
        try:
            patch = await self._asking.ask(asked, request, "admit")
            if patch is None:
                annotate({f"failed-open.{MUTATION}{where}": webhook.name})
            if not patch:
                return False
            before = request.object
            if before is None:
                raise internal_error(NO_OBJECT.format(name=quoted(webhook.name)))
            after = await _patched(before, patch, request, asked.matched)
            said = _encode({**named, "patch": patch, "patchType": JSON_PATCH}).decode()
            annotate({f"{PATCH}{where}": said})
            changed = after != before
            if changed:
                request.object = after
            return changed
        finally:
            annotate({f"{MUTATION}{where}": _encode({**named, "mutated": changed}).decode()})


async def _patched(obj: Object, patch: list[Any], request: AdmissionRequest, matched: MatchedAs) -> Object:
    """The object after a patch of it in the version that the webhook was shown, decoded and with defaults again."""
    resource = request.target.resource
    shown = await in_version(obj, resource, matched.resource)
    if shown is None:  # there is an object, so that there is one in each version
        return obj
    try:
        body = json_patched(shown, patch)
        if (body.get("apiVersion"), body.get("kind")) != (shown.get("apiVersion"), shown.get("kind")):
            raise internal_error("the patch changes the kind of the object")
        if matched.kind != matched.resource.kind:
            return normalised(matched.api_version, matched.kind, body)
        after = decode_body(matched.resource, _encode(body), strict=False).object
    except PatchError as error:
        raise internal_error(str(error)) from None
    except DecodeError as error:
        raise internal_error(error.why) from None
    _default(after, matched.resource)
    found = await in_version(after, matched.resource, resource)
    return after if found is None else found


def _default(obj: Object, resource: Resource) -> None:
    strategy = resource.custom.strategy if resource.custom is not None else None
    if strategy is None:
        strategy = STRATEGIES.get(f"{resource.group}/{resource.kind}")
    if strategy is not None:
        strategy.default(obj)


class ValidatingWebhooks:
    def __init__(self, configurations: Configurations, asking: Asking) -> None:
        self._configurations = configurations
        self._asking = asking

    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        return bool(self._configurations.concerned(resource, subresource, operation))

    async def admit(self, request: AdmissionRequest) -> None:
        target = request.target
        relevant: list[Asked] = []
        for webhook in self._configurations.concerned(target.resource, target.subresource, request.operation):
            matched = await self._asking.matched(webhook, request)
            if matched is not None:
                relevant.append(Asked(webhook, matched))
        refusals: list[StatusError] = []
        slots = asyncio.Semaphore(CALLS_PER_REQUEST)

        async def ask(index: int, asked: Asked) -> None:
            try:
                async with slots:
                    answer = await self._asking.ask(asked, request, "validating")
            except StatusError as error:
                refusals.append(error)
            else:
                if answer is None:
                    annotate({f"{VALIDATION_OPEN}round_0_index_{index}": asked.webhook.name})

        if len(relevant) == 1:
            await ask(0, relevant[0])
        else:
            async with asyncio.TaskGroup() as calls:
                for index, asked in enumerate(relevant):
                    calls.create_task(ask(index, asked))
        if refusals:
            raise refusals[0]
