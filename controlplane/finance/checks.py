"""The check of a change plan that finance answers: cost per hour before and after."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from controlplane.finance.money import rounded
from controlplane.finance.selectors import accelerator_prices
from controlplane.serving.checks.base import CheckResult
from controlplane.serving.models import AssignedAccelerator, ChangePlan
from controlplane.serving.plans import items_of, roles_after

_STEP = Decimal("0.0001")


def check(plan: ChangePlan) -> CheckResult:
    """Compare what the pool's accelerators cost per hour before and after the plan.

    Passes with the numbers, whatever they are: a cost is for people to judge. Warns if an
    accelerator's cost is unknown, because the sums then lack it.
    """
    before = {
        str(accelerator): role
        for accelerator, role in AssignedAccelerator.objects.filter(
            open=True, assignment__pool=plan.pool
        ).values_list("accelerator", "assignment__role")
    }
    after = roles_after(before, items_of(plan.diff))
    prices = _prices(before.keys() | after.keys())
    missing = sorted(key for key, price in prices.items() if price is None)
    then, now = _sum(after, prices), _sum(before, prices)
    numbers = {
        "before": str(now),
        "after": str(then),
        "difference": str(then - now),
        "currency": settings.LEDGER_CURRENCY,
        "before_by_role": _by_role(before, prices),
        "after_by_role": _by_role(after, prices),
        "accelerators_without_cost": len(missing),
    }
    if missing:
        sentence = _(
            "The cost of {count} accelerators is unknown, so the sums lack them."
            " Record what their nodes cost."
        ).format(count=len(missing))
        return CheckResult(verdict="warn", sentence=sentence, numbers=numbers)
    sentence = _("Cost per hour: {before} before, {after} after ({currency}).").format(
        before=now, after=then, currency=settings.LEDGER_CURRENCY
    )
    return CheckResult(verdict="pass", sentence=sentence, numbers=numbers)


def _prices(accelerators: Iterable[str]) -> dict[str, Decimal | None]:
    found = accelerator_prices([UUID(key) for key in sorted(accelerators)])
    return {str(key): price for key, price in found.items()}


def _sum(roles: Iterable[str], prices: Mapping[str, Decimal | None]) -> Decimal:
    return rounded(sum((prices[key] or Decimal(0) for key in roles), Decimal(0)), _STEP)


def _by_role(roles: Mapping[str, str], prices: Mapping[str, Decimal | None]) -> dict[str, str]:
    names = sorted(set(roles.values()))
    return {
        name: str(_sum([key for key, role in roles.items() if role == name], prices))
        for name in names
    }
