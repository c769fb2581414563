"""Commands beside a cluster use the profiles that its schedulers publish, and load no code that these name."""

import json

import pytest

from builders import pod
from situate.cli.input.published import published_profiles
from situate.core.engine.framework import Framework
from situate.wire.config import load_config
from situate.wire.errors import InputError
from situate.wire.published import LARGEST, OWN_SCHEDULER, published_text

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BESIDE = "situate-system.situate.json"


def published(text: str) -> str:
    return published_text(load_config((HEAD + text).encode(), "test.yaml"))


def filters(framework: Framework) -> list[str]:
    return [one.name for one in framework.profile.filters]


PACKING = """
percentageOfNodesToScore: 30
profiles:
- schedulerName: packing
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
"""


def test_a_published_profile_is_the_one_that_the_scheduler_has() -> None:
    found = published_profiles({OWN_SCHEDULER: published(PACKING)})
    profile = found.of("packing").profile
    assert profile.sampling.percentage == 30
    assert "TaintToleration" not in filters(found.of("packing"))
    assert [one.weight for one in profile.scorers if one.scorer.name == "NodeResourcesFit"] == [1]
    assert found.notes == ()


def test_in_situates_own_control_plane_names_without_a_profile_are_served_by_nobody() -> None:
    found = published_profiles({OWN_SCHEDULER: published(PACKING)})
    assert found.unserved("packing") == ""
    assert found.unserved("default-scheduler") == 'no known scheduler serves the schedulerName "default-scheduler"'


def test_beside_kube_scheduler_the_default_is_kube_schedulers() -> None:
    found = published_profiles({BESIDE: published(PACKING)})
    assert found.unserved("default-scheduler") == ""
    assert "TaintToleration" in filters(found.of("default-scheduler"))
    assert found.unserved("other") != ""


def test_the_names_of_several_schedulers_are_all_served() -> None:
    found = published_profiles({OWN_SCHEDULER: published(""), BESIDE: published("profiles: [{schedulerName: other}]")})
    assert [found.unserved(name) for name in ("default-scheduler", "other")] == ["", ""]


def test_pending_pods_that_nobody_serves_are_counted_by_name() -> None:
    found = published_profiles({OWN_SCHEDULER: published("")})
    pods = [pod(f"p{at}", scheduler_name="nobody") for at in range(2)]
    bound = pod("bound", scheduler_name="nobody", node_name="n")
    assert found.notes_on([*pods, bound, pod("p")]) == ['no known scheduler serves the schedulerName "nobody": 2 pods']


@pytest.mark.parametrize("name", ["os:system", "/tmp/evil.py:Evil", "NotInstalled"])
def test_a_plugin_that_is_not_installed_is_named_and_left_out_and_nothing_is_imported(name: str) -> None:
    text = json.loads(published(""))
    text["profiles"][0]["plugins"]["multiPoint"] = {"enabled": [{"name": name}]}
    text["profiles"][0]["pluginConfig"] = []
    found = published_profiles({OWN_SCHEDULER: json.dumps(text)})
    assert found.notes == (f"not installed here, so left out: the plugin(s) {name}",)
    assert "NodeResourcesFit" in filters(found.of("default-scheduler"))


@pytest.mark.parametrize("data", [{}, {OWN_SCHEDULER: "kind: Nonsense"}, {OWN_SCHEDULER: "["}])
def test_what_cannot_be_read_leaves_the_default_profile_and_a_note(data: dict[str, str]) -> None:
    found = published_profiles(data)
    assert found.notes[-1].endswith("the default profile is assumed")
    assert found.unserved("anybody") == ""
    assert "NodeResourcesFit" in filters(found.of("anybody"))


def test_the_keys_of_extenders_are_not_published_and_not_missed() -> None:
    tls = "{insecure: true, keyData: c2VjcmV0, certData: Y2VydA==}"
    text = published(f"extenders: [{{urlPrefix: 'https://e', enableHTTPS: true, tlsConfig: {tls}}}]")
    assert "c2VjcmV0" not in text
    assert "https://e" in text
    assert published_profiles({OWN_SCHEDULER: text}).notes == ()


def test_a_configuration_that_no_config_map_can_hold_is_not_published() -> None:
    large = "".join(f"- {{schedulerName: s{at:0200}}}\n" for at in range(LARGEST // 200))
    with pytest.raises(InputError, match="more than 512 KiB"):
        published(f"profiles:\n{large}")
