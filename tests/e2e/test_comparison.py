"""What `make demo` reports: both policies, the same requests, tokens counted twice alike."""

import json

import pytest

from tests.e2e.stack import Demo

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("demo")]


def test_tokens_of_the_routers_equal_those_of_the_engines(demo: Demo) -> None:
    report = json.loads(demo.report_file.read_text())

    assert report["usage_tokens_router"] == report["usage_tokens_engines"] > 0


def test_no_request_failed_and_three_vendors_served(demo: Demo) -> None:
    report = json.loads(demo.report_file.read_text())

    assert report["requests_failed"] == 0
    assert report["requests_ok"] >= 1200
    assert report["vendors"] >= 3
    assert report["engines"] >= 20


def test_consort_hits_twice_as_often_as_random_and_answers_sooner(demo: Demo) -> None:
    policies = json.loads(demo.report_file.read_text())["policies"]

    assert policies["consort"]["prefix_hit_rate"] >= 2 * policies["random"]["prefix_hit_rate"]
    assert policies["consort"]["ttft_p50_s"] < policies["random"]["ttft_p50_s"]
    assert {policies[name]["requests_ok"] for name in policies} == {600}


def test_the_same_figures_stand_in_the_api(demo: Demo) -> None:
    reported = json.loads(demo.report_file.read_text())["policies"]
    operator = demo.person("operator")
    project = next(
        item["slug"]
        for item in operator.get("/projects")["items"]
        if item["slug"].startswith("race")
    )

    compared = operator.get("/policy-comparisons", pool="granite-chat", project=project)

    shown = {row["policy"]: row["ttft_p50_s"] for row in compared["items"]}
    assert shown == {name: row["ttft_p50_s"] for name, row in reported.items()}
    assert compared["word"] == "estimate (simulated)"
