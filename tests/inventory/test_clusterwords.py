"""What went wrong with a cluster, in the reader's language."""

import pytest
from django.utils import translation

from inventory import clusterwords
from inventory.kubernetes.errors import (
    AnswerError,
    ClusterRefusedError,
    ClusterUnavailableError,
    CredentialsError,
    KindMissingError,
)
from inventory.kubernetes.sentences import SENTENCES
from inventory.models import Cluster

FACTS = {
    "file": "token", "key": "exec", "kind": "users", "limit": 5, "name": "u",
    "reference": "seoul", "server": "http://h",
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("code", SENTENCES)
def test_every_rule_of_credentials_has_a_sentence_and_advice(code: str, language: str) -> None:
    with translation.override(language):
        words = clusterwords.of_error(CredentialsError(code, **FACTS))

    assert "{" not in words.what
    assert words.advice
    if language == "ko":
        assert words.what != SENTENCES[code].format(**FACTS)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (ClusterUnavailableError("no leader"), "The API server does not answer. no leader"),
        (AnswerError("no name"), "What answers is not an API server"),
        (ClusterRefusedError(status=403, reason="Forbidden", message="no"), "refuses. no"),
        (KindMissingError("apps/v1", "Deployment"), "The API server refuses."),
    ],
)
def test_every_error_has_words_and_keeps_those_of_the_server(
    error: ClusterUnavailableError, what: str
) -> None:
    words = clusterwords.of_error(error)

    assert what in words.what
    assert words.advice


def test_a_cluster_keeps_what_the_server_said_apart() -> None:
    cluster = Cluster(error="no leader", error_code="cluster-unavailable")

    words = clusterwords.of_cluster(cluster)

    assert words is not None
    assert (words.what, words.said) == ("The API server does not answer.", "no leader")


def test_facts_that_are_missing_leave_the_sentence_as_it_came() -> None:
    cluster = Cluster(error="as it came", error_code="file-outside", error_facts={})

    words = clusterwords.of_cluster(cluster)

    assert words is not None
    assert words.what == "as it came"


def test_a_cluster_without_trouble_has_no_words() -> None:
    assert clusterwords.of_cluster(Cluster()) is None
