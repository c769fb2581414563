"""Who may what in a cluster of two nodes: 26,880 answers of a real kube-apiserver, and the same from us."""

from typing import Any

from server.identity.memory import Memory
from server.identity.world import ASKERS, Question, questions
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.requests import Caller

LEAST_CELLS = 20_000


def bits(authorization: Authorization, question: Question, caller: Caller) -> int:
    found = 0
    for index, verb in enumerate(question.verbs):
        asked = Attributes(
            verb,
            question.group,
            question.resource,
            question.subresource,
            question.namespace,
            question.name,
            question.path,
            question.fields,
        )
        found |= authorization.allows(caller, asked).allowed << index
    return found


def test_every_asker_may_exactly_what_kubernetes_lets_it(world: Memory, facts: dict[str, Any]) -> None:
    authorization = Authorization(world)
    wrong = []
    cells = 0
    for question, (*_, row) in zip(questions(), facts["may"], strict=True):
        for who, expected in zip(ASKERS, row, strict=True):
            mine = bits(authorization, question, Caller(who.name, who.groups))
            cells += len(question.verbs)
            for index, verb in enumerate(question.verbs):
                if (mine ^ expected) >> index & 1:
                    wrong.append((who.id, verb, tuple(question)[:7], "kubernetes says", bool(expected >> index & 1)))
    assert wrong == []
    assert cells >= LEAST_CELLS


def test_the_questions_are_those_that_were_recorded(facts: dict[str, Any]) -> None:
    assert [list(question[:7]) for question in questions()] == [row[:7] for row in facts["may"]]


def test_the_matrix_has_both_answers_for_every_asker(facts: dict[str, Any]) -> None:
    for index, who in enumerate(ASKERS):
        column = [row[7][index] for row in facts["may"]]
        assert any(column), who.id
        assert who.id == "master" or not all(column), who.id
