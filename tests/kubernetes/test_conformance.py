"""The fake answers as a real API server does: the same checks pass on both."""

import os

import pytest
from kubernetes import client, config

from tests.kubernetes.conformance.__main__ import CHECKS, run
from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.plugin import VARIABLE

AT_LEAST = 35


@pytest.mark.fake_only
def test_the_fake_behaves_as_a_real_api_server() -> None:
    with FakeCluster(working=True) as cluster:
        api = client.ApiClient(client.Configuration(host=cluster.url))

        results = list(run(api))
        api.close()

    assert [(result.name, result.failure) for result in results if result.failure] == []
    assert len(results) == len(CHECKS) >= AT_LEAST


@pytest.mark.real_only
def test_the_real_cluster_passes_the_same_checks() -> None:
    api = config.new_client_from_config(os.environ[VARIABLE])

    results = list(run(api))

    assert [(result.name, result.failure) for result in results if result.failure] == []
