"""Validates a configuration that has its defaults: kube-scheduler's checks, in its order and words.

It returns all problems and raises none. `resolve` checks whether the named plugins exist.
"""

from collections.abc import Sequence
from typing import Any, Final

from situate.core.config.types import (
    API_VERSION,
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    Plugins,
    PluginSet,
)
from situate.core.model.duration import format_duration
from situate.core.model.field_errors import child, distinct, duplicate, forbidden, index, invalid, required
from situate.core.model.names import qualified_name_problems
from situate.core.plugins.support.arguments import PluginArgs
from situate.core.versions import KubernetesRules

# Removed in v1 of the configuration: NodeVolumeLimits counts all volume limits.
REMOVED_PLUGINS: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
# kube-scheduler names the core group's version here; its users search for that text.
_REMOVED: Final = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'

_HTTPS: Final = "https://"
_NO_CA: Final = "https needs caFile or caData; or insecure: true, and then anybody can answer in the extender's place"
_INSECURE_WITH_CA: Final = "specifying a root certificates file with the insecure flag is not allowed"

# Where to look for removed plugins: not under multiPoint and the points after it, where they are simply unknown.
_POINTS_LOOKED_AT: Final = tuple(zip(Plugins.__struct_encode_fields__, Plugins.__struct_fields__, strict=True))[:12]


def validate(config: KubeSchedulerConfiguration) -> list[str]:
    """All problems, a line each; empty if the configuration is valid."""
    problems = _client_connection("clientConnection", config.client_connection)
    problems += _leader_election("leaderElection", config.leader_election)
    if config.parallelism <= 0:
        problems.append(invalid("parallelism", config.parallelism, "should be an integer value greater than zero"))
    problems += _profiles("profiles", config)
    problems += _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    problems += _backoff(config)
    problems += _extenders("extenders", config.extenders)
    return distinct(problems)


def _client_connection(path: str, connection: ClientConnection) -> list[str]:
    if connection.burst >= 0:
        return []
    return [invalid(child(path, "burst"), connection.burst, "must be non-negative")]


def _leader_election(path: str, election: LeaderElection) -> list[str]:
    if not election.leader_elect:
        return []
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    problems = [
        invalid(child(path, name), format_duration(value), "must be greater than zero")
        for name, value in durations.items()
        if value <= 0
    ]
    if election.lease_duration <= election.renew_deadline:
        shown = format_duration(election.renew_deadline)
        problems.append(invalid(child(path, "leaseDuration"), shown, "must be greater than `RenewDeadline`"))
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        problems.append(invalid(child(path, "resourceLock"), election.resource_lock, detail))
    return problems


def _percentage(path: str, percentage: int | None) -> list[str]:
    if percentage is None or 0 <= percentage <= 100:
        return []
    return [invalid(path, percentage, "not in valid range [0-100]")]


def _node_sample(path: str, profile: KubeSchedulerProfile) -> list[str]:
    """Our own setting, in kube-scheduler's words."""
    sample = profile.node_sample
    if sample is None:
        return []
    if sample <= 0:
        return [invalid(path, sample, "must be greater than 0")]
    if profile.percentage_of_nodes_to_score:
        return [forbidden(path, "may not be given together with percentageOfNodesToScore")]
    return []


def _backoff(config: KubeSchedulerConfiguration) -> list[str]:
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    problems = []
    if initial <= 0:
        problems.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        problems.append(invalid("podMaxBackoffSeconds", longest, detail))
    return problems


# ── profiles ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _profiles(path: str, config: KubeSchedulerConfiguration) -> list[str]:
    profiles = config.profiles
    if not profiles:
        return [required(path)]
    problems: list[str] = []
    seen: set[str] = set()
    for i, profile in enumerate(profiles):
        here = index(path, i)
        name = profile.scheduler_name or ""
        if not name:
            problems.append(required(child(here, "schedulerName")))
        problems += _percentage(child(here, "percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)
        problems += _node_sample(child(here, "nodeSample"), profile)
        problems += _removed_plugins(child(here, "plugins"), profile.plugins)
        problems += _plugin_config(child(here, "pluginConfig"), profile, config.rules)
        if name in seen:
            # kube-scheduler prints the path of the other one as an empty object.
            problems.append(duplicate(child(here, "schedulerName"), {}))
        seen.add(name)
    return problems + _queue_sort(path, profiles)


def _removed_plugins(path: str, plugins: Plugins | None) -> list[str]:
    if plugins is None:
        return []
    return [
        invalid(index(child(path, point, "enabled"), i), ref.name, _REMOVED)
        for point, field in _POINTS_LOOKED_AT
        for i, ref in enumerate(getattr(plugins, field).enabled)
        if ref.name in REMOVED_PLUGINS
    ]


def _plugin_config(path: str, profile: KubeSchedulerProfile, rules: KubernetesRules) -> list[str]:
    problems: list[str] = []
    seen: set[str] = set()
    for i, entry in enumerate(profile.plugin_config):
        here = index(path, i)
        if entry.name in seen:
            problems.append(duplicate(here, entry.name))
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            problems.append(invalid(here, entry.name, _REMOVED))
        elif isinstance(entry.args, PluginArgs):
            problems += entry.args.validate(child(here, "args"))
            problems += entry.args.rule_problems(child(here, "args"), rules)
    return problems


def _queue_sort(path: str, profiles: Sequence[KubeSchedulerProfile]) -> list[str]:
    """All profiles share one queue, so they must sort it alike. (Compares only plugins named at queueSort itself.)"""
    first = _queue_sort_set(profiles[0])
    plugin = first.enabled[0].name if first.enabled else ""
    problems = []
    if len(first.enabled) > 1:
        here = child(index(path, 0), "plugins", "queueSort", "Enabled")
        problems.append(invalid(here, len(first.enabled), "only one queue sort plugin can be enabled"))
    args = _args_of(profiles[0], plugin) if plugin else None
    for i, profile in enumerate(profiles[1:], start=1):
        here = index(path, i)
        given = _queue_sort_set(profile)
        if given != first:
            shown = _shown_set(given)
            problems.append(invalid(child(here, "plugins", "queueSort"), shown, "must be the same for all profiles"))
        problems += [
            invalid(child(here, "pluginConfig", "args"), entry.args, "queueSort must be the same for all profiles")
            for entry in profile.plugin_config
            if entry.name == plugin and entry.args != args
        ]
    return problems


def _queue_sort_set(profile: KubeSchedulerProfile) -> PluginSet:
    return PluginSet() if profile.plugins is None else profile.plugins.queue_sort


def _args_of(profile: KubeSchedulerProfile, plugin: str) -> Any:
    args = None
    for entry in profile.plugin_config:
        if entry.name == plugin:
            args = entry.args
    return args


def _shown_set(plugin_set: PluginSet) -> dict[str, Any]:
    lists = {"Enabled": plugin_set.enabled, "Disabled": plugin_set.disabled}
    return {name: [{"Name": ref.name, "Weight": ref.weight} for ref in refs] or None for name, refs in lists.items()}


# ── extenders ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _extenders(path: str, extenders: Sequence[Extender]) -> list[str]:
    problems: list[str] = []
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        here = index(path, i)
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            problems.append(invalid(child(here, "weight"), extender.weight, detail))
        problems += tls_problems(here, extender)
        for j, resource in enumerate(extender.managed_resources):
            name_path = child(index(child(here, "managedResources"), j), "name")
            problems += _managed_resource(name_path, resource)
            if resource.name in managed:
                problems.append(invalid(name_path, resource.name, "duplicate extender managed resource name"))
            managed.add(resource.name)
    binders = sum(extender.bind_verb != "" for extender in extenders)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        problems.append(invalid(path, shown, "only one extender can implement bind"))
    return problems


def uses_tls(extender: Extender) -> bool:
    return extender.enable_https or extender.url_prefix.lower().startswith(_HTTPS)


def tls_problems(path: str, extender: Extender) -> list[str]:
    """Our own rules: without a CA, kube-scheduler silently accepts any certificate."""
    if not uses_tls(extender):
        return []
    tls = extender.tls_config or ExtenderTLSConfig()
    problems = []
    if not extender.url_prefix.lower().startswith(_HTTPS):
        detail = "must begin with https:// if enableHTTPS is true"
        problems.append(invalid(child(path, "urlPrefix"), extender.url_prefix, detail))
    if tls.ca_file or tls.ca_data:
        if tls.insecure:
            problems.append(forbidden(child(path, "tlsConfig", "insecure"), _INSECURE_WITH_CA))
    elif not tls.insecure:
        problems.append(required(child(path, "tlsConfig", "caFile"), _NO_CA))
    return problems


def _managed_resource(path: str, resource: ExtenderManagedResource) -> list[str]:
    faults = qualified_name_problems(resource.name)
    if faults or _is_extended(resource.name):
        return [invalid(path, resource.name, fault, named=True) for fault in faults]
    return [invalid(path, resource.name, "is an invalid extended resource name")]


def _is_extended(name: str) -> bool:
    """An extended resource whose quota name (`requests.` and the name) is valid."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name_problems(f"requests.{name}")
