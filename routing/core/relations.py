"""What types alone cannot say of a document: names are unique, and what is named exists."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from routing.core.refusals import DocumentError

if TYPE_CHECKING:
    from routing.core.document import PoolDocument
    from routing.core.specs.endpoints import EndpointSpec
    from routing.core.specs.gateway import Rewrite

_PROTOCOLS = {"vllm": "nixl", "sglang": "sglang"}


def check_relations(document: "PoolDocument") -> None:
    """What types alone cannot say: ids are unique, and what is named exists."""
    _unique("/endpoints", "id", [endpoint.id for endpoint in document.endpoints])
    _unique("/endpoints", "url", [_address(endpoint) for endpoint in document.endpoints])
    _unique("/models", "name", [model.name for model in document.models])
    _unique("/keys", "sha256", [key.sha256 for key in document.keys])
    _unique("/tenants", "tenant", [tenant.tenant for tenant in document.tenants])
    classes = tuple(sorted(document.speed_classes))
    for position, endpoint in enumerate(document.endpoints):
        _check_url(f"/endpoints/{position}/url", endpoint.url)
        if endpoint.speed_class not in document.speed_classes:
            raise DocumentError(
                f"/endpoints/{position}/speed_class",
                f"Speed class '{endpoint.speed_class}' is not among speed_classes.",
                classes,
            )
        if document.role_mode == "unified" and endpoint.role != "both":
            raise DocumentError(
                f"/endpoints/{position}/role",
                f"A unified pool has endpoints of role 'both' only; this one is '{endpoint.role}'.",
                ("both",),
            )
    _check_protocol(document)
    identity = document.prompt_identity
    if identity.mode == "tokens" and identity.tokenizer is None:
        raise DocumentError(
            "/prompt_identity/tokenizer",
            "Mode 'tokens' needs the name of a folder with tokenizer files.",
        )
    names = {model.name for model in document.models}
    check_rewrites(document.rewrites, names)
    for position, model in enumerate(document.models):
        if model.adapter_of is not None and model.adapter_of not in names:
            raise DocumentError(
                f"/models/{position}/adapter_of",
                f"Base model '{model.adapter_of}' is not among the models.",
                tuple(sorted(names)),
            )


def check_rewrites(rewrites: "tuple[Rewrite, ...]", models: set[str]) -> None:
    """Targets are models, each once in a rule, and all of them have a weight or none has.

    Raises DocumentError.
    """
    for position, rule in enumerate(rewrites):
        pointer = f"/rewrites/{position}/targets"
        targets = rule.targets
        _unique(pointer, "model", [target.model for target in targets])
        for place, target in enumerate(targets):
            if target.model not in models:
                raise DocumentError(
                    f"{pointer}/{place}/model",
                    f"The target '{target.model}' is not among the models.",
                    tuple(sorted(models)),
                )
        if len({target.weight is None for target in targets}) > 1:
            raise DocumentError(pointer, "All targets of a rule have a weight, or none has.")


def _check_protocol(document: "PoolDocument") -> None:
    """The ends of a pair speak the protocol of their engine and no other one."""
    if document.role_mode == "unified":
        return
    protocol = document.disaggregation.protocol
    for endpoint in document.endpoints:
        spoken = _PROTOCOLS[endpoint.engine]
        if endpoint.role != "both" and spoken != protocol:
            raise DocumentError(
                "/disaggregation/protocol",
                f"Endpoint '{endpoint.id}' runs {endpoint.engine}, whose pairs speak '{spoken}'"
                f" and not '{protocol}'.",
                (spoken,),
            )


def _check_url(pointer: str, url: str) -> None:
    """A host and perhaps a port: what a connection needs, and nothing that would be ignored."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.username is not None or parts.query or parts.fragment:
        raise DocumentError(
            pointer, f"'{url}' is no address of an engine.", ("http://HOST", "http://HOST:1-65535")
        )


def _unique(pointer: str, field: str, values: list[str]) -> None:
    seen: dict[str, int] = {}
    for position, value in enumerate(values):
        if value in seen:
            raise DocumentError(
                f"{pointer}/{position}/{field}",
                f"'{value}' stands at position {seen[value]} already; each {field} is used once.",
            )
        seen[value] = position


def _address(endpoint: "EndpointSpec") -> str:
    """Ranks behind one address are endpoints of their own."""
    rank = endpoint.data_parallel_rank
    return endpoint.url if rank is None else f"{endpoint.url} rank {rank}"
