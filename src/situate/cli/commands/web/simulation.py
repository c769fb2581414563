"""The simulation that the page asks for: what `situate simulate` does on a live cluster, within limits.

Who asks is somebody in a browser, so nothing is read from this machine's files, and no code that a policy names by its
file or module is loaded: only plugins that are installed here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from situate.cli import BadInput
from situate.cli.commands.simulate.input import NamedConfiguration
from situate.cli.commands.simulate.report import page
from situate.cli.commands.simulate.runs import NOTHING_ARRIVES, begin_of, script_for, simulate_each
from situate.cli.commands.simulate.table import rows_of
from situate.cli.input.live import read_live
from situate.cli.input.manifests import manifests_in
from situate.cli.input.profiles import entry_point_plugins
from situate.cli.input.published import ClusterProfiles, cluster_profiles, without_unknown
from situate.core.config.defaults import default_configuration
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.framework import build_frameworks
from situate.core.plugins.latency import LatencyArgs
from situate.core.plugins.support.errors import PluginError
from situate.kube.client import Client
from situate.kube.kinds import ALL_KINDS
from situate.sim.whatif.arrivals import ArrivalOptions
from situate.sim.whatif.distributions import parse_distribution, parse_rate
from situate.sim.whatif.world import SimulationSettings
from situate.web.desk import Simulation, SimulationQuestion
from situate.web.limits import MAX_SIMULATED
from situate.wire.config import ConfigInputError, load_config
from situate.wire.errors import InputError
from situate.wire.objects import Source

MANIFEST: Final = "the manifest"
POLICY: Final = "your policy"
DEFAULT: Final = "default"
MAX_COMPARED: Final = 4
"""Configurations in one simulation."""
NO_MANIFEST: Final = "no pod would come: paste a manifest; no pod waits for a node"
STOPPED: Final = "the simulation took too long: simulate fewer pods, or with `situate simulate`"

T = TypeVar("T")


async def simulate_live(client: Client, asked: SimulationQuestion, stopped: Callable[[], bool]) -> Simulation:
    """Raises InputError, ApiError."""
    rate, run_time = (
        _parsed("arrivals", asked.arrivals, parse_rate),
        _parsed("duration", asked.duration, parse_distribution),
    )
    manifests = list(manifests_in(Source(MANIFEST, asked.manifest.encode()))) if asked.manifest.strip() else []
    if asked.pods is not None and (rate is None or not manifests):
        raise InputError("pods: needs a manifest, and how the pods arrive")
    if asked.pods is not None and asked.pods < 1:
        raise InputError(f"pods: {asked.pods} is less than 1")
    if asked.seed < 0:
        raise InputError(f"seed: {asked.seed} is negative")
    profiles = await cluster_profiles(client, None)
    configurations = _configurations(asked, profiles)
    objects = await read_live(client, ALL_KINDS, priority_classes=True)
    objects.make_claims()
    if not objects.nodes:
        raise InputError("the cluster has no node")
    coming = ArrivalOptions(rate, asked.pods, run_time)

    def arrived(_came: int, _of: int) -> None:
        if stopped():
            raise InputError(STOPPED)

    def simulated() -> Simulation:
        snapshot, script, notes = script_for(
            objects, "the cluster", manifests, coming, asked.seed, configurations, most=MAX_SIMULATED
        )
        settings = SimulationSettings(base_ms=begin_of(objects))
        progress = {one.name: arrived for one in configurations}
        found = simulate_each(snapshot, script, configurations, settings, progress)
        notes = [*profiles.notes, *notes]
        rows = [{"label": label, "values": values} for label, values in rows_of([one.figures for one in found])]
        answer = {"configurations": [one.name for one in configurations], "rows": rows, "notes": notes}
        return Simulation(answer, page(found, seed=asked.seed, notes=notes))

    try:
        return await asyncio.to_thread(simulated)
    except BadInput as error:
        raise InputError(NO_MANIFEST if error.message == NOTHING_ARRIVES else error.message) from None


def _configurations(asked: SimulationQuestion, profiles: ClusterProfiles) -> list[NamedConfiguration]:
    found = [_named(DEFAULT, default_configuration(profiles.rules))] if asked.default else []
    if asked.cluster:
        if not profiles.configurations:
            raise InputError(next(iter(profiles.notes), "the cluster's schedulers publish no configuration"))
        found += [
            _named(key.removesuffix(".json"), without_unknown(one)[0]) for key, one in profiles.configurations.items()
        ]
    if asked.policy.strip():
        config = load_config(asked.policy.encode(), POLICY, profiles.rules)
        if any(
            isinstance(one.args, LatencyArgs) and one.args.table_file
            for each in config.profiles
            for one in each.plugin_config
        ):
            raise InputError("Latency: tableFile is not read here: give the table as `places`", file=POLICY)
        found.append(_named(POLICY, config))
    if not found:
        raise InputError("choose a policy to simulate")
    if len(found) > MAX_COMPARED:
        raise InputError(f"{len(found)} policies are too many to compare here: {MAX_COMPARED} at most")
    return found


def _named(name: str, config: KubeSchedulerConfiguration) -> NamedConfiguration:
    """Raises InputError."""
    others = entry_point_plugins(config)
    try:
        return NamedConfiguration(name, config, others, build_frameworks(config, others))
    except ConfigError as error:
        raise ConfigInputError(error.problems, name) from None
    except PluginError as error:
        raise InputError(str(error), file=name) from error


def _parsed(name: str, text: str, parse: Callable[[str], T]) -> T | None:
    if not text.strip():
        return None
    try:
        return parse(text.strip())
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
