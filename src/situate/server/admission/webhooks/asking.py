"""Asks one webhook about one request: whether it is to be asked at all, the call, and what its answer means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final, NamedTuple

from situate.core.model.field_errors import quoted
from situate.loop.logs import Log
from situate.server.admission.expressions import (
    ConditionError,
    ConditionsTooExpensiveError,
    request_variables,
    unmet_condition,
)
from situate.server.admission.matching import Equivalents, MatchedAs, in_version
from situate.server.admission.policies.evaluation import QUICK_BUDGET, Evaluator, LoopAuthorizer
from situate.server.admission.webhooks.client import CallError, WebhookClient
from situate.server.admission.webhooks.configurations import Webhook
from situate.server.admission.webhooks.metrics import WebhookMetrics
from situate.server.admission.webhooks.review import (
    MAX_WARNINGS,
    ReviewResponse,
    ReviewStatus,
    check_response,
    decode_patch,
    decode_review,
    review_body,
)
from situate.server.admission.webhooks.review_format import InvalidReviewError, spoken_version
from situate.server.errors import Cause, StatusError, bad_request, forbidden
from situate.server.identity.authorization.attributes import Authorizer
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import AdmissionRequest
from situate.server.registry.warning import annotate, warn

NO_DRY_RUN: Final = 'admission webhook "{name}" does not support dry run'
NO_VERSION: Final = (
    "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
)
_log = Log(__name__)


class CallFailedError(Exception):
    """A call failed, so that the failure policy decides."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Asked(NamedTuple):
    webhook: Webhook
    matched: MatchedAs


class Asking:
    """What webhooks of both kinds need for their calls."""

    def __init__(
        self,
        cache: Cache,
        equivalents: Equivalents,
        authorizer: Authorizer,
        evaluator: Evaluator,
        client: WebhookClient,
        metrics: WebhookMetrics,
        new_uid: Callable[[], str],
    ) -> None:
        self._cache = cache
        self._equivalents = equivalents
        self._authorizer = authorizer
        self._evaluator = evaluator
        self._client = client
        self._metrics = metrics
        self._new_uid = new_uid

    async def matched(self, webhook: Webhook, request: AdmissionRequest) -> MatchedAs | None:
        """Whether it is to be asked, and in which version. Raises StatusError."""
        found = webhook.matcher.matched(request, self._cache, self._equivalents.of(request.target.resource))
        if found is None or not webhook.conditions:
            return found
        try:
            unmet = await self._unmet(webhook, request, found)
        except ConditionError as error:
            if webhook.ignores_failures:
                return None
            resource = request.target.resource
            raise forbidden(resource.plural, resource.group, request.target.name, str(error)) from None
        return found if unmet is None else None

    async def _unmet(self, webhook: Webhook, request: AdmissionRequest, found: MatchedAs) -> str | None:
        """As with policies, what is cheap is evaluated at once, and the rest again, beside the event loop. Raises
        ConditionError."""
        try:
            variables = await request_variables(request, found, self._authorizer)
            return unmet_condition(webhook.conditions, variables, QUICK_BUDGET)
        except ConditionsTooExpensiveError:
            variables = await request_variables(request, found, LoopAuthorizer(self._authorizer))
            return await self._evaluator.beside(lambda: unmet_condition(webhook.conditions, variables))

    async def ask(self, asked: Asked, request: AdmissionRequest, kind: str) -> list[Any] | None:
        """The operations of its patch, if it allows the request; None if a failed call is ignored. Raises
        StatusError. `kind`: admit or validating, for metrics."""
        webhook, started = asked.webhook, perf_counter()
        rejected, code, error_type = True, 0, "apiserver_internal_error"
        try:
            answer = await self._call(asked, request, mutating=kind == "admit")
            if not answer.allowed:
                refusal = _refusal(webhook.name, answer.status or ReviewStatus())
                code, error_type = refusal.code, "no_error"
                raise refusal
            patch = _patch(answer)
            rejected, code = False, HTTPStatus.OK
        except CallFailedError as error:
            code, error_type, rejected = error.code, "calling_webhook_error", not webhook.ignores_failures
            text = f"failed calling webhook {quoted(webhook.name)}: {error}"
            if rejected:
                raise internal_error(text) from None
            _log.warning("A webhook failed, and is ignored", webhook=webhook.name, err=str(error))
            self._metrics.fail_open(webhook.name, kind)
            return None
        except asyncio.CancelledError:
            rejected, code = False, 0
            raise
        finally:
            spent = perf_counter() - started
            self._metrics.observe(webhook.name, kind, request.operation, spent, code, rejected=rejected)
            if rejected:
                self._metrics.reject(webhook.name, kind, request.operation, error_type, code)
        return patch

    async def _call(self, asked: Asked, request: AdmissionRequest, *, mutating: bool) -> ReviewResponse:
        webhook, matched = asked
        if request.dry_run and not webhook.allows_dry_run:
            raise bad_request(NO_DRY_RUN.format(name=webhook.name))
        version = spoken_version(webhook.spec.get("admissionReviewVersions") or ())
        if not version:
            raise CallFailedError(NO_VERSION, HTTPStatus.BAD_REQUEST)
        resource, uid = request.target.resource, self._new_uid()
        try:
            new = await in_version(request.object, resource, matched.resource)
            old = await in_version(request.old, resource, matched.resource)
        except StatusError as error:
            raise internal_error(error.message) from None
        body = review_body(uid, version, request, matched, new, old)
        try:
            found = await self._client.call(webhook.spec.get("clientConfig") or {}, body, webhook.timeout_s)
        except CallError as error:
            raise CallFailedError(f"failed to call webhook: {error}", error.code) from None
        try:
            review = decode_review(found, version)
        except InvalidReviewError as error:
            raise CallFailedError(f"failed to call webhook: {error}", HTTPStatus.SERVICE_UNAVAILABLE) from None
        try:
            answer = check_response(review, uid, version, mutating=mutating)
        except InvalidReviewError as error:
            text = f"received invalid webhook response: {error}"
            raise CallFailedError(text, HTTPStatus.SERVICE_UNAVAILABLE) from None
        for key, value in (answer.audit_annotations or {}).items():
            annotate({f"{webhook.name}/{key}": value})
        warn((answer.warnings or [])[:MAX_WARNINGS])
        return answer


def _patch(answer: ReviewResponse) -> list[Any]:
    try:
        return decode_patch(answer)
    except InvalidReviewError as error:
        raise CallFailedError(str(error), HTTPStatus.SERVICE_UNAVAILABLE) from None


def internal_error(text: str) -> StatusError:
    return StatusError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "InternalError",
        f"Internal error occurred: {text}",
        causes=[Cause("", text, "")],
    )


def _refusal(name: str, status: ReviewStatus) -> StatusError:
    code = max(status.code, HTTPStatus.BAD_REQUEST)
    denied = f"admission webhook {quoted(name)} denied the request"
    why = status.message or status.reason
    details = status.details or {}
    error = StatusError(
        code,
        status.reason,
        f"{denied}: {why}" if why else f"{denied} without explanation",
        group=_text(details, "group"),
        kind=_text(details, "kind"),
        name=_text(details, "name"),
        uid=_text(details, "uid"),
    )
    given = details.get("causes")
    if isinstance(given, list):
        error.causes = tuple(
            Cause(_text(one, "field"), _text(one, "message"), _text(one, "reason"))
            for one in given
            if isinstance(one, dict)
        )
    seconds = details.get("retryAfterSeconds")
    error.retry_after_s = seconds if isinstance(seconds, int) and not isinstance(seconds, bool) else 0
    return error


def _text(found: dict[str, object], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""
