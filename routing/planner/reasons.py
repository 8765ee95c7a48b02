"""Why an option is advised or not: codes with numbers; `routing.planner.words` says them."""

from collections.abc import Mapping, Sequence

import msgspec

from routing.planner.advice import Option, Reason, Refused, Verdict
from routing.planner.engines import Engine, Refusal
from routing.planner.problem import Demand
from routing.planner.trial import Outcome

ENOUGH = 0.95
"""Share of the offered rate that is good, from which a pool is called to meet its target."""

NEARLY = 0.995
"""Of the advice's goodput, from which an option counts as level."""

SPARE_LOAD = 0.5
"""Load over the bound from which on there is nothing to spare."""


def refusal(found: Refusal) -> Reason:
    """Why a model does not run on a group."""
    numbers: dict[str, float | str | None] = {"detail": found.detail}
    if found.code == "memory":
        numbers |= {"needed_gb": _gb(found.needed_bytes), "there_gb": _gb(found.there_bytes)}
    return Reason(code=f"fit-{found.code}", numbers=numbers)


def nothing_fits(refused: Sequence[Refused]) -> Reason:
    """No engine can serve the model."""
    return Reason(code="nothing-fits", numbers={"groups": float(len(refused))})


def split_wins(best: Option, base: Option | None) -> tuple[Reason, ...]:
    """Why the split is advised."""
    if base is None or base.outcome is None or best.outcome is None:
        return (Reason(code="split-only"),)
    numbers = _against(best.outcome, base.outcome)
    code = "split-wins" if base.outcome.goodput_rps > 0 else "split-wins-over-nothing"
    found = [Reason(code=code, numbers=numbers)]
    found += _latencies(best, base)
    found += _hand_over(best)
    return tuple(found)


def plain_choice(
    verdict: Verdict, chosen: Option, plain: Sequence[Option], demand: Demand
) -> tuple[Reason, ...]:
    """Why today's roles stay, or why every engine gets both phases."""
    outcome = chosen.outcome
    if outcome is None:
        return ()
    numbers: dict[str, float | str | None] = {
        "goodput": outcome.goodput_rps,
        "offered": demand.traffic.rate_qps,
        "share": outcome.goodput_rps / demand.traffic.rate_qps,
    }
    if outcome.goodput_rps >= ENOUGH * demand.traffic.rate_qps:
        code = "meets-target"
    else:
        code = "misses-target"
        numbers["limit"] = chosen.bound.limited_by
    found = [Reason(code=code, numbers=numbers)]
    load = demand.traffic.rate_qps / chosen.bound.capacity_rps if chosen.bound.capacity_rps else 1.0
    if code == "meets-target" and load <= SPARE_LOAD:
        spare: dict[str, float | str | None] = {"share": load, "bound": chosen.bound.capacity_rps}
        found.append(Reason(code="spare", numbers=spare))
    now = next((option for option in plain if option.kind == "now"), None)
    if verdict == "both" and now is not None and now.outcome is not None:
        numbers = _against(outcome, now.outcome)
        code = "both-wins" if now.outcome.goodput_rps > 0 else "both-wins-over-nothing"
        found.append(Reason(code=code, numbers=numbers))
    return tuple(found)


def no_split(
    chosen: Option, split: Option | None, demand: Demand, engines: Mapping[str, Engine]
) -> tuple[Reason, ...]:
    """Why no pairs: not allowed, not possible, or not better, with what a hand-over costs."""
    if not demand.may_split:
        return (Reason(code="split-not-allowed"),)
    if split is None or split.outcome is None or chosen.outcome is None:
        return (Reason(code="split-impossible"),)
    numbers = _against(split.outcome, chosen.outcome)
    code = "do-not-split" if chosen.outcome.goodput_rps > 0 else "do-not-split-nothing"
    return (
        Reason(code=code, numbers=numbers),
        *_hand_over_cost(split, demand, engines),
        *_limit(split),
    )


def with_comparison(option: Option, chosen: Option | None, demand: Demand) -> Option:
    """The option with the reasons why it is not the advice."""
    if chosen is None or option.outcome is None or chosen.outcome is None:
        return option
    numbers = _against(option.outcome, chosen.outcome) | {"moves": float(option.moves)}
    if chosen.outcome.goodput_rps <= 0:
        code = "as-nothing"
    elif option.outcome.goodput_rps < NEARLY * chosen.outcome.goodput_rps:
        code = "less-goodput"
    else:
        code = "no-clear-gain"
    found = [Reason(code=code, numbers=numbers), *_latencies(option, chosen)]
    if option.kind == "split":
        found += [*_hand_over(option), *_limit(option)]
    return msgspec.structs.replace(option, reasons=tuple(found))


def _latencies(one: Option, other: Option) -> list[Reason]:
    found = []
    if one.outcome and other.outcome:
        for code, ours, theirs in (
            ("ttft", one.outcome.ttft, other.outcome.ttft),
            ("tpot", one.outcome.tpot, other.outcome.tpot),
        ):
            if ours is not None and theirs is not None:
                numbers: dict[str, float | str | None] = {"ours": ours.p90, "theirs": theirs.p90}
                found.append(Reason(code=f"{code}-compared", numbers=numbers))
    return found


def _hand_over(option: Option) -> list[Reason]:
    outcome = option.outcome
    if outcome is None or outcome.pair_share is None:
        return []
    return [Reason(code="pair-share", numbers={"share": outcome.pair_share})]


def _hand_over_cost(
    split: Option, demand: Demand, engines: Mapping[str, Engine]
) -> tuple[Reason, ...]:
    """Seconds that a whole prompt spends on the slowest link of the split, staged through hosts."""
    seconds = [
        engine.profile.transfer_setup_seconds
        + demand.traffic.prompt_tokens
        * engine.profile.kv_bytes_per_token
        / engine.profile.link_bytes_per_second
        for share in split.placement
        if (share.prefill or share.decode) and (engine := engines[share.group])
    ]
    if not seconds:
        return ()
    numbers: dict[str, float | str | None] = {
        "seconds": max(seconds), "tokens": float(demand.traffic.prompt_tokens),
    }  # fmt: skip
    return (Reason(code="hand-over-cost", numbers=numbers),)


def _limit(split: Option) -> tuple[Reason, ...]:
    if split.bound.limited_by not in {"prefill", "decode"}:
        return ()
    return (Reason(code=f"limited-by-{split.bound.limited_by}"),)


def _against(ours: Outcome, theirs: Outcome) -> dict[str, float | str | None]:
    """`gain` is `None` where the others answer nothing in time."""
    other, most = theirs.goodput_rps, theirs.goodput_at_most_rps
    return {
        "goodput": ours.goodput_rps,
        "other": other,
        "most": other if most is None else most,
        "gain": ours.goodput_rps / other - 1 if other > 0 else None,
    }


def _gb(size: float | None) -> float | None:
    return None if size is None else size / 1e9
