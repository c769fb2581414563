"""Which resource names count."""

import pytest

from situate.core.model.resources import is_extended, is_native, is_scalar, may_be_pod_level


@pytest.mark.parametrize(
    "name, native, extended, scalar, pod_level",
    [
        ("cpu", True, False, False, True),
        ("memory", True, False, False, True),
        ("ephemeral-storage", True, False, False, False),
        ("storage", True, False, False, False),
        ("nvidia.com/gpu", False, True, True, False),
        ("requests.nvidia.com/gpu", False, False, False, False),
        ("hugepages-2Mi", True, False, True, True),
        ("attachable-volumes-aws-ebs", True, False, True, False),
        ("kubernetes.io/batch-cpu", True, False, True, False),
        ("a.kubernetes.io/x", True, False, True, False),
        ("bad_prefix/x", False, False, False, False),
        ("unknown", True, False, False, False),
    ],
)
def test_kinds_of_resources(name: str, native: bool, extended: bool, scalar: bool, pod_level: bool) -> None:
    kinds = (is_native(name), is_extended(name), is_scalar(name), may_be_pod_level(name))
    assert kinds == (native, extended, scalar, pod_level)
