"""Marks, numbers and times in templates: `{% load console %}`.

Tags give text, so that a table of 200 rows costs no component per cell.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django import template
from django.http import QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from controlplane.console import format as fmt
from controlplane.console import svg, words

register = template.Library()

register.simple_tag(svg.icon, name="icon")
register.simple_tag(svg.mark, name="mark")
register.filter("vendor_name", words.vendor)
register.filter("method_word", words.method)
register.filter("confidence_word", words.confidence)
register.filter("check_word", words.check)
register.filter("operation_word", words.operation)
register.filter("step_word", words.step)
register.filter("short_model", words.short_model)
register.filter("compact", fmt.compact)
register.filter("duration", fmt.duration)
register.filter("currency_sign", fmt.currency_sign)
register.filter("month", fmt.month)


@register.simple_tag
def state(code: str | None, word: str = "") -> SafeString:
    """Glyph, then word; another word may replace the usual one: `{% state "ready" %}`."""
    look = words.look(code or "unknown")
    return format_html(
        '<span class="st {}">{}{}</span>', look.tone, svg.icon(look.icon), word or look.word
    )


@register.simple_tag
def glyph(code: str | None) -> SafeString:
    """The glyph of a state with its word for screen readers only."""
    look = words.look(code or "unknown")
    return format_html(
        '<span class="st {}">{}<span class="vh">{}</span></span>',
        look.tone, svg.icon(look.icon), look.word,
    )  # fmt: skip


@register.filter
def state_word(code: str | None) -> object:
    """The word of a state without its glyph."""
    return words.look(code or "unknown").word


@register.simple_tag
def role(code: str | None, count: int | None = None) -> SafeString:
    """Mark and word of a role, with a count if one is given."""
    letter, word = words.role(code)
    many = format_html(' <span class="u">&times; {}</span>', count) if count is not None else ""
    return format_html('<span class="role">{}{}{}</span>', svg.mark(letter), word, many)


@register.filter
def role_word(code: str | None) -> object:
    """The word of a role without its mark."""
    return words.role(code)[1]


@register.simple_tag
def method(code: str) -> SafeString:
    """How a figure came to be, as a dashed tag."""
    return format_html('<span class="tag method">{}</span>', words.method(code))


@register.filter
def quantity(value: fmt.Number | None, digits: int = 0) -> SafeString | str:
    """A number with `digits` decimals; "no data" is said to screen readers where it is missing."""
    if fmt.is_missing(value):
        return _gone()
    return fmt.number(value, digits)


@register.filter
def percent(share: fmt.Number | None, digits: int = 0) -> SafeString | str:
    """A share of 0 to 1 as percent, without the sign."""
    return _gone() if fmt.is_missing(share) else fmt.percent(share, digits)


@register.filter
def figure(value: object) -> SafeString | str:
    """A figure of a data sheet: numbers grouped, texts as they are."""
    if value is None:
        return _gone()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return fmt.number(value, 0 if float(value).is_integer() else 2)
    return str(value)


@register.filter
def hours(seconds: int) -> str:
    """Seconds as hours with one decimal."""
    return fmt.number(seconds / 3600, 1)


@register.simple_tag
def per_hour(total: Decimal, seconds: int) -> SafeString | str:
    """An amount spread over seconds, per hour, four decimals."""
    return fmt.number(total * 3600 / seconds, 4) if seconds else _gone()


@register.filter
def ratio(value: float | None) -> SafeString | str:
    """A ratio as 2.24 times."""
    return _gone() if value is None else format_html("{} &times;", fmt.number(value, 2))


@register.filter
def milliseconds(seconds: float | None) -> SafeString | str:
    """Seconds as whole milliseconds."""
    return _gone() if seconds is None else fmt.number(seconds * 1000)


@register.filter
def money(amount: fmt.Number | None, currency: str) -> SafeString | str:
    """An amount with its currency sign."""
    return _gone() if fmt.is_missing(amount) else fmt.money(amount, currency)


@register.filter
def gigabytes(size: int | None) -> SafeString | str:
    """Bytes as GB (10⁹)."""
    return _gone() if size is None else fmt.number(size / 1e9)


@register.filter
def age(since: datetime | None) -> str:
    """Time since then in its largest unit."""
    return fmt.age(since)


@register.filter
def at(moment: datetime | None) -> SafeString | str:
    """Time of day, or day and time, in the person's zone."""
    if moment is None:
        return _gone()
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), fmt.clock(moment))


@register.filter
def day(moment: datetime | None) -> str:
    """Day and month."""
    return fmt.day(moment)


@register.simple_tag
def meter(share: float | None) -> SafeString:
    """Small bar with its percentage beside it."""
    if share is None or fmt.is_missing(share):
        return _gone()
    return format_html(
        '<span class="mini">{}</span><span class="mv">{}</span>', svg.meter(share),
        fmt.percent(share),
    )  # fmt: skip


@register.filter
def item(mapping: Mapping[object, object], key: object) -> object:
    """Value of a key, None if absent."""
    return mapping.get(key)


@register.filter
def pairs(mapping: Mapping[object, object]) -> list[tuple[object, object]]:
    """Keys and values; `.items` would be the value of a key that people have named "items"."""
    return list(mapping.items())


@register.simple_tag(takes_context=True)
def url_with(context: template.Context, **changes: object) -> str:
    """The page's address with changed query fields; an empty value removes the field."""
    query: QueryDict = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = str(value)
    return f"?{query.urlencode()}"


def _gone() -> SafeString:
    return format_html(
        '<span class="gone"><span aria-hidden="true">{}</span><span class="vh">{}</span></span>',
        fmt.MISSING, _("no data"),
    )  # fmt: skip
