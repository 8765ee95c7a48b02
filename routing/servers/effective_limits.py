"""The limits that hold for a tenant and a key, as an answer of the admin port."""

from urllib.parse import parse_qs

import msgspec

from routing.pool.limits import effective_limits
from routing.servers.errors import problem
from routing.servers.state import RouterState

PER = "A limit holds for the pool's routers and processes together, once they heard of each other."


def answer(state: RouterState, query: str) -> tuple[int, bytes]:
    """`GET /admin/limits?pool=P&tenant=T&key=K`; the key may be left out."""
    asked = {name: values[-1] for name, values in parse_qs(query).items()}
    pool = state.directory.pools.get(asked.get("pool", ""))
    if pool is None:
        known = sorted(state.directory.pools)
        name = asked.get("pool", "")
        return 404, problem("not-found", f"There is no pool '{name}' here.", allowed=known)
    if not asked.get("tenant"):
        return 400, problem("bad-request", "The query needs tenant, and may have key.")
    try:
        limits = effective_limits(pool.document, asked["tenant"], asked.get("key"))
    except LookupError as error:
        return 404, problem("not-found", str(error))
    found = {
        "pool": pool.document.pool,
        "document_version": pool.document.version,
        "tenant": asked["tenant"],
        "key": asked.get("key"),
        "limits": limits,
        "per": PER,
    }
    return 200, msgspec.json.encode(found)
