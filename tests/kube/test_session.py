"""What a session is made with; how it runs is in test_scheduler.py."""

import gc

import pytest

from situate.core.config.defaults import default_configuration
from situate.kube.session import READING, build_engine, rare_collections
from situate.kube.settings import DecisionPace, Loaded, Settings
from situate.loop.metrics import Metrics
from situate.loop.scheduling.session import component_name

LOADED = Loaded(default_configuration())


def test_garbage_is_looked_for_rarely_while_a_cluster_is_read_and_what_was_read_is_left_alone() -> None:
    before = gc.get_threshold()
    try:
        with rare_collections():
            assert gc.get_threshold() == READING
            assert gc.isenabled()
            assert gc.get_freeze_count() == 0
        assert gc.get_threshold() == before
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("limit_ms", [0, 60_000])
def test_an_engine_puts_back_what_was_parked_for_as_long_as_the_flag_says(limit_ms: int) -> None:
    settings = Settings(load=lambda: LOADED, unschedulable_limit_ms=limit_ms)
    engine = build_engine(LOADED, settings, DecisionPace.at(-1), Metrics())
    assert engine.queue.unschedulable_limit_ms == limit_ms


def test_we_go_by_the_name_of_the_first_profile() -> None:
    assert component_name(LOADED.config) == "default-scheduler"
