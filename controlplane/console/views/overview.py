"""The first page: what needs a person, then the numbers that prove it."""

from datetime import UTC, datetime, timedelta

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import attention, charts, plug, polling, strips
from controlplane.console import format as fmt
from controlplane.console.freshness import Source
from controlplane.console.selectors import control, fleet, money
from controlplane.console.selectors import overview as selectors
from controlplane.console.selectors import pools as pool_selectors
from controlplane.console.selectors.pools import PoolRow


@login_required
def overview(request: ConsoleRequest) -> HttpResponse:
    """Panels deny one by one; people of a tenant see what is theirs."""
    user = request.user
    pools = pool_selectors.pool_rows(pool_selectors.pools_for(user).filter(state="active"))
    routers = selectors.routers_for(user)
    capacity = selectors.capacity(user)
    context: dict[str, object] = {
        "may_see_fleet": permissions.allows(user, "inventory.view_node"),
        "todos": attention.todos(user, pools=pools, routers=routers),
        "capacity": capacity,
        "strips": strips.capacity_strips(capacity),
        "vendors": strips.vendor_bars(selectors.utilisation_by_vendor(user)),
        "pools": pools,
        "chart": _slo_chart(pools[0]) if pools else None,
        "plans": selectors.newest_plans(user),
        "operations": control.operations_for(user)[:4],
        "idle_count": sum(count for _model, count in capacity.healthy_not_reserved),
        "routers": routers,
        "router_rows": [(router, attention.is_silent(router)) for router in routers],
        "heard": sum(not attention.is_silent(router) for router in routers),
        "routing": _routing(pools),
        "month": _month(request),
        "comparison": _comparison(request),
        "plug": plug.panel(user),
        "sources": _sources(request, pools),
        "refresh_seconds": 10,
    }
    return polling.page_or_fragment(
        request, page="console/overview.html", fragment="console/_overview.html", context=context
    )


def _sources(request: ConsoleRequest, pools: list[PoolRow]) -> list[Source]:
    if not permissions.allows(request.user, "inventory.view_node"):
        return []
    heard = [row.service.until for row in pools if row.service.until is not None]
    return [
        Source(_("Inventory"), fleet.newest_observation(request.user)),
        Source(_("Usage"), max(heard, default=None)),
        Source(_("Scheduler"), selectors.last_tick()),
    ]


def _routing(pools: list[PoolRow]) -> dict[str, object]:
    since = datetime.now(UTC) - timedelta(hours=24)
    requests, failed = pool_selectors.requests_since(since)
    return {
        "requests": requests,
        "failed": failed,
        "in_sync": all(row.acknowledged >= row.routers for row in pools) if pools else None,
    }


def _slo_chart(row: PoolRow) -> charts.LineChart:
    hours = pool_selectors.ttft_by_hour(row.pool.slug)
    target = row.pool.slo_ttft_p95_seconds
    return charts.LineChart(
        key="slo",
        title=_("TTFT p95, %(pool)s, 24 h") % {"pool": row.pool.slug},
        note=_("seconds, measured at the routers, by hour"),
        unit="s",
        points=[charts.Point(hour, value) for hour, value in hours],
        label=lambda value: f"{fmt.number(value, 2)} s",
        when=lambda at: fmt.clock(at, at)[:5],
        target=target,
        target_label=_("target %(value)s s") % {"value": fmt.number(target, 1)} if target else "",
    )


def _comparison(request: ConsoleRequest) -> object:
    try:
        return money.newest_comparison(request.user)
    except permissions.NotPermittedError:
        return None


def _month(request: ConsoleRequest) -> dict[str, object]:
    try:
        month = money.month_of(request.user, start=money.month_start())
    except permissions.NotPermittedError as error:
        return {"denied": error.facts}
    if month is None:
        return {}
    chart = charts.LineChart(
        key="mtd",
        title=_("Ledger cost, cumulative"),
        note=_("%(currency)s, all nodes on the books") % {"currency": month.currency},
        unit=month.currency,
        points=[charts.Point(day, float(total)) for day, total in month.cumulative],
        label=lambda value: fmt.money(value, month.currency, whole=True),
        when=fmt.day,
    )
    return {"figures": month, "chart": chart if len(month.cumulative) > 1 else None}
