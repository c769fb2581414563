"""Uids are random and of the form that clients check."""

from __future__ import annotations

import uuid

from situate.server.uids import AT_ONCE, new_uid


def test_a_uid_is_a_random_uuid_of_version_4_in_small_letters() -> None:
    for _ in range(AT_ONCE * 2):
        made = new_uid()
        read = uuid.UUID(made)
        assert (read.version, read.variant, str(read)) == (4, uuid.RFC_4122, made)


def test_no_uid_comes_twice() -> None:
    made = [new_uid() for _ in range(AT_ONCE * 8)]
    assert len(set(made)) == len(made)


def test_every_variant_digit_comes_up() -> None:
    assert {new_uid()[19] for _ in range(AT_ONCE * 4)} == set("89ab")
