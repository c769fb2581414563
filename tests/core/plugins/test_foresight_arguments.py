"""The arguments of Foresight: what is refused, and what they come to."""

from typing import Any

import pytest

from situate.core.config.types import API_VERSION, KIND
from situate.core.engine.framework import build_frameworks
from situate.core.plugins.foresight import Foresight
from situate.wire.config import ConfigInputError, config_of, dump_config


def document(**args: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}, {"name": "Foresight"}]}},
                "pluginConfig": [{"name": "Foresight", "args": args}],
            }
        ],
    }


@pytest.mark.parametrize(
    "args, said",
    [
        ({"futures": 0}, "args.futures: Invalid value: 0: not in valid range [1, 256]"),
        ({"futures": 257}, "args.futures: Invalid value: 257: not in valid range [1, 256]"),
        ({"podsPerDevice": 0}, "args.podsPerDevice: Invalid value: 0: not in valid range [1, 64]"),
        ({"now": -1}, "args.now: Invalid value: -1: not in valid range [0, 10000]"),
        ({"scarcity": -1}, "args.scarcity: Invalid value: -1: not in valid range [0, 10000]"),
        ({"packing": -1}, "args.packing: Invalid value: -1: not in valid range [0, 1000000]"),
        ({"weightExponent": 9}, "args.weightExponent: Invalid value: 9"),
        ({"typicalPods": [{"gpuMilli": 1001}]}, "args.typicalPods[0].gpuMilli: Invalid value: 1001"),
    ],
)
def test_arguments_out_of_range_are_refused(args: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigInputError) as caught:
        config_of(document(**args))
    (problem,) = caught.value.problems
    assert said in problem


def test_what_the_arguments_come_to() -> None:
    pods = [{"weight": 2, "cpu": "1500m", "gpuMilli": 500}, {"cpu": 4}]
    config = config_of(document(typicalPods=pods, futures=3, podsPerDevice=5, now=70, packing=1, scarcity=9))
    (scorer,) = [
        one.scorer
        for one in build_frameworks(config)["default-scheduler"].profile.scorers
        if isinstance(one.scorer, Foresight)
    ]
    assert (scorer.futures, scorer.pods_per_device, scorer.now, scorer.near.packing) == (3, 5, 70, 1)
    assert scorer.scarcity == 9
    assert [(other.weight, other.milli_cpu) for other in scorer.others] == [(1, 4000)]
    (typical,) = scorer.near.mix
    assert (typical.weight, typical.milli_cpu, typical.devices, typical.milli) == (2, 1500, 1, 500)


def test_it_is_written_as_it_was_read() -> None:
    config = config_of(document(typicalPods=[{"weight": 2, "cpu": 4, "gpu": 1}], futures=3))
    assert config_of(dumped(config)) == config


def dumped(config: Any) -> Any:
    from situate.wire.yaml import load_yaml

    return next(iter(load_yaml(dump_config(config, "yaml").encode())))
