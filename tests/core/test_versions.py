import pytest

from situate.core.versions import DEFAULT, RULES, V1_36, V1_37, KubernetesRules, rules_of_server


def test_files_follow_1_36_unless_told_otherwise() -> None:
    assert DEFAULT is V1_36
    assert RULES == {"1.36": V1_36, "1.37": V1_37}


@pytest.mark.parametrize(
    "git_version, rules",
    [
        pytest.param("v1.36.4", V1_36, id="a release of 1.36"),
        pytest.param("v1.37.1", V1_37, id="a release of 1.37"),
        pytest.param("v1.37.0-gke.1021000", V1_37, id="a vendor's build"),
        pytest.param("v1.37.0-alpha.2+3c7a1b", V1_37, id="a pre-release"),
        pytest.param("v1.29.15", V1_36, id="an older server gets the oldest rules"),
        pytest.param("v1.40.0", V1_37, id="a newer server gets the newest rules"),
        pytest.param("v2.0.0", None, id="another Kubernetes altogether"),
        pytest.param("", None, id="no version"),
    ],
)
def test_the_version_of_an_api_server_determines_the_rules(git_version: str, rules: KubernetesRules | None) -> None:
    assert rules_of_server(git_version) is rules
