"""Generated names and hashes of templates."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from core.reconcile.world import template
from situate.core.model.stored import PodTemplateSpec, StoredMeta
from situate.core.reconcile.naming import (
    LETTERS,
    TEMPLATE_HASH,
    fresh_names,
    hashed_name,
    same_template,
    suffix,
    template_hash,
)

OWNER = StoredMeta(name="web", uid="u1", resource_version="7")


@given(st.text(), st.integers(0, 10**6))
def test_a_suffix_has_five_letters_of_kubernetes_alphabet(uid: str, counter: int) -> None:
    assert len(suffix(uid, counter)) == 5
    assert set(suffix(uid, counter)) <= set(LETTERS)
    assert suffix(uid, counter) == suffix(uid, counter)


def test_names_are_the_same_when_asked_again_and_differ_among_themselves() -> None:
    first = list(islice(fresh_names("web-", OWNER, lambda _: False), 200))
    assert first == list(islice(fresh_names("web-", OWNER, lambda _: False), 200))
    assert len(set(first)) == 200


def test_a_name_that_is_taken_is_passed_over() -> None:
    first, second = islice(fresh_names("web-", OWNER, lambda _: False), 2)
    assert next(fresh_names("web-", OWNER, lambda name: name == first)) == second


def test_a_new_version_of_the_owner_gives_new_names() -> None:
    later = StoredMeta(name="web", uid="u1", resource_version="8")
    assert next(fresh_names("web-", OWNER, lambda _: False)) != next(fresh_names("web-", later, lambda _: False))


def test_a_generated_name_is_no_longer_than_a_host_name_may_be() -> None:
    assert len(next(fresh_names("w" * 100 + "-", OWNER, lambda _: False))) == 63


def test_a_hash_depends_on_the_template_and_on_collisions() -> None:
    one, other = convert(template("v1"), PodTemplateSpec), convert(template("v2"), PodTemplateSpec)
    hashes = [template_hash(one, None), template_hash(other, None), template_hash(one, 1), template_hash(one, 2)]
    assert len(set(hashes)) == 4
    assert template_hash(one, None) == template_hash(convert(template("v1"), PodTemplateSpec), None)
    assert set("".join(hashes)) <= set(LETTERS)


def test_the_order_of_keys_does_not_change_a_hash() -> None:
    one = PodTemplateSpec(spec={"a": 1, "b": {"c": 2, "d": 3}})
    other = PodTemplateSpec(spec={"b": {"d": 3, "c": 2}, "a": 1})
    assert template_hash(one, None) == template_hash(other, None)


def test_a_long_name_is_cut_for_its_hash() -> None:
    assert hashed_name("web", "abc") == "web-abc"
    assert len(hashed_name("w" * 300, "abc")) == 253


def test_templates_are_the_same_but_for_the_hash_label_and_what_says_nothing() -> None:
    one = convert(template("v1"), PodTemplateSpec)
    raw = template("v1")
    raw["metadata"]["labels"][TEMPLATE_HASH] = "abc"
    raw["spec"]["volumes"] = []
    raw["spec"]["containers"][0]["lifecycle"] = None
    assert same_template(one, convert(raw, PodTemplateSpec))
    assert not same_template(one, convert(template("v2"), PodTemplateSpec))
    raw["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    assert not same_template(one, convert(raw, PodTemplateSpec))
