"""The reviews of authorization.k8s.io, which identity/reviews.py answers. Nothing is stored."""

from typing import Final

from situate.server.kinds.kind import Kind

LOCAL_ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io/v1 localsubjectaccessreviews LocalSubjectAccessReview N - - ! create",
    description="LocalSubjectAccessReview asks whether somebody may do something in a namespace.",
)

SELF_ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview C - - ! create",
    description="SelfSubjectAccessReview asks whether the caller may do something.",
)

SELF_RULES_REVIEW: Final = Kind(
    "authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview C - - ! create",
    description="SelfSubjectRulesReview lists what the caller may do in a namespace.",
)

ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview C - - ! create",
    description="SubjectAccessReview asks whether somebody may do something.",
)
