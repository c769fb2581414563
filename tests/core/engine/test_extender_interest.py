"""Which extenders have a say on which pods."""

import pytest

from builders import container, pod
from situate.core.config.types import Extender, ExtenderManagedResource
from situate.core.engine.extender_interest import ExtenderInterest, name_of, timeout_ms
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster

GPU = "example.com/gpu"
MANAGES = (ExtenderManagedResource(name=GPU),)


def kind(**requests: str) -> PodClass:
    return Cluster().class_of(pod(containers=(container(requests=dict.fromkeys(requests.values(), "1")),)))


PLAIN, WITH_GPU = kind(), kind(gpu=GPU)


@pytest.mark.parametrize(
    "extender, plain, with_gpu",
    [
        pytest.param(Extender(filter_verb="f"), True, True, id="filters"),
        pytest.param(Extender(prioritize_verb="p"), True, True, id="scores"),
        pytest.param(Extender(bind_verb="b"), False, False, id="only binds"),
        pytest.param(Extender(preempt_verb="e"), False, False, id="is only asked about evictions"),
        pytest.param(Extender(filter_verb="f", managed_resources=MANAGES), False, True, id="manages a resource"),
    ],
)
def test_an_extender_filters_or_scores_a_pod_if_it(extender: Extender, plain: bool, with_gpu: bool) -> None:
    interest = ExtenderInterest([extender])
    assert (interest.has_say(PLAIN), interest.has_say(WITH_GPU)) == (plain, with_gpu)


def test_without_extenders_nobody_has_a_say_or_binds() -> None:
    interest = ExtenderInterest([])
    assert (interest.has_say(PLAIN), interest.binder(PLAIN), interest.concerned(PLAIN, "filter")) == (False, None, [])


def test_extenders_are_asked_in_their_order_and_those_that_may_be_ignored_last() -> None:
    extenders = [
        Extender(filter_verb="f", preempt_verb="e", ignorable=True),
        Extender(filter_verb="f", prioritize_verb="p"),
        Extender(filter_verb="f", managed_resources=MANAGES),
    ]
    interest = ExtenderInterest(extenders)
    assert interest.concerned(WITH_GPU, "filter") == [1, 2, 0]
    assert interest.concerned(PLAIN, "filter") == [1, 0]
    assert interest.concerned(PLAIN, "prioritize") == [1]
    assert interest.concerned(PLAIN, "preempt") == [0]


def test_the_first_extender_that_binds_such_pods_binds_a_pod() -> None:
    extenders = [
        Extender(filter_verb="f"),
        Extender(bind_verb="b", managed_resources=MANAGES),
        Extender(bind_verb="b"),
    ]
    interest = ExtenderInterest(extenders)
    assert (interest.binder(WITH_GPU), interest.binder(PLAIN)) == (1, 2)


@pytest.mark.parametrize(
    "url, name",
    [
        ("http://a/x", "http://a/x"),
        ("http://me:secret@a:80/x@y", "http://a:80/x@y"),
        ("a/x", "a/x"),
        ("https://b", "https://b"),
    ],
)
def test_an_extender_is_named_by_its_url_without_credentials(url: str, name: str) -> None:
    assert name_of(Extender(url_prefix=url)) == name


@pytest.mark.parametrize("nanos, millis", [(1, 1), (1_999_999, 1), (2_000_000, 2), (0, 5_000), (-1, 5_000)])
def test_a_timeout_is_at_least_a_millisecond_and_five_seconds_if_none_is_set(nanos: int, millis: int) -> None:
    assert timeout_ms(Extender(http_timeout=nanos)) == millis
