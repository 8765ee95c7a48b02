"""Adapters that a vLLM server has: those in use from its metrics, those loaded from its models.

Written against vLLM 0.32.0. `vllm:lora_requests_info` is one series per set of labels it ever had,
its value the time at which that set was true: the newest one counts, of each engine core. An empty
string means none. It names adapters in use only; an idle one is found in `/v1/models`, as an entry
with a parent, and in newer releases in `vllm:lora_adapter_loaded` (not verified by us).
"""

from collections.abc import Iterable

import msgspec

from routing.core.adapters import Adapters
from routing.core.metrics_page import labels_of, series

MOST_ADAPTERS = 1000
"""Names beyond these are not read: a page may be hostile."""


class _Model(msgspec.Struct):
    id: str
    parent: str | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


_MODELS = msgspec.json.Decoder(_Models)


def adapters_of(page: bytes) -> Adapters | None:
    """Adapters in use, over all engine cores; `None` when the page does not mention any."""
    newest: dict[bytes, tuple[float, dict[bytes, bytes]]] = {}
    for head, at in series(page, b"vllm:lora_requests_info"):
        labels = labels_of(head)
        core = labels.get(b"engine", b"")
        if core not in newest or at > newest[core][0]:
            newest[core] = (at, labels)
    loaded = _loaded(page)
    if not newest and not loaded:
        return None
    sets = [labels for _, labels in newest.values()]
    limits = [int(text) for labels in sets if (text := labels.get(b"max_lora", b"")).isdigit()]
    return Adapters(
        running=_union(labels.get(b"running_lora_adapters", b"") for labels in sets),
        waiting=_union(labels.get(b"waiting_lora_adapters", b"") for labels in sets),
        loaded=loaded,
        most=min(limits, default=None),
    )


def resident_adapters(models: bytes) -> frozenset[str] | None:
    """Adapters in an answer of `/v1/models`: loaded, used or not; `None` when it is no such answer.

    Without `--enable-lora` there is no entry with a parent, so the set is empty.
    """
    try:
        found = _MODELS.decode(models).data
    except msgspec.DecodeError:
        return None
    return frozenset(entry.id for entry in found[:MOST_ADAPTERS] if entry.parent)


def _loaded(page: bytes) -> frozenset[str]:
    found = series(page, b"vllm:lora_adapter_loaded")[:MOST_ADAPTERS]
    return _union(labels_of(head).get(b"adapter_name", b"") for head, value in found if value > 0)


def _union(texts: Iterable[bytes]) -> frozenset[str]:
    names = [name.strip() for text in texts for name in text.decode(errors="replace").split(",")]
    return frozenset([name for name in names if name][:MOST_ADAPTERS])
