"""The reviews of authentication.k8s.io, which identity/reviews.py answers. Nothing is stored."""

from typing import Final

from situate.server.kinds.kind import Kind

SELF_SUBJECT_REVIEW: Final = Kind(
    "authentication.k8s.io/v1 selfsubjectreviews SelfSubjectReview C - - ! create",
    description="SelfSubjectReview says who the caller is.",
)

TOKEN_REVIEW: Final = Kind(
    "authentication.k8s.io/v1 tokenreviews TokenReview C - - ! create",
    description="TokenReview asks to whom a token belongs.",
)
