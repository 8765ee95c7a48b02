"""KV events in the form of vLLM 0.32: a batch is an array, its events are maps. No sockets here."""

from collections.abc import Sequence as Items
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.testbed.sequence import Sequence

# vLLM says GPU on every accelerator.
MEDIUM = "GPU"


class EventLog:
    """Events of the steps since the caller took them last."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._adapters: dict[str, int] = {}

    def take(self) -> list[dict[str, Any]]:
        """The events so far, in order; the log is empty afterwards."""
        events, self._events = self._events, []
        return events

    def stored(self, sequence: "Sequence", blocks: Items[int], block_size: int) -> None:
        """Blocks of a sequence (indices, ascending) became findable; one event per unbroken run."""
        start = 0
        for end in range(1, len(blocks) + 1):
            if end == len(blocks) or blocks[end] != blocks[end - 1] + 1:
                self._stored_run(sequence, blocks[start:end], block_size)
                start = end

    def removed(self, keys: Items[int]) -> None:
        """Blocks were evicted: an event each, as vLLM sends them."""
        self._events.extend(
            {"type": "BlockRemoved", "block_hashes": [key], "medium": MEDIUM, "group_idx": 0}
            for key in keys
        )

    def cleared(self) -> None:
        """The whole cache was dropped. What was stored before in the same step is void."""
        self._events = [{"type": "AllBlocksCleared"}]

    def _adapter_id(self, name: str) -> int:
        """Counted from 1 in the order in which adapters were used."""
        return self._adapters.setdefault(name, len(self._adapters) + 1)

    def _stored_run(self, sequence: "Sequence", run: Items[int], block_size: int) -> None:
        first, last = run[0], run[-1]
        # An adapter stands on every block, a cache salt on the first of a chain only.
        adapter = sequence.adapter
        extra = [None if adapter is None else [adapter] for _ in run]
        if first == 0 and sequence.salt is not None:
            extra[0] = [*(extra[0] or []), sequence.salt]
        self._events.append(
            {
                "type": "BlockStored",
                "block_hashes": sequence.keys[first : last + 1].tolist(),
                "parent_block_hash": sequence.keys[first - 1] if first else None,
                "token_ids": sequence.tokens[first * block_size : (last + 1) * block_size].tolist(),
                "block_size": block_size,
                "lora_id": None if adapter is None else self._adapter_id(adapter),
                "medium": MEDIUM,
                "lora_name": adapter,
                "extra_keys": extra,
                "group_idx": 0,
                "kv_cache_spec_kind": "full_attention",
            }
        )
