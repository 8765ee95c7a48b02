"""Findings stand until they are settled or their endpoint is gone."""

from routing.core.table import Instance
from routing.producers.findings import MOST_FINDINGS, Findings
from tests.routing.pool.builders import endpoint_dict, make_router


def instance(name: str = "a") -> Instance:
    return make_router(endpoint_dict(name))._known.table.instances[0]


def test_a_finding_stands_until_it_is_settled() -> None:
    findings, where = Findings(), instance()

    findings.tell("odd", where, "It is odd.", now=10.0)
    findings.tell("odd", where, "It is still odd.", now=20.0)

    assert findings.describe(now=25.0) == [
        {
            "code": "odd",
            "endpoint": "a",
            "instance": "1",
            "message": "It is still odd.",
            "age_seconds": 15.0,
        }
    ]
    findings.settle("odd", where)
    findings.settle("odd", where)
    assert findings.describe(now=25.0) == []


def test_a_finding_goes_with_its_instance() -> None:
    findings, where = Findings(), instance()
    findings.tell("odd", where, "It is odd.", now=0.0)

    where.row = -1
    findings.keep_alive_only()

    assert findings.describe(now=0.0) == []


def test_findings_are_bounded() -> None:
    findings, where = Findings(), instance()

    for number in range(MOST_FINDINGS + 5):
        findings.tell(str(number), where, "x", now=0.0)

    assert len(findings._held) == MOST_FINDINGS


def test_a_finding_may_be_about_the_pool_as_a_whole() -> None:
    findings = Findings()
    findings.tell("odd", None, "All of it.", now=0.0)

    findings.keep_alive_only()

    assert findings.describe(now=1.0)[0] == {
        "code": "odd",
        "endpoint": None,
        "instance": None,
        "message": "All of it.",
        "age_seconds": 1.0,
    }
