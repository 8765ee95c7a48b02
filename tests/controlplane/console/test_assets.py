"""The style sheet and the script: size, contrast of the tokens, distance of the role colours."""

import itertools
import re

import pytest

from tests.architecture.sources import ROOT

FOLDER = ROOT / "controlplane" / "console" / "assets" / "console"
SHEET = (FOLDER / "consort.css").read_text()
TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z0-9-]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)", SHEET
    )
}
ROLES = ["role-prefill", "role-decode", "role-both", "role-idle"]


def channels(colour: str) -> tuple[float, float, float]:
    """Linear red, green and blue, 0 to 1 (IEC 61966-2-1)."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    values = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values
    )
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = channels(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: str) -> tuple[float, float, float]:
    """CIE L*a*b* for D65."""
    red, green, blue = channels(colour)
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883,
    )
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str) -> float:
    """CIE76 difference of two colours."""
    return float(sum((a - b) ** 2 for a, b in zip(lab(one), lab(other), strict=True)) ** 0.5)


def test_style_sheet_and_script_stay_small() -> None:
    assert len(SHEET.encode()) <= 25 * 1024
    assert (FOLDER / "consort.js").stat().st_size <= 8 * 1024


def test_the_script_has_no_eval_and_no_request_to_another_place() -> None:
    script = (FOLDER / "consort.js").read_text()

    assert not re.search(r"\beval\(|new Function|https?://|innerHTML", script)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("names", "ratio"),
    [
        (["text"], 7.0),
        (["text-muted", "accent", "ok", "warn", "danger"], 4.5),
        (["border-strong", *ROLES], 3.0),
    ],
)
def test_text_and_graphics_have_enough_contrast_on_every_surface(
    names: list[str], ratio: float, theme: int
) -> None:
    low = [
        (name, surface)
        for name, surface in itertools.product(names, ["bg", "surface", "surface-2"])
        if contrast(TOKENS[name][theme], TOKENS[surface][theme]) < ratio
    ]

    assert low == []


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_any_two_role_colours_can_be_told_apart(theme: int) -> None:
    near = [
        (one, other)
        for one, other in itertools.combinations(ROLES, 2)
        if distance(TOKENS[one][theme], TOKENS[other][theme]) < 22
    ]

    assert near == []
