"""Which routers can be asked, and which documents they read."""

import logging

from controlplane.decisions.sources.router import RouterPort
from controlplane.serving.errors import RouterTokenError
from controlplane.serving.models import PoolDocument, Router
from controlplane.serving.services import routers as serving

logger = logging.getLogger(__name__)


def router_ports() -> list[RouterPort]:
    """Admin ports of the routers in use whose token is at hand."""
    found = (_port(router) for router in Router.objects.filter(enabled=True).order_by("name"))
    return [port for port in found if port is not None]


def port_with_pool(pool: str) -> RouterPort | None:
    """A router that was heard lately and serves the pool; the first by name."""
    for router in serving.in_reach(list(Router.objects.filter(enabled=True).order_by("name"))):
        if pool in router.documents and (port := _port(router)) is not None:
            return port
    return None


def router_named(name: str) -> Router:
    """The router of a name."""
    return Router.objects.get(name=name)


def document_content(pool: str, version: int) -> str | None:
    """Content of one version of a pool's document."""
    rows = PoolDocument.objects.filter(pool__slug=pool, version=version)
    return rows.values_list("content", flat=True).first()


def _port(router: Router) -> RouterPort | None:
    try:
        token = serving.token_of(router)
    except RouterTokenError as error:
        logger.warning("Router %s cannot be asked: %s", router.name, error)
        return None
    return RouterPort(name=router.name, admin_url=router.admin_url, token=token)
