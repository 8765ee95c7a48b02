"""Our own routers: the pool document as a Secret, for routers that the control plane cannot reach.

Documents carry hashed keys and limits of tenants, so they are a Secret and no ConfigMap. Its name
carries a hash of the content: a change is a rollout with a way back. Routers that the control plane
reaches get their documents from it and need none of this.
"""

import base64

from controlplane.serving.renderers import _labels
from controlplane.serving.renderers._picker import with_hash
from controlplane.serving.renderers.base import (
    Manifest,
    PoolLayout,
    Renderer,
    RenderRefusedError,
)

MOST_BYTES = 1024 * 1024
"""A Secret holds at most this much."""


class Router:
    """The document alone; engines are rendered by another format."""

    slug = "router"
    sentence = "The pool document as a Secret, for routers that the control plane cannot reach."

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """One immutable Secret. Raises RenderRefusedError without a document, or a large one."""
        if not layout.document:
            raise RenderRefusedError(
                "document",
                f"No document of pool {layout.pool} is published yet. Give the pool an endpoint.",
            )
        if len(layout.document) > MOST_BYTES:
            raise RenderRefusedError(
                "document",
                f"The document of pool {layout.pool} has {len(layout.document)} bytes and a Secret "
                f"holds {MOST_BYTES}. Let its routers be reached by the control plane.",
            )
        name = with_hash(f"{layout.pool}-document", layout.document.decode())
        return [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=name),
                "type": "Opaque",
                "immutable": True,
                "data": {"document.json": base64.b64encode(layout.document).decode()},
            }
        ]


RENDERER: Renderer = Router()
