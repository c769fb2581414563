"""Plugin sets combine: the file's with the defaults, and multiPoint's with those of single points."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.config.merge import expand, merge_plugin_set, merge_plugins
from situate.core.config.types import PluginRef, Plugins, PluginSet

DEFAULT = ("A", "B=2", "C")


def refs(names: Sequence[str]) -> tuple[PluginRef, ...]:
    parts = [name.partition("=") for name in names]
    return tuple(PluginRef(name=name, weight=int(weight or 0)) for name, _, weight in parts)


def plugin_set(enabled: Sequence[str] = (), disabled: Sequence[str] = ()) -> PluginSet:
    return PluginSet(enabled=refs(enabled), disabled=refs(disabled))


@pytest.mark.parametrize(
    "enabled, disabled, merged",
    [
        pytest.param([], [], ["A", "B=2", "C"], id="nothing said: the defaults"),
        pytest.param(["X", "Y=3"], [], ["A", "B=2", "C", "X", "Y=3"], id="what is added follows the defaults"),
        pytest.param(["B=9"], [], ["A", "B=9", "C"], id="a default listed again is re-configured in its place"),
        pytest.param(["B"], [], ["A", "B", "C"], id="and loses its weight if none is given"),
        pytest.param(["X", "A"], [], ["A", "B=2", "C", "X"], id="in its place, wherever it is listed"),
        pytest.param([], ["B"], ["A", "C"], id="a default can be disabled"),
        pytest.param(["B=9"], ["B"], ["A", "C", "B=9"], id="disabled and enabled: it goes to the end"),
        pytest.param([], ["*"], [], id="a star disables all"),
        pytest.param(["C", "X"], ["*"], ["C", "X"], id="but not what is enabled"),
        pytest.param(["C"], ["A", "*"], ["C"], id="a star among others"),
        pytest.param([], ["X"], ["A", "B=2", "C"], id="disabling what is no default does nothing"),
        pytest.param(["X", "X"], [], ["A", "B=2", "C", "X", "X"], id="a name given twice is kept, to be found out"),
        pytest.param(
            ["B=5", "B=6"], [], ["A", "B=6", "C", "B=5"], id="of a default given twice, the last re-configures"
        ),
    ],
)
def test_a_set_is_merged_with_the_defaults(enabled: list[str], disabled: list[str], merged: list[str]) -> None:
    given_set = plugin_set(enabled, disabled)
    assert merge_plugin_set(plugin_set(DEFAULT), given_set) == plugin_set(merged, disabled)


def test_what_is_disabled_has_no_weight() -> None:
    assert merge_plugin_set(plugin_set(), plugin_set((), ["A=7"])).disabled == refs(["A"])


def test_a_default_may_be_disabled_by_default() -> None:
    merged = merge_plugin_set(plugin_set(DEFAULT, ["C"]), plugin_set((), ["A"]))
    assert merged == plugin_set(["B=2"], ["A", "C"])


def test_each_point_is_merged_for_itself() -> None:
    default = Plugins(multi_point=plugin_set(DEFAULT), score=plugin_set(["S"]))
    merged = merge_plugins(default, Plugins(filter=plugin_set(["F"]), score=plugin_set((), ["*"])))
    assert merged == Plugins(multi_point=plugin_set(DEFAULT), filter=plugin_set(["F"]), score=plugin_set((), ["*"]))


def test_without_plugins_the_defaults_stay() -> None:
    default = Plugins(multi_point=plugin_set(DEFAULT))
    assert merge_plugins(default, None) is default


@pytest.mark.parametrize(
    "enabled, disabled, names",
    [
        pytest.param([], [], "ABC", id="multiPoint's plugins that implement the point"),
        pytest.param([], ["B"], "AC", id="less those disabled here"),
        pytest.param([], ["*"], "", id="or none of them"),
        pytest.param(["X"], [], "ABCX", id="what only the point names comes last"),
        pytest.param(["C", "A"], [], "CAB", id="what both name comes first, in the point's order"),
        pytest.param(["X", "C"], [], "CABX", id="all three together"),
        pytest.param(["B"], ["B"], "ACB", id="disabled and enabled here: last"),
        pytest.param(["B"], ["*"], "B", id="all disabled but one"),
    ],
)
def test_multi_point_is_spread_over_a_point(enabled: list[str], disabled: list[str], names: str) -> None:
    found, twice = expand(plugin_set(enabled, disabled), list("ABCD"), lambda name: name != "D")
    assert ("".join(found), twice) == (names, [])


def test_what_multi_point_has_twice_is_told() -> None:
    assert expand(plugin_set(), list("ABAB"), lambda _: True)[1] == ["A", "B"]


def test_what_multi_point_has_twice_and_the_point_has_too_is_no_fault() -> None:
    assert expand(plugin_set(["A"]), list("ABA"), lambda _: True) == (["A", "B"], [])


names_of = st.lists(st.sampled_from("ABCDEFG"), max_size=6)


@given(names_of, names_of.map(lambda names: [*names]), st.lists(st.sampled_from("ABCDEFG*"), max_size=3), names_of)
def test_spreading_agrees_with_the_rules_one_by_one(
    multi_point: list[str], enabled: list[str], disabled: list[str], implementing: list[str]
) -> None:
    found, _ = expand(plugin_set(enabled, disabled), multi_point, implementing.__contains__)

    def rank(name: str) -> tuple[int, int]:
        brought = name in multi_point and name in implementing and name not in disabled and "*" not in disabled
        if name in enabled:
            return (0 if brought else 2, enabled.index(name))
        return (1, multi_point.index(name)) if brought else (9, 0)

    assert found == sorted((name for name in "ABCDEFG" if rank(name)[0] < 9), key=rank)
