"""The model that a call is sent to, which may be another one than its caller named.

A header names the model to forward, else a rule of the pool does. Of the body the name is exchanged
and nothing else; answers tell the name that was asked for (see `routing.core.renaming`).
"""

from routing.core.document import KeySpec
from routing.core.rewriting import target_for
from routing.servers import wishes
from routing.servers.documents import LoadedPool
from routing.servers.errors import ApiError
from routing.servers.wishes import Headers

REWRITE_HEADERS = (b"x-llm-d-model-name-rewrite", b"x-gateway-model-name-rewrite")
"""The newer spelling wins."""


MOST_CHARACTERS = 200
"""Of a name, as in documents: a rule for every name lets callers choose what books will hold."""


def asked_model(headers: Headers, model: str) -> str:
    """The name by which pool and right of the key are found: of the header, else of the body.

    Raises ApiError for a name that no books could hold.
    """
    if len(model) > MOST_CHARACTERS or not model.isprintable():
        shown = ascii(model[:MOST_CHARACTERS])[1:-1]
        raise ApiError(404, f"The model `{shown}` does not exist.", param="model")
    return wishes.first(headers, REWRITE_HEADERS) or model


def served_model(
    pool: LoadedPool, key: KeySpec, headers: Headers, *, model: str, user: str | None
) -> str:
    """Model that an engine is to be asked for; `model` is the body's, `user` the body's member.

    Whoever asks in the same session, else with the same key, is sent to the same target.
    """
    named = wishes.first(headers, REWRITE_HEADERS)
    if named in pool.models:
        return named
    asked = named or model
    if pool.rewrites.rule_for(asked) is None:
        return model
    session = wishes.session_of(headers, key, pool=pool.document.pool, user=user)
    return model_of(pool, asked, caller=session or caller_of(key.tenant, key.id))


def caller_of(tenant: str, key_id: str) -> str:
    """Who asks without a session."""
    return f"{len(tenant)}:{tenant}{key_id}"


def model_of(pool: LoadedPool, asked: str, *, caller: str) -> str:
    """Model that a caller gets by the rules of a pool; the name that is asked for without one."""
    rule = pool.rewrites.rule_for(asked)
    return asked if rule is None else target_for(rule, caller)
