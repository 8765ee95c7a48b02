"""Parameters that `session-affinity-scorer` and `session-affinity-filter` share.

`strategy` `session_id` remembers sessions for `sessionIdConfig.evictionTtlSeconds` (300). The
default strategy upstream hands the client a token that names the endpoint; here the router
remembers instead, which does the same as long as one router sees the session. Which headers name a
session is fixed by the router, so `sources` and header names are read and have no effect.
"""

from typing import Annotated, Any, Literal

import msgspec

from routing.core.scoring import Context, PluginParameters


class SessionIdConfig(PluginParameters, frozen=True, kw_only=True):
    """How long a session is remembered."""

    sources: tuple[dict[str, Any], ...] = ()
    eviction_ttl_seconds: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    eviction_sweep_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0


class EncodedEndpointHeaderConfig(PluginParameters, frozen=True, kw_only=True):
    """Upstream's header."""

    header: str = "x-session-token"


class SessionParameters(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    strategy: Literal["encoded_endpoint_header", "session_id"] = "encoded_endpoint_header"
    encoded_endpoint_header_config: EncodedEndpointHeaderConfig = EncodedEndpointHeaderConfig()
    session_id_config: SessionIdConfig = SessionIdConfig()
    profile_name: str = ""

    def row(self, context: Context) -> int:
        """Row that had the session's last request; -1 when nobody did or it is too long ago."""
        is_bounded = self.strategy == "session_id"
        seconds = self.session_id_config.eviction_ttl_seconds if is_bounded else float("inf")
        return context.memory.session_row(context, seconds)
