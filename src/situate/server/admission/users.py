"""The admission plugins that users configure, in Kubernetes' order."""

from __future__ import annotations

from collections.abc import Callable

from situate.server.admission.matching import Equivalents
from situate.server.admission.policies.evaluation import Evaluator
from situate.server.admission.policies.mutating import MutatingPolicies
from situate.server.admission.policies.validating import ValidatingPolicies
from situate.server.admission.webhooks.asking import Asking
from situate.server.admission.webhooks.client import WebhookClient
from situate.server.admission.webhooks.configurations import MUTATING, VALIDATING, Configurations
from situate.server.admission.webhooks.metrics import WebhookMetrics
from situate.server.admission.webhooks.plugins import MutatingWebhooks, ValidatingWebhooks
from situate.server.apiextensions.served import CustomKinds
from situate.server.identity.authorization.attributes import Authorizer
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import UserAdmission


def user_admission(
    cache: Cache,
    custom: CustomKinds,
    authorizer: Authorizer,
    client: WebhookClient,
    metrics: WebhookMetrics,
    new_uid: Callable[[], str],
) -> UserAdmission:
    equivalents = Equivalents(lambda: custom.resources)
    evaluator = Evaluator()
    asking = Asking(cache, equivalents, authorizer, evaluator, client, metrics, new_uid)
    return UserAdmission(
        mutating=[
            MutatingPolicies(cache, custom, authorizer, evaluator),
            MutatingWebhooks(Configurations(cache, MUTATING, equivalents), asking),
        ],
        validating=[
            ValidatingPolicies(cache, custom, authorizer, evaluator),
            ValidatingWebhooks(Configurations(cache, VALIDATING, equivalents), asking),
        ],
    )
