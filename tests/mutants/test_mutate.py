"""What mutants are made of, and which tests are asked about them."""

from mutants.equivalent import EQUIVALENT, key_of
from mutants.mutate import mutants_of
from mutants.run import AREAS, ROOT, WIDER, candidates, sets_of_tests

SOURCE = '''"""A module."""
LIMIT = 3


def ask(a: int, b: str) -> None:
    """Ask."""
    if a < 2 and b:
        _log.info("asked", a=a)
        self.seen = f"{a > 1}"
        raise ValueError("no")
    if b is not None:
        assert_never(b)
    found = [one for one in b if one is not None]
'''


def test_every_kind_of_change_is_made_once_where_it_applies() -> None:
    made = [(one.line, one.what, one.after) for one in mutants_of("a.py", SOURCE)]
    assert made == [
        (7, "return early", "return"),
        (7, "negated condition", "if not (a < 2 and b):"),
        (7, "and/or", "if (a < 2 or b):"),
        (7, "comparison", "if (a <= 2) and b:"),
        (7, "off by one", "if a < 3 and b:"),
        (9, "dropped statement", "pass"),
        (10, "dropped statement", "pass"),
        (13, "comparison", "found = [one for one in b if (one is None)]"),
    ]


def test_a_mutant_changes_its_lines_and_nothing_else() -> None:
    dropped = next(one for one in mutants_of("a.py", SOURCE) if one.line == 10)
    assert dropped.source(SOURCE) == SOURCE.replace('raise ValueError("no")', "pass")
    assert dropped.diff(SOURCE).splitlines()[5:7] == ['-        raise ValueError("no")', "+        pass"]


def test_the_nearest_tests_are_asked_first() -> None:
    near, folder, wider = sets_of_tests("server/placing/eviction.py")
    assert near == ("tests/server/placing/test_eviction.py",)
    assert folder == ("tests/server/placing",)
    assert wider == WIDER["server/placing"]
    near, folder, wider = sets_of_tests("store/sqlite/log.py")
    assert "tests/store/test_sqlite.py" in near
    assert folder == ("tests/store",)


def test_every_area_has_mutants_and_every_named_test_is_there() -> None:
    assert all(candidates([area]) for area in AREAS)
    assert [test for tests in WIDER.values() for test in tests if not (ROOT / test).exists()] == []


def test_every_known_equivalent_still_exists_and_has_a_reason() -> None:
    made = {key_of(one) for one in candidates(sorted({path for path, *_ in EQUIVALENT}) or AREAS)}
    assert [key for key, reason in EQUIVALENT.items() if key not in made or not reason] == []
