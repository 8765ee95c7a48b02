"""The limits of a tenant and a key at the admin port."""

import pytest

from tests.routing.servers.scripted import SECRET, Stage, key


@pytest.mark.lesson("T14")
async def test_the_effective_limit_is_told_with_its_source(stage: Stage) -> None:
    await stage.load(
        tenants=[{"tenant": "tenant-ana", "concurrency": 3}],
        keys=[key("ana", SECRET, concurrency=8)],
    )

    answer = await stage.admin("GET", "/admin/limits?pool=main&tenant=tenant-ana&key=key-ana")

    assert answer.status == 200
    concurrency = next(each for each in answer.json["limits"] if each["name"] == "concurrency")
    assert (concurrency["value"], concurrency["decided_by"]) == (3, "tenant")
    assert [each["level"] for each in concurrency["stated"]] == ["tenant", "key"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("", 404, id="no-pool"),
        pytest.param("pool=other&tenant=t", 404, id="another-pool"),
        pytest.param("pool=main", 400, id="no-tenant"),
        pytest.param("pool=main&tenant=tenant-ben&key=key-ana", 404, id="a-key-of-another-tenant"),
    ],
)
async def test_a_question_that_names_nothing_known_is_refused(
    stage: Stage, query: str, status: int
) -> None:
    await stage.load()

    answer = await stage.admin("GET", f"/admin/limits?{query}")

    assert answer.status == status
    assert answer.json["detail"].endswith(".")
