"""Kubernetes quantities and Go durations, as configurations write them."""

import re
from fractions import Fraction

from routing.core.refusals import DocumentError

_QUANTITY = re.compile(
    r"^(\d{1,18}(?:\.\d{1,9})?)(?:[eE]([+-]?\d{1,2})|(m|k|[KMGTPE]i?)?)$", re.ASCII
)
_SCALES = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
_DURATION = re.compile(r"^(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h))+$", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def whole(value: str | int, pointer: str) -> int:
    """A quantity such as `1G`, `512Mi` or `5000`, rounded up. Raises DocumentError."""
    found = _QUANTITY.match(str(value))
    if not found:
        raise DocumentError(pointer, f"'{value}' is no quantity.", ("5000", "512Mi", "1G"))
    number, exponent, suffix = Fraction(found[1]), found[2], found[3] or ""
    if exponent:
        number *= Fraction(10) ** int(exponent)
    elif suffix == "m":
        number /= 1000
    elif suffix.endswith("i"):
        number *= 2 ** _BINARY[suffix[0]]
    else:
        number *= 10 ** _SCALES[suffix]
    return -(-number.numerator // number.denominator)


def seconds(text: str, pointer: str) -> float:
    """A duration such as `60s` or `1m30s`. Raises DocumentError."""
    if text == "0":
        return 0.0
    if not _DURATION.match(text):
        raise DocumentError(pointer, f"'{text}' is no duration.", ("200ms", "60s", "1m30s"))
    return float(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def duration(value: float) -> str:
    """Seconds as a duration."""
    if value == int(value):
        return f"{int(value)}s"
    return f"{round(value * 1000)}ms"
