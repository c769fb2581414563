"""Messages of authentication.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[authentication.v1]
ExtraValue = [string]
BoundObjectReference: kind 1 string; apiVersion 2 string; name 3 string; uid 4 types.UID
kind SelfSubjectReview: metadata 1 meta.v1.ObjectMeta!; status 2 SelfSubjectReviewStatus!
SelfSubjectReviewStatus: userInfo 1 UserInfo!
kind TokenRequest: metadata 1 meta.v1.ObjectMeta!; spec 2 TokenRequestSpec!; status 3 TokenRequestStatus!
TokenRequestSpec: audiences 1 [string]!~; expirationSeconds 4 int64?; boundObjectRef 3 BoundObjectReference?
TokenRequestStatus: token 1 string!~; expirationTimestamp 2 Time!
kind TokenReview: metadata 1 meta.v1.ObjectMeta!; spec 2 TokenReviewSpec!*; status 3 TokenReviewStatus!
TokenReviewSpec: token 1 string*; audiences 2 [string]
TokenReviewStatus: authenticated 1 bool; user 2 UserInfo!; audiences 4 [string]; error 3 string
UserInfo: username 1 string; uid 2 string; groups 3 [string]; extra 4 {ExtraValue}
"""
