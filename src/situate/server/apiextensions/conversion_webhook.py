"""Converts objects of custom kinds between versions, by the webhooks that their definitions name.

A webhook is not trusted: it has a time limit, its answers have a size limit (see the client), every object that it
returns is checked, and long answers are read beside the event loop. What it gets wrong, or does not answer, is the
error of the request that needs the conversion: 500, with kube-apiserver's text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

import msgspec

from situate.server.admission.webhooks.client import CallError, WebhookClient
from situate.server.admission.webhooks.review_format import VERSIONS, InvalidReviewError, spoken_version
from situate.server.apiextensions.conversion_metrics import CALL, INVALID_OBJECT, MALFORMED, PARTIAL, ConversionMetrics
from situate.server.apiextensions.conversion_review import (
    InvalidObjectError,
    UnreadableObjectError,
    check_converted,
    converted_objects,
    review_body,
)
from situate.server.errors import StatusError, unclassified
from situate.server.objects import Object

TIMEOUT_S: Final = 30
"""Of a call, as in kube-apiserver."""
REVIEW_OBJECTS: Final = 500
"""Objects of one review: a page of kubectl's. A longer list takes several reviews, one after another."""
REVIEW_BYTES: Final = 512 << 10
"""Of the objects of one review, if it has more than one."""
LARGE_BYTES: Final = 128 << 10
"""A longer answer is read in a thread."""
LARGE_AT_A_TIME: Final = 2
"""Long answers that are read at a time; the next ones wait."""
_encode: Final = msgspec.json.Encoder().encode


class ConversionWebhooks:
    """The conversion webhooks of all definitions."""

    def __init__(
        self, client: WebhookClient, new_uid: Callable[[], str], metrics: ConversionMetrics | None = None
    ) -> None:
        self._client = client
        self._new_uid = new_uid
        self._metrics = ConversionMetrics() if metrics is None else metrics
        self._large = asyncio.Semaphore(LARGE_AT_A_TIME)

    async def convert(self, spec: Object, objects: Sequence[Object], wanted: str) -> list[Object]:
        """The objects in another version, by the webhook in the spec of their definition. Raises StatusError."""
        done: list[Object] = []
        name = f"{spec['names']['plural']}.{spec['group']}"
        for some in _reviews(objects):
            versions = (_version_of(some[0]["apiVersion"]), _version_of(wanted))
            began = monotonic()
            try:
                done += await self._review(spec["conversion"]["webhook"], some, wanted)
            except FailedReviewError as error:
                self._metrics.observe(name, versions, monotonic() - began, error.kind)
                raise error.status from None
            self._metrics.observe(name, versions, monotonic() - began)
        return done

    async def _review(self, webhook: Object, objects: Sequence[Object], wanted: str) -> list[Object]:
        """Raises FailedReviewError."""
        uid = self._new_uid()
        version = spoken_version(webhook.get("conversionReviewVersions") or ()) or VERSIONS[0]
        body = review_body(uid, version, objects, wanted)
        try:
            answer = await self._client.call(webhook.get("clientConfig") or {}, body, TIMEOUT_S)
        except CallError as error:
            raise FailedReviewError(CALL, conversion_failed(objects[0], f"failed: {error}")) from None
        if len(answer) <= LARGE_BYTES:
            return _converted(answer, uid, version, objects, wanted)
        async with self._large:
            return await asyncio.to_thread(_converted, answer, uid, version, objects, wanted)


class FailedReviewError(Exception):
    """A call of a webhook has converted nothing."""

    def __init__(self, kind: str, status: StatusError) -> None:
        super().__init__(status.message)
        self.kind = kind
        """What failed, for metrics."""
        self.status = status


def _reviews(objects: Sequence[Object]) -> Iterator[Sequence[Object]]:
    some: list[Object] = []
    size = 0
    for one in objects:
        length = len(_encode(one))
        if some and (len(some) == REVIEW_OBJECTS or size + length > REVIEW_BYTES):
            yield some
            some, size = [], 0
        some.append(one)
        size += length
    if some:
        yield some


def _converted(answer: bytes, uid: str, version: str, objects: Sequence[Object], wanted: str) -> list[Object]:
    """The objects of an answer. Raises FailedReviewError."""
    first, alone = objects[0], len(objects) == 1
    try:
        found = converted_objects(answer, uid, version)
    except InvalidReviewError as error:
        raise FailedReviewError(MALFORMED, conversion_failed(first, f"failed: {error}")) from None
    if len(found) != len(objects):
        why = f"returned {len(found)} objects, expected {len(objects)}"
        raise FailedReviewError(PARTIAL, conversion_failed(first, why))
    done: list[Object] = []
    for at, (raw, original) in enumerate(zip(found, objects, strict=True)):
        try:
            done.append(check_converted(raw, original, wanted))
        except InvalidObjectError as error:
            failed = conversion_failed(original, error.text(at, alone=alone))
            raise FailedReviewError(INVALID_OBJECT, failed) from None
        except UnreadableObjectError as error:
            failed = conversion_failed(original, f"returned invalid converted object at index {at}: {error}")
            raise FailedReviewError(INVALID_OBJECT, unclassified(str(error)) if alone else failed) from None
    return done


def _version_of(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def conversion_failed(obj: Any, why: str) -> StatusError:
    """`obj`: one that was to be converted."""
    return unclassified(f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']} {why}")
