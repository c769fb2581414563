"""What nodes cost: from their own label, or from a table; and what those in use come to."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.model.meta import OwnerReference
from situate.core.plugins.support.prices import (
    INSTANCE_TYPE,
    MILLIONTHS,
    MOST,
    UNKNOWN,
    Price,
    PriceList,
    format_price,
    hourly_cost,
    in_use,
    millionths,
)
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

LARGE = Price(96_000, label=INSTANCE_TYPE, value="m5.large")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0", 0),
        ("1", 1_000_000),
        ("0.192", 192_000),
        ("12.5", 12_500_000),
        ("0.0000019", 1),
        ("1000000000", MOST),
        ("1000000001", UNKNOWN),
        ("", UNKNOWN),
        ("-1", UNKNOWN),
        ("1e3", UNKNOWN),
        (".5", UNKNOWN),
        ("5.", UNKNOWN),
        ("cheap", UNKNOWN),
        ("\u0661", UNKNOWN),
    ],
)
def test_a_price_is_read_as_people_write_it(text: str, expected: int) -> None:
    assert millionths(text) == expected


@given(st.integers(0, MOST))
def test_money_is_read_back_as_it_was_written(amount: int) -> None:
    text = format_price(amount)
    assert Decimal(text) * MILLIONTHS == amount
    assert millionths(text) == amount
    assert len(text.partition(".")[2]) >= 2


def test_a_nodes_own_label_goes_before_the_table() -> None:
    prices = PriceList(label="example.com/price", table=(LARGE,))
    labels = {INSTANCE_TYPE: "m5.large"}
    assert prices.of(node(labels=labels)) == 96_000
    assert prices.of(node(labels={**labels, "example.com/price": "0.05"})) == 50_000
    assert prices.of(node(labels={**labels, "example.com/price": "a lot"})) == 96_000


def test_the_first_line_of_the_table_that_speaks_of_a_node_holds() -> None:
    table = (Price(1, label="pool", value="fast"), Price(2, node="n1"), LARGE, Price(4, label="pool", value="slow"))
    prices = PriceList(table=table)
    assert prices.of(node("n1", labels={"pool": "fast"})) == 1
    assert prices.of(node("n1", labels={"pool": "slow"})) == 2
    assert prices.of(node("n2", labels={"pool": "slow", INSTANCE_TYPE: "m5.large"})) == 96_000
    assert prices.of(node("n2", labels={"pool": "slow"})) == 4
    assert prices.of(node("n2")) == UNKNOWN


names = st.sampled_from("abc")
lines = st.builds(
    lambda price, by, value: Price(price, node=value) if not by else Price(price, label=by, value=value),
    st.integers(0, 9),
    st.sampled_from(["", "x", "y"]),
    names,
)


@given(st.lists(lines, max_size=8), names, st.dictionaries(st.sampled_from("xy"), names))
def test_the_price_of_a_node_is_that_of_going_through_the_table(
    table: list[Price], name: str, labels: dict[str, str]
) -> None:
    def speaks(price: Price) -> bool:
        return name == price.node if price.node else labels.get(price.label) == price.value

    expected = next((price.millionths for price in table if speaks(price)), UNKNOWN)
    assert PriceList(table=tuple(table)).of(node(name, labels=labels)) == expected


# -- use -------------------------------------------------------------------------------------------------------------


def owned(kind: str) -> tuple[OwnerReference, ...]:
    return (OwnerReference(kind=kind, name="owner", uid="u", controller=True),)


def cluster_of_four() -> Cluster:
    cluster = Cluster()
    for name, kind in (("used", "m5.large"), ("idle", "m5.large"), ("strange", "x1"), ("daemons", "m5.large")):
        cluster.add_node(node(name, labels={INSTANCE_TYPE: kind}, cpu="4"))
    cluster.add_pod(pod("web", node_name="used", owner_references=owned("ReplicaSet")))
    cluster.add_pod(pod("alone", node_name="strange"))
    cluster.add_pod(pod("log", node_name="daemons", owner_references=owned("DaemonSet")))
    cluster.add_pod(pod("static", node_name="daemons", owner_references=owned("Node")))
    return cluster


def test_pods_that_come_with_a_node_do_not_make_it_one_in_use() -> None:
    cluster = cluster_of_four()
    assert in_use(View(cluster)).tolist() == [True, False, True, False]
    cluster.add_pod(pod("more", node_name="daemons"))
    cluster.remove_pod("default/web")
    assert in_use(View(cluster)).tolist() == [False, False, True, True]


def test_a_node_whose_last_pod_would_go_is_not_in_use_in_that_view() -> None:
    cluster = cluster_of_four()
    bound = View(cluster).pods_on(0)
    assert in_use(View(cluster).without(bound)).tolist() == [False, False, True, False]


def test_the_bill_says_what_nodes_in_use_cost_and_how_many_have_no_price() -> None:
    cluster = cluster_of_four()
    bill = hourly_cost(PriceList(table=(LARGE,)), View(cluster))
    assert str(bill) == "0.096 USD an hour for 2 nodes in use, 1 of them without a price"
    cluster.remove_pod("default/alone")
    assert str(hourly_cost(PriceList("EUR", table=(LARGE,)), View(cluster))) == "0.096 EUR an hour for 1 node in use"
    cluster.remove_pod("default/web")
    assert str(hourly_cost(PriceList(table=(LARGE,)), View(cluster))) == "0.00 USD an hour for 0 nodes in use"
