"""What the containers of a pod need together."""

from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.amounts import Amounts, Asked, combined

amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 9))
asked = st.lists(st.tuples(amounts, st.booleans()), max_size=4)


def at_the_worst_moment(containers: list[Asked], inits: list[Asked]) -> Amounts:
    """Live the pod's life: at each moment some containers run at once; of each resource, the most ever needed."""
    moments: list[list[Amounts]] = []
    sidecars: list[Amounts] = []
    for one, is_sidecar in inits:
        moments.append([*sidecars, one])
        if is_sidecar:
            sidecars.append(one)
    moments.append([*sidecars, *(one for one, _ in containers)])
    names = sorted({name for moment in moments for one in moment for name in one})
    return {name: max(sum(one.get(name, 0) for one in moment) for moment in moments) for name in names}


@given(asked, asked)
def test_a_pod_needs_what_its_worst_moment_needs(containers: list[Asked], inits: list[Asked]) -> None:
    assert combined(containers, inits) == at_the_worst_moment(containers, inits)


def test_what_is_given_is_not_changed() -> None:
    given_ = [({"cpu": 1}, True), ({"cpu": 5}, False)]
    combined(given_, given_)
    assert given_ == [({"cpu": 1}, True), ({"cpu": 5}, False)]
