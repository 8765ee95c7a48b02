"""Tags and filters: glyph, word, number; missing is said."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.template import Context, Template
from django.test import RequestFactory


def rendered(text: str, **values: object) -> str:
    return Template("{% load console %}" + text).render(Context(values))


def test_a_state_is_a_glyph_and_then_its_word() -> None:
    assert rendered('{% state "healthy" %}') == (
        '<span class="st ok"><svg class="i" aria-hidden="true"><use href="#i-ok"/></svg>'
        "healthy</span>"
    )
    assert "done since 4" in rendered('{% state "ready" "done since 4" %}')


def test_a_state_of_none_is_unknown() -> None:
    assert "unknown" in rendered("{% state code %}", code=None)


def test_a_glyph_says_its_word_to_screen_readers() -> None:
    assert '<span class="vh">failed</span>' in rendered('{% glyph "failed" %}')


def test_a_role_has_its_mark_and_may_have_a_count() -> None:
    assert "#r-p" in rendered('{% role "prefill" %}')
    assert "&times; 8" in rendered('{% role "decode" 8 %}')
    assert "unassigned" in rendered("{% role code %}", code=None)


@pytest.mark.parametrize(
    "text",
    ["{{ x|quantity }}", "{{ x|percent }}", "{{ x|money:'USD' }}", "{{ x|milliseconds }}",
     "{{ x|gigabytes }}", "{{ x|at }}", "{{ x|figure }}", "{{ x|ratio }}", "{% meter x %}"],
)  # fmt: skip
def test_missing_values_say_no_data_and_never_zero(text: str) -> None:
    shown = rendered(text, x=None)

    assert '<span class="vh">no data</span>' in shown
    assert "0" not in shown


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("{{ x|quantity:2 }}", 0.4, "0.40"),
        ("{{ x|quantity }}", 0, "0"),
        ("{{ x|percent }}", 0.41, "41"),
        ("{{ x|money:'USD' }}", Decimal("3"), "$3.00"),
        ("{{ x|milliseconds }}", 0.0482, "48"),
        ("{{ x|gigabytes }}", 94 * 10**9, "94"),
        ("{{ x|hours }}", 5400, "1.5"),
        ("{{ x|ratio }}", 2.243, "2.24 &times;"),
        ("{{ x|figure }}", 128_000_000_000, "128,000,000,000"),
        ("{{ x|figure }}", 1.25, "1.25"),
        ("{{ x|figure }}", "PCIe", "PCIe"),
        ("{{ x|currency_sign }}", "KRW", "₩"),
        ("{{ x|vendor_name }}", "furiosa", "FuriosaAI"),
    ],
)
def test_values_are_shown_in_their_unit(text: str, value: object, shown: str) -> None:
    assert rendered(text, x=value) == shown


def test_a_moment_carries_its_machine_readable_time() -> None:
    moment = datetime(2026, 11, 18, 4, 5, tzinfo=UTC)

    assert 'datetime="2026-11-18T04:05:00+00:00"' in rendered("{{ x|at }}", x=moment)


def test_a_changed_address_keeps_the_other_fields() -> None:
    request = RequestFactory().get("/?vendor=amd&page=2")

    assert rendered("{% url_with page=3 %}", request=request) == "?vendor=amd&amp;page=3"
    assert rendered('{% url_with page="" %}', request=request) == "?vendor=amd"


def test_an_amount_per_hour_needs_seconds() -> None:
    assert rendered("{% per_hour a s %}", a=Decimal("6.3"), s=1800) == "12.6000"
    assert "no data" in rendered("{% per_hour a s %}", a=Decimal(1), s=0)


def test_pairs_of_a_mapping_do_not_mind_its_keys() -> None:
    text = "{% for name, count in x|pairs %}{{ name }} {{ count }};{% endfor %}"

    assert rendered(text, x={"items": 3, "chat": 1}) == "items 3;chat 1;"
