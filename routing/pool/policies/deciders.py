"""Profile handlers, and the deciders between a local prompt and a pair; llm-d's names.

- `single-profile-handler`: one profile, prompts are computed where they are decoded.
- `disagg-profile-handler` (old name `pd-profile-handler`): `profiles {decode, prefill}` names two
  profiles, `deciders {prefill}` the plugin that decides. With `stageOrder` `decode-first` (default)
  the prefill endpoint is chosen among those that can serve the destination, with `prefill-first`
  the other way round. The stage `encode` has no counterpart here.
- `always-disagg-pd-decider`: always a pair, where one is allowed.
- `prefix-based-pd-decider`: a pair when at least `nonCachedTokens` of the prompt are not in the
  destination's cache (0, the default, is never) and the prompt has at least `promptTokens` (0).
"""

from typing import Annotated, ClassVar, Literal

import msgspec

from routing.core.scoring import PluginParameters, PluginType

Tokens = Annotated[int, msgspec.Meta(ge=0)]


class AlwaysDecider(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "always-disagg-pd-decider"

    def wants_pair(self, *, prompt_tokens: int, cached_tokens: float) -> bool:
        """Whatever the request is."""
        del prompt_tokens, cached_tokens
        return True


class PrefixDecider(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "prefix-based-pd-decider"
    non_cached_tokens: Tokens = 0
    prompt_tokens: Tokens = 0

    def wants_pair(self, *, prompt_tokens: int, cached_tokens: float) -> bool:
        """Whether enough is missing in the destination's cache."""
        if self.non_cached_tokens == 0 or prompt_tokens < self.prompt_tokens:
            return False
        return prompt_tokens - cached_tokens >= self.non_cached_tokens


Decider = AlwaysDecider | PrefixDecider


class Stages(PluginParameters, frozen=True, kw_only=True):
    """Names of profiles by stage."""

    decode: str = "decode"
    prefill: str = "prefill"


class StageDeciders(PluginParameters, frozen=True, kw_only=True):
    """Names of deciders by stage; "" is never."""

    prefill: str = ""


class SingleProfileHandler(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "single-profile-handler"


class DisaggProfileHandler(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "disagg-profile-handler"
    stage_order: Literal["decode-first", "prefill-first"] = "decode-first"
    profiles: Stages = Stages()
    deciders: StageDeciders = StageDeciders()


HANDLERS: tuple[PluginType, ...] = (SingleProfileHandler, DisaggProfileHandler)
PLUGINS: tuple[PluginType, ...] = (*HANDLERS, AlwaysDecider, PrefixDecider)
