"""People."""

import pytest
from django.core.exceptions import ValidationError

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.tenancy import services
from controlplane.tenancy.models import Role, User
from tests.factories import PASSWORD, make_admin, make_ana, make_olga, make_user

pytestmark = pytest.mark.django_db


def test_somebody_with_a_password_can_log_in() -> None:
    user = services.create_user(
        username="olga", password=PASSWORD, roles=[Role.FLEET_OPERATOR], full_name="Olga"
    )

    assert user.check_password(PASSWORD)
    assert AuditEntry.objects.get().action == "user.create"
    assert PASSWORD not in str(AuditEntry.objects.values().get())


def test_somebody_without_a_password_cannot() -> None:
    user = services.create_user(username="robot", password=None, roles=[])

    assert not user.has_usable_password()


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"username": "Olga"}, "username"),
        ({"username": ""}, "username"),
        ({"roles": ["emperor"]}, "roles"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"theme": "pink"}, "theme"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(overrides: dict[str, object], field: str) -> None:
    values = {"username": "olga", "password": PASSWORD, "roles": []} | overrides

    with pytest.raises(ValidationError) as refused:
        services.create_user(**values)

    assert field in refused.value.error_dict
    assert not User.objects.exists()


@pytest.mark.parametrize("password", ["short", "password1234"])
def test_a_weak_password_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        services.create_user(username="olga", password=password, roles=[])


def test_a_name_is_taken_once() -> None:
    make_user("olga")

    with pytest.raises(ValidationError, match="taken"):
        services.create_user(username="olga", password=None, roles=[])


def test_who_operates_the_fleet_creates_nobody() -> None:
    with pytest.raises(NotPermittedError):
        services.create_user(username="x", password=None, roles=[], actor=make_olga())


def test_an_administrator_of_a_tenant_creates_people_inside_it_only() -> None:
    ana = make_ana()

    services.create_user(
        username="carl", password=None, roles=[Role.TENANT_VIEWER], actor=ana, tenant=ana.tenant
    )

    with pytest.raises(NotPermittedError):
        services.create_user(username="dan", password=None, roles=[], actor=ana, tenant=None)


def test_an_administrator_of_a_tenant_gives_roles_of_tenants_only() -> None:
    ana = make_ana()

    with pytest.raises(ValidationError, match="nothing else"):
        services.create_user(
            username="eve", password=None, roles=[Role.PLATFORM_ADMIN], actor=ana,
            tenant=ana.tenant,
        )  # fmt: skip


def test_preferences_change_one_by_one() -> None:
    user = make_user()

    services.set_preferences(user_id=user.pk, language="ko")
    services.set_preferences(user_id=user.pk, time_zone="Asia/Seoul", theme="dark")

    user.refresh_from_db()
    assert (user.language, user.time_zone, user.theme) == ("ko", "Asia/Seoul", "dark")


def test_a_time_zone_that_does_not_exist_changes_nothing() -> None:
    user = make_user()

    with pytest.raises(ValidationError, match="Mars"):
        services.set_preferences(user_id=user.pk, time_zone="Mars/Olympus")

    user.refresh_from_db()
    assert user.time_zone == "UTC"


def test_logins_of_both_kinds_are_recorded() -> None:
    admin = make_admin()

    services.note_login(user=admin)
    services.note_failed_login(username=admin.username, address="203.0.113.7")
    services.note_failed_login(username="nobody", address="203.0.113.7")
    services.note_logout(user=admin)

    entries = AuditEntry.objects.order_by("time").values_list("action", "result")
    assert list(entries) == [
        ("user.login", "allowed"), ("user.login", "denied"), ("user.logout", "allowed"),
    ]  # fmt: skip
