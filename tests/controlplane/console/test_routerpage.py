"""Documents of a router beside the newest ones."""

from controlplane.console import routerpage
from controlplane.serving.models import Router


def router(**documents: object) -> Router:
    return Router(name="r", documents=documents)


def test_a_router_is_behind_until_it_has_the_newest_version() -> None:
    have = router(chat={"version": 4}, batch={"version": 7})

    assert routerpage.documents_of(have, {"chat": 5, "batch": 7, "other": 1}) == [
        ("batch", 7, "in_sync"),
        ("chat", 4, "behind"),
        ("other", None, "behind"),
    ]


def test_a_version_that_is_no_number_is_no_version() -> None:
    assert routerpage.version_of(router(chat={"version": "x"}), "chat") is None
    assert routerpage.version_of(router(chat=3), "chat") is None


def test_only_routers_in_use_are_compared() -> None:
    resting = Router(name="off", enabled=False)

    rows = routerpage.rows_for([router(chat={"version": 5}), resting], pool="chat", version=5)

    assert [(row.name, row.in_sync) for row in rows] == [("r", True)]


def test_without_a_document_nobody_is_in_sync() -> None:
    rows = routerpage.rows_for([router()], pool="chat", version=None)

    assert [row.in_sync for row in rows] == [False]
