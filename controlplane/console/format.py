"""Numbers, money and times as people read them; what is missing says so and is never 0."""

from datetime import UTC, datetime
from decimal import Decimal, localcontext

from babel.numbers import format_currency, format_decimal, get_currency_symbol
from django.utils import formats, timezone, translation
from django.utils.translation import gettext as _

Number = int | float | Decimal

MISSING = "\N{EN DASH}"
"""What stands where a known source gave no value."""
_DIGITS = 80
"""Of the largest decimals that people can make by stating figures; 28 are the usual end."""


def is_missing(value: object) -> bool:
    """True for None and for NaN, which both mean "no data"."""
    return value is None or value != value


def number(value: Number | None, digits: int = 0) -> str:
    """The number with grouped thousands and exactly `digits` decimals; a dash if missing."""
    if value is None or is_missing(value):
        return MISSING
    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    with localcontext(prec=_DIGITS):
        return str(format_decimal(value, format=pattern, locale=_locale()))


def compact(value: Number | None) -> str:
    """A large count in thousands, millions or billions, three digits at most: 41.2 M."""
    if value is None or is_missing(value):
        return MISSING
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(float(value)) >= limit:
            scaled = float(value) / limit
            return f"{number(scaled, 0 if scaled >= 100 else 1)} {sign}"
    return number(value)


def percent(share: Number | None, digits: int = 0) -> str:
    """A share of 0 to 1 as a percentage without the sign; a dash if missing."""
    return MISSING if share is None or is_missing(share) else number(float(share) * 100, digits)


def money(amount: Number | None, currency: str, *, whole: bool = False) -> str:
    """The amount with its currency sign; won, yen and `whole` ones without decimals."""
    if amount is None or is_missing(amount):
        return MISSING
    digits = not whole and currency not in ("KRW", "JPY") and abs(float(amount)) < 100_000
    pattern = "¤#,##0.00" if digits else "¤#,##0"
    with localcontext(prec=_DIGITS):
        text = format_currency(amount, currency, pattern, locale=_locale(), currency_digits=False)
    return str(text)


def currency_sign(currency: str) -> str:
    """Sign of a currency for a column head: ₩, $, €."""
    return str(get_currency_symbol(currency, locale=_locale()))


def duration(seconds: Number | None) -> str:
    """A length of time in its two largest units: 13 min 1 s, 4 h 55 min, 2 d 3 h."""
    if seconds is None or is_missing(seconds):
        return MISSING
    whole = max(0, int(seconds))
    if whole < 60:
        return _("%(n)d s") % {"n": whole}
    if whole < 3600:
        return _("%(m)d min %(s)d s") % {"m": whole // 60, "s": whole % 60}
    if whole < 86400:
        return _("%(h)d h %(m)d min") % {"h": whole // 3600, "m": whole % 3600 // 60}
    return _("%(d)d d %(h)d h") % {"d": whole // 86400, "h": whole % 86400 // 3600}


def age(since: datetime | None, now: datetime | None = None) -> str:
    """Time since then in its largest unit: 18 s, 24 min, 3 h, 5 d; a dash if never."""
    if since is None:
        return MISSING
    whole = max(0, int(((now or datetime.now(UTC)) - since).total_seconds()))
    if whole < 60:
        return _("%(n)d s") % {"n": whole}
    if whole < 3600:
        return _("%(n)d min") % {"n": whole // 60}
    if whole < 2 * 86400:
        return _("%(n)d h") % {"n": whole // 3600}
    return _("%(n)d d") % {"n": whole // 86400}


def clock(at: datetime | None, now: datetime | None = None) -> str:
    """Time of day in the person's zone; with the day when that is not today."""
    if at is None:
        return MISSING
    local = timezone.localtime(at)
    today = timezone.localtime(now or datetime.now(UTC)).date()
    if local.date() == today:
        return local.strftime("%H:%M:%S")
    return f"{day(at)} {local:%H:%M}"


def day(at: datetime | None) -> str:
    """Day and month in the person's language: 14 Nov, 11월 14일."""
    if at is None:
        return MISSING
    pattern = "n월 j일" if _locale() == "ko" else "j M"
    return formats.date_format(timezone.localtime(at), pattern)


def month(at: datetime) -> str:
    """Month and year in the person's language: November 2026, 2026년 11월."""
    return formats.date_format(at, "Y년 n월" if _locale() == "ko" else "F Y")


def zone() -> str:
    """Name of the person's time zone with its distance from UTC: KST (UTC+9)."""
    local = timezone.localtime()
    offset = local.utcoffset()
    hours = offset.total_seconds() / 3600 if offset else 0.0
    return "UTC" if hours == 0 else f"{local.tzname()} (UTC{hours:+g})"


def _locale() -> str:
    return "ko" if (translation.get_language() or "en").startswith("ko") else "en"
