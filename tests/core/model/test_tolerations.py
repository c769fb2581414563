"""Tolerations cover taints as Kubernetes says."""

import pytest

from builders import taint, toleration
from situate.core.model.tolerations import Taint, Toleration, any_tolerates, tolerates

GPU = taint("dedicated", "gpu", "NoSchedule")
LEVEL = taint("level", "5", "NoExecute")


@pytest.mark.parametrize(
    "tolerated, covers",
    [
        pytest.param(toleration("dedicated", "Equal", "gpu", "NoSchedule"), True, id="all equal"),
        pytest.param(toleration("dedicated", "", "gpu"), True, id="no operator means Equal, no effect means any"),
        pytest.param(toleration("dedicated", "Equal", "cpu"), False, id="another value"),
        pytest.param(toleration("dedicated", "Equal"), False, id="no value is not any value"),
        pytest.param(toleration("other", "Equal", "gpu"), False, id="another key"),
        pytest.param(toleration("dedicated", "Equal", "gpu", "NoExecute"), False, id="another effect"),
        pytest.param(toleration("dedicated", "Exists"), True, id="Exists covers any value"),
        pytest.param(toleration("other", "Exists"), False, id="Exists of another key"),
        pytest.param(toleration("", "Exists"), True, id="Exists without a key covers everything"),
        pytest.param(toleration("", "Exists", "", "PreferNoSchedule"), False, id="everything of another effect"),
        pytest.param(toleration("", "", "gpu"), True, id="no key means any key, even with a value"),
        pytest.param(toleration("dedicated", "Sometimes", "gpu"), False, id="an unknown operator covers nothing"),
    ],
)
def test_a_toleration_covers_a_taint(tolerated: Toleration, covers: bool) -> None:
    assert tolerates(tolerated, GPU) is covers


@pytest.mark.parametrize(
    "operator, value, level, covers",
    [
        ("Gt", "4", LEVEL, True),
        ("Gt", "5", LEVEL, False),
        ("Lt", "6", LEVEL, True),
        ("Lt", "5", LEVEL, False),
        ("Gt", "-7", LEVEL, True),
        ("Gt", "04", LEVEL, False),
        ("Gt", "+4", LEVEL, False),
        ("Lt", "-0", taint("level", "-1", "NoExecute"), False),
        ("Gt", "x", LEVEL, False),
        ("Gt", "4", taint("level", "", "NoExecute"), False),
        ("Lt", "9223372036854775808", LEVEL, False),
        ("Lt", "9223372036854775807", LEVEL, True),
    ],
)
def test_comparisons_are_of_canonical_integers_and_off_by_default(
    operator: str, value: str, level: Taint, covers: bool
) -> None:
    compared = toleration("level", operator, value)
    assert tolerates(compared, level, comparisons=True) is covers
    assert not tolerates(compared, level)


def test_one_toleration_of_several_is_enough() -> None:
    assert any_tolerates((toleration("other", "Exists"), toleration("dedicated", "Exists")), GPU)
    assert not any_tolerates((toleration("other", "Exists"),), GPU)
    assert not any_tolerates((), GPU)
