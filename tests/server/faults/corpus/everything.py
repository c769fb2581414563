"""All bad requests, each under a name of its own, with what kube-apiserver v1.36.4 answers.

The answers are in facts.json, by code; tests/kubernetes/test_bad_requests.py asks a real server whether they are right,
and with BAD_REQUESTS=record writes them. 0 is no answer within five seconds. What kube-apiserver takes is asked with
dryRun, so that it changes nothing.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from server.faults.corpus import bodies, doings, names, options, patches, values
from server.faults.corpus.case import Case

FACTS = Path(__file__).with_name("facts.json")
BAD = 400
CONFLICT = 409


@cache
def facts() -> dict[str, int]:
    by_code = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    return {name: int(code) for code, names in by_code.items() for name in names}


def written(codes: dict[str, int]) -> str:
    by_code: dict[str, list[str]] = {}
    for name, code in codes.items():
        by_code.setdefault(str(code), []).append(name)
    return json.dumps(dict(sorted(by_code.items())), indent=0) + "\n"


@cache
def everything() -> tuple[Case, ...]:
    found: dict[str, Case] = {}
    for module in (bodies, names, options, patches, values, doings):
        for case in module.cases():
            name, number = case.name, 1
            while name in found:
                number += 1
                name = f"{case.name} ({number})"
            path = case.path
            answer = facts().get(name, BAD)
            taken = answer < BAD or (answer == CONFLICT and case.method == "POST")
            if case.method != "GET" and "dryRun" not in path and taken:
                path += "&dryRun=All" if "?" in path else "?dryRun=All"
            found[name] = replace(case, name=name, path=path)
    return tuple(found.values())
