"""Sites: figures with sentences, names that are taken, who may."""

from decimal import Decimal
from typing import Any

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from inventory import services
from inventory.errors import SlugTakenError, ValueNotAllowedError
from inventory.models import Site
from tests.factories import make_ben, make_olga
from tests.inventory.factories import make_site

pytestmark = pytest.mark.django_db


def create(**overrides: Any) -> Site:
    defaults = {"slug": "KR-SEO-1", "name": "Seoul 1", "country": "KR"}
    actor = overrides.pop("actor", None) or make_olga()
    return services.create_site(actor=actor, **defaults | overrides)


def test_the_jurisdiction_is_the_countrys_unless_it_is_given() -> None:
    assert create().jurisdiction == "KR"
    assert create(slug="EU-1", country="DE", jurisdiction="EU").jurisdiction == "EU"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param({"country": "kr"}, "two capital letters", id="country"),
        pytest.param({"pue": Decimal("0.8")}, "PUE is at least 1", id="pue"),
        pytest.param({"tariff_per_kwh": Decimal(1)}, "has a currency", id="tariff"),
        pytest.param({"slug": "a b"}, "slug: ", id="slug"),
    ],
)
def test_a_figure_out_of_range_is_refused_with_its_rule(
    values: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueNotAllowedError, match=sentence):
        create(**values)

    assert not Site.objects.exists()


def test_a_short_name_is_taken_once() -> None:
    create()

    with pytest.raises(SlugTakenError, match="KR-SEO-1"):
        create()


def test_a_change_keeps_before_and_after() -> None:
    site = make_site()

    services.change_site(
        site_id=site.pk, reason="new contract", actor=make_olga(), pue=Decimal("1.3"),
        tariff_per_kwh=Decimal("0.12"), currency="USD",
    )  # fmt: skip

    entry = AuditEntry.objects.get(object_id=str(site.pk))
    assert entry.before == {"pue": None, "tariff_per_kwh": None, "currency": ""}
    assert entry.after == {"pue": "1.3", "tariff_per_kwh": "0.12", "currency": "USD"}


def test_ben_adds_no_site() -> None:
    with pytest.raises(NotPermittedError):
        create(actor=make_ben())
