"""The profiles that a live cluster's own schedulers publish (docs/guides/why.md). Loads no code from there.

A cluster without such a publication, or whose publication we may not read, gets the default profile and a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from situate.cli.cluster.connection import Client
from situate.cli.cluster.objects import get_object
from situate.cli.input.profiles import entry_point_plugins, read_profiles
from situate.cli.output.text import plural
from situate.core.config.defaults import BUILT_IN_POINTS, default_configuration, enabled_names
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile, Plugins, PluginSet
from situate.core.engine.framework import Framework, build_frameworks
from situate.core.model.pod import Pod
from situate.core.plugins.support.errors import PluginError
from situate.core.state.cluster import FINISHED_PHASES
from situate.core.versions import DEFAULT, KubernetesRules
from situate.kube.discovery import server_rules
from situate.kube.errors import ApiError
from situate.wire.errors import InputError
from situate.wire.published import NAME, NAMESPACE, OWN_SCHEDULER, read_published

PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
ASSUMED: Final = "the default profile is assumed"
UNSERVED: Final = 'no known scheduler serves the schedulerName "{}"'


@dataclass(frozen=True, slots=True)
class ClusterProfiles:
    """Profiles by scheduler name."""

    frameworks: Mapping[str, Framework]
    known: bool = False
    """Whether these are all that the cluster's schedulers have. If not, somebody else may serve other names."""
    notes: tuple[str, ...] = ()
    whole: bool = False
    """Whether plugins may read anything, so that all kinds have to be read."""
    configurations: Mapping[str, KubeSchedulerConfiguration] = field(default_factory=dict)
    rules: KubernetesRules = DEFAULT
    """The version of Kubernetes whose rules they follow."""

    def of(self, scheduler_name: str) -> Framework:
        """The profile of this name, or the first one."""
        return self.frameworks.get(scheduler_name) or next(iter(self.frameworks.values()))

    def unserved(self, scheduler_name: str) -> str:
        """That nobody serves this name, in one line; empty if somebody does, or that is not known."""
        return UNSERVED.format(scheduler_name) if self.known and scheduler_name not in self.frameworks else ""

    def notes_on(self, pods: Iterable[Pod]) -> list[str]:
        """The notes, and one for each schedulerName of pending pods that nobody serves."""
        waiting: dict[str, int] = {}
        for pod in pods:
            if not pod.spec.node_name and pod.status.phase not in FINISHED_PHASES:
                waiting[pod.spec.scheduler_name] = waiting.get(pod.spec.scheduler_name, 0) + 1
        unserved = [
            f"{self.unserved(name)}: {plural(count, 'pod')}"
            for name, count in sorted(waiting.items())
            if self.unserved(name)
        ]
        return [*self.notes, *unserved]


def local_profiles(config: str | None, rules: KubernetesRules | None = None) -> ClusterProfiles:
    """The profiles of a configuration file, or the default. Raises InputError."""
    return ClusterProfiles(read_profiles(config, rules), whole=config is not None, rules=rules or DEFAULT)


async def cluster_profiles(client: Client, config: str | None, rules: KubernetesRules | None = None) -> ClusterProfiles:
    """The profiles of a file, if one is given, else those of the cluster's own schedulers. Raises InputError.

    They follow the version of the API server, unless `rules` are given.
    """
    rules = rules or await server_rules(client)
    if config is not None:
        return local_profiles(config, rules)
    try:
        found = await get_object(client, PATH)
    except ApiError as error:
        why = f"no scheduler publishes its configuration in the ConfigMap {NAMESPACE}/{NAME}"
        if not error.not_found:
            why = f"cannot read the schedulers' configuration: {error.message}"
        return ClusterProfiles(read_profiles(None, rules), notes=(f"{why}: {ASSUMED}",), rules=rules)
    data = found.get("data")
    return published_profiles(data if isinstance(data, Mapping) else {}, rules)


def published_profiles(data: Mapping[str, object], rules: KubernetesRules = DEFAULT) -> ClusterProfiles:
    """The profiles of all published configurations. On a cluster that is not situate's own, kube-scheduler is assumed
    to serve `default-scheduler` by its defaults."""
    configs, notes = read_published(data, rules)
    if not configs:
        notes.append(f"the ConfigMap {NAMESPACE}/{NAME} has no configuration: {ASSUMED}")
        return ClusterProfiles(read_profiles(None, rules), notes=tuple(notes), rules=rules)
    frameworks: dict[str, Framework] = {}
    others: dict[str, None] = {}
    for key, config in configs.items():
        usable, left_out = without_unknown(config)
        others |= left_out
        try:
            built = build_frameworks(usable, entry_point_plugins(usable))
        except (ConfigError, PluginError, InputError) as error:
            notes.append(f"the configuration {key} of {NAMESPACE}/{NAME} cannot be used: {error}")
            continue
        frameworks |= {name: one for name, one in built.items() if name not in frameworks}
    if others:
        notes.append(f"not installed here, so left out: the plugin(s) {', '.join(sorted(others))}")
    if OWN_SCHEDULER not in configs:
        frameworks = {**build_frameworks(default_configuration(rules)), **frameworks}
    if not frameworks:
        return ClusterProfiles(read_profiles(None, rules), notes=(*notes, ASSUMED), rules=rules)
    return ClusterProfiles(frameworks, known=True, notes=tuple(notes), whole=True, configurations=configs, rules=rules)


def without_unknown(
    config: KubeSchedulerConfiguration,
) -> tuple[KubeSchedulerConfiguration, dict[str, None]]:
    """The configuration without plugins that are neither ours nor installed, and the names of those."""
    enabled = {name for profile in config.profiles for name in enabled_names(profile.plugins or Plugins())}
    known = {*BUILT_IN_POINTS, *entry_point_plugins(config)}
    unknown = dict.fromkeys(sorted(enabled - known))
    if not unknown:
        return config, {}

    def kept(plugins: PluginSet) -> PluginSet:
        return replace(plugins, enabled=tuple(one for one in plugins.enabled if one.name not in unknown))

    def usable(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
        points = profile.plugins or Plugins()
        sets = {name: kept(getattr(points, name)) for name in Plugins.__struct_fields__}
        args = tuple(one for one in profile.plugin_config if one.name not in unknown)
        return replace(profile, plugins=Plugins(**sets), plugin_config=args)

    return replace(config, profiles=tuple(map(usable, config.profiles))), unknown
