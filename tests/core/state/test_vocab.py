"""Vocabularies give strings small integers, for good."""

from situate.core.state.vocab import ABSENT, Vocab


def test_ids_count_up_in_the_order_of_first_sight_and_stay() -> None:
    vocab = Vocab(("cpu", "memory"))
    assert [vocab.intern(name) for name in ("gpu", "cpu", "fpga", "gpu", "memory")] == [2, 0, 3, 2, 1]
    assert vocab.names == ["cpu", "memory", "gpu", "fpga"]
    assert len(vocab) == 4


def test_what_was_never_seen_is_not_found_and_not_learnt_by_asking() -> None:
    vocab = Vocab()
    assert vocab.find("zone") == ABSENT
    assert len(vocab) == 0
    assert (vocab.intern("zone"), vocab.find("zone")) == (0, 0)
