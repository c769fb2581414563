"""Messages of certificates.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[certificates.v1]
string: KeyUsage RequestConditionType
ExtraValue = [string]
kind CertificateSigningRequest: metadata 1 meta.v1.ObjectMeta!; spec 2 CertificateSigningRequestSpec!*;
    status 3 CertificateSigningRequestStatus!
CertificateSigningRequestCondition: type 1 RequestConditionType!; status 6 core.v1.ConditionStatus!; reason 2 string;
    message 3 string; lastUpdateTime 4 Time!; lastTransitionTime 5 Time!
CertificateSigningRequestSpec: request 1 bytes!; signerName 7 string!; expirationSeconds 8 int32?;
    usages 5 [KeyUsage]; username 2 string; uid 3 string; groups 4 [string]; extra 6 {ExtraValue}
CertificateSigningRequestStatus: conditions 1 [CertificateSigningRequestCondition] by type replaced;
    certificate 2 bytes
"""
