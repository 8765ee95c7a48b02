"""The fleets of the race. Published clusters keep their published names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from routing.core.document import Role
from routing.simulator.fleet import Member
from routing.simulator.report.prices import listed
from routing.simulator.scenario import Trouble

GRANITE, SARVAM, QWEN = "granite-4.1-8b", "sarvam-30b", "qwen3-32b"
H100_PAIR = "nvidia-h100-sxm-tp2"
H100_NVL, MI325X, GAUDI3 = "nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3"

LOST_EVENT_SECONDS = 5.0
LOSSY_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class RaceFleet:
    """Members, what happens to them, and whether their speeds differ: by vendor, node or fault."""

    id: str
    members: tuple[Member, ...]
    model: str = GRANITE
    is_mixed: bool = False
    troubles: tuple[Trouble, ...] = ()

    @property
    def accelerators(self) -> frozenset[str]:
        """Classes in it."""
        return frozenset(member.accelerator for member in self.members)


def _fleet(
    name: str,
    *members: Member,
    model: str = GRANITE,
    is_mixed: bool = False,
    troubles: tuple[Trouble, ...] = (),
) -> RaceFleet:
    return RaceFleet(
        id=name,
        members=tuple(_priced(member) for member in members),
        model=model,
        is_mixed=is_mixed,
        troubles=troubles,
    )


def _priced(member: Member) -> Member:
    known = listed(member.accelerator)
    price = None if known.price_per_hour is None else str(known.price_per_hour)
    return replace(member, price_per_hour=price, watts=known.watts)


def _three_vendors(h100: Role, mi325x: Role, gaudi3: Role) -> tuple[Member, ...]:
    return (
        Member(accelerator=H100_NVL, count=4, role=h100),
        Member(accelerator=MI325X, count=8, role=mi325x),
        Member(accelerator=GAUDI3, count=8, role=gaudi3),
    )


def _each(accelerator: str, count: int, *speeds: float) -> tuple[Member, ...]:
    return tuple(Member(accelerator=accelerator, count=count, speed=speed) for speed in speeds)


def _lossy(endpoint: str) -> tuple[Trouble, ...]:
    """A batch of cache events lost again and again."""
    moments = range(1, round(LOSSY_SECONDS / LOST_EVENT_SECONDS))
    return tuple(
        Trouble(at=LOST_EVENT_SECONDS * moment, endpoint=endpoint, kind="lose-events")
        for moment in moments
    )


_ALL = (
    _fleet("nxt-3vendor", *_three_vendors("both", "both", "both"), is_mixed=True),
    _fleet(
        "nxt-ab",
        Member(accelerator=H100_NVL, count=4),
        Member(accelerator=MI325X, count=8),
        is_mixed=True,
    ),
    _fleet(
        "nxt-ab-sarvam",
        Member(accelerator=H100_NVL, count=4),
        Member(accelerator=MI325X, count=8),
        model=SARVAM,
        is_mixed=True,
    ),
    _fleet("guide-16xh100", Member(accelerator=H100_PAIR, count=8), model=QWEN),
    _fleet("nxt-4xh100nvl", Member(accelerator=H100_NVL, count=4)),
    _fleet("homogeneous-8xmi325x", Member(accelerator=MI325X, count=8)),
    _fleet("spread-4x", *_each(MI325X, 2, 1.0, 0.75, 0.5, 0.25), is_mixed=True),
    _fleet("one-sick", *_each(MI325X, 7, 1.0), *_each(MI325X, 1, 0.3), is_mixed=True),
    _fleet("one-lossy", *_each(MI325X, 8, 1.0), troubles=_lossy(f"{MI325X}-3")),
    _fleet(
        "one-dies",
        *_each(MI325X, 8, 1.0),
        troubles=(
            Trouble(at=45.0, endpoint=f"{MI325X}-5", kind="die"),
            Trouble(at=75.0, endpoint=f"{MI325X}-5", kind="start"),
        ),
    ),
    _fleet(
        "pd-4p4d-mi325x",
        Member(accelerator=MI325X, count=4, role="prefill"),
        Member(accelerator=MI325X, count=4, role="decode"),
    ),
    _fleet(
        "pd-4p4d-sarvam",
        Member(accelerator=MI325X, count=4, role="prefill"),
        Member(accelerator=MI325X, count=4, role="decode"),
        model=SARVAM,
    ),
    _fleet("pd-3vendor", *_three_vendors("decode", "both", "prefill"), is_mixed=True),
    _fleet("split-memory-prefills", *_three_vendors("decode", "prefill", "prefill"), is_mixed=True),
    _fleet("split-fast-prefills", *_three_vendors("prefill", "decode", "decode"), is_mixed=True),
    _fleet("split-gaudi-prefills", *_three_vendors("decode", "decode", "prefill"), is_mixed=True),
)

FLEETS: Mapping[str, RaceFleet] = MappingProxyType({fleet.id: fleet for fleet in _ALL})

UNSPLIT = "nxt-3vendor"
SPLITS = (
    UNSPLIT,
    "split-memory-prefills",
    "split-fast-prefills",
    "split-gaudi-prefills",
    "pd-3vendor",
)
"""The same twenty endpoints in different roles: first all `both`; the memory-rich MI325X and Gaudi
3 prefill for H100-NVL; H100-NVL prefills for the others; Gaudi 3 prefills for the others; that, and
MI325X keeps to itself. A `decode` endpoint may compute its own prompts; pairs are made of `prefill`
and `decode` only."""
