"""What a simulated engine is started with."""

from dataclasses import dataclass
from typing import Literal

from routing.simulator.profiles import Profile, load_profile
from routing.testbed.scheduler import Limits

Role = Literal["prefill", "decode", "both"]
ROLES: tuple[Role, ...] = ("prefill", "decode", "both")
Flavor = Literal["vllm", "sglang"]
FLAVORS: tuple[Flavor, ...] = ("vllm", "sglang")
LoadFailurePolicy = Literal["recompute", "fail"]
LOAD_FAILURE_POLICIES: tuple[LoadFailurePolicy, ...] = ("recompute", "fail")

VLLM_VERSION = "0.32.0"


class SettingsError(Exception):
    """An engine was asked for something that does not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of one engine; `None` takes the profile's value."""

    model: str
    accelerator: str
    engine_id: str
    host: str = "127.0.0.1"
    port: int = 0
    role: Role = "both"
    flavor: Flavor = "vllm"
    """Whose metrics page and whose pairs it has."""
    speed: float = 1.0
    """Model seconds per second: above 1 everything happens faster."""
    slowdown: float = 1.0
    """How many times slower than its class this one card is."""
    block_size: int = 16
    kv_tokens: int | None = None
    max_num_seqs: int = 256
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    kv_events_port: int | None = None
    kv_replay_port: int | None = None
    side_channel_port: int = 0
    kv_hold_seconds: float = 30.0
    kv_load_failure_policy: LoadFailurePolicy = "recompute"
    prompt_tokens_details: bool = True
    stream_interval: int = 1
    """Tokens per event of a stream, after the first."""
    topic: str = ""
    adapters: tuple[str, ...] = ()
    """LoRA adapters that are loaded; each is a model of its own name."""

    def profile(self) -> Profile:
        """Speeds on the wall clock. Raises ProfileError or SettingsError."""
        if self.speed <= 0 or self.slowdown <= 0:
            raise SettingsError(
                f"speed is {self.speed} and slowdown {self.slowdown}; both must be above 0."
            )
        return load_profile(self.accelerator, self.model).slower(self.slowdown / self.speed)

    def limits(self, profile: Profile) -> Limits:
        """Sizes of the engine. Raises SettingsError when there is not room for one block."""
        blocks = (self.kv_tokens or profile.kv_tokens) // self.block_size
        if blocks < 1:
            raise SettingsError(
                f"{self.kv_tokens} KV tokens are less than one block of {self.block_size} tokens."
            )
        return Limits(
            block_size=self.block_size,
            blocks=blocks,
            sequences=self.max_num_seqs,
            batched_tokens=self.max_num_batched_tokens or profile.max_num_batched_tokens,
        )

    def context_limit(self, profile: Profile, limits: Limits) -> int:
        """Longest prompt plus answer: a lone sequence always fits into the cache."""
        wanted = self.max_model_len or profile.max_model_len
        return min(wanted, limits.blocks * limits.block_size)
