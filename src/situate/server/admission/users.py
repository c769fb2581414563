"""The admission plugins that users configure, in Kubernetes' order."""

from __future__ import annotations

from situate.server.admission.policies.evaluation import Evaluator
from situate.server.admission.policies.mutating import MutatingPolicies
from situate.server.admission.policies.validating import ValidatingPolicies
from situate.server.apiextensions.served import CustomKinds
from situate.server.identity.authorization.attributes import Authorizer
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import UserAdmission


def user_admission(cache: Cache, custom: CustomKinds, authorizer: Authorizer) -> UserAdmission:
    evaluator = Evaluator()
    return UserAdmission(
        mutating=[MutatingPolicies(cache, custom, authorizer, evaluator)],
        validating=[ValidatingPolicies(cache, custom, authorizer, evaluator)],
    )
