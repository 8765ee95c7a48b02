"""How long a session counts, by strategy."""

import msgspec
import pytest

from routing.core.session_affinity import SessionParameters
from tests.routing.contexts import make_context


def test_parameters_are_upstreams() -> None:
    plugin = msgspec.convert(
        {"strategy": "session_id", "sessionIdConfig": {"sources": [{"header": "x-session-id"}]}},
        SessionParameters,
    )

    assert plugin.session_id_config.eviction_ttl_seconds == 300
    assert plugin.row(make_context(3, session=1)) == 1


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="strategy"):
        msgspec.convert({"strategy": "cookie"}, SessionParameters)
