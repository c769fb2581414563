"""Flags of kube-apiserver 1.36 and 1.37 that are accepted and have no effect here."""

from typing import Final

_NAMES: Final = """
admission-control admission-control-config-file advertise-address aggregator-reject-forwarding-redirect
allow-metric-labels allow-metric-labels-manifest allow-privileged anonymous-auth api-audiences
audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format audit-log-maxage
audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-enabled
audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version
audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait
audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable audit-webhook-batch-throttle-qps
audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode audit-webhook-truncate-enabled
audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version
authentication-config authentication-token-webhook-cache-ttl authentication-token-webhook-config-file
authentication-token-webhook-version authorization-config authorization-policy-file
authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
authorization-webhook-config-file authorization-webhook-version contention-profiling
coordinated-leadership-lease-duration coordinated-leadership-renew-deadline coordinated-leadership-retry-period
cors-allowed-origins debug-socket-path default-not-ready-toleration-seconds default-unreachable-toleration-seconds
delete-collection-workers disable-http2-serving disabled-metrics egress-selector-config-file emulated-version
emulation-forward-compatible enable-admission-plugins enable-aggregator-routing enable-bootstrap-token-auth
enable-garbage-collector enable-logs-handler enable-priority-and-fairness
encryption-provider-config-automatic-reload endpoint-reconciler-type etcd-compaction-interval
etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-readycheck-timeout
etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance http2-max-streams-per-connection
kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types
kubelet-timeout kubernetes-service-node-port lease-reuse-duration-seconds livez-grace-period log-flush-frequency
log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
max-connection-bytes-per-sec max-mutating-requests-inflight max-requests-inflight min-compatibility-version
min-request-timeout oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url
oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port
peer-ca-file permit-address-sharing permit-port-sharing profiling proxy-client-cert-file proxy-client-key-file
request-timeout requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
requestheader-group-headers requestheader-uid-headers requestheader-username-headers runtime-config
runtime-config-emulation-forward-compatible service-account-extend-token-expiration service-account-jwks-uri
service-account-lookup service-account-max-token-expiration service-account-signing-endpoint
service-cluster-ip-range service-node-port-range show-hidden-metrics-for-version shutdown-delay-duration
shutdown-send-retry-after shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout
storage-media-type strict-transport-security-directives tls-cipher-suites tls-curve-preferences tls-min-version
tls-sni-cert-key tracing-config-file vmodule watch-cache watch-cache-sizes
"""
NO_EFFECT: Final = frozenset(_NAMES.split())
GIVEN_BY_ENVTEST: Final = frozenset(("allow-privileged", "service-cluster-ip-range"))
"""Every test gives these, so nothing is said of them."""
