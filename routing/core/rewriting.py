"""Which model a request is sent to, when it asks for a name that a rule rewrites.

A rule with several targets is a canary that sticks: the choice is a hash of who asks, so the same
caller gets the same target from every router, in every process, after every restart. The parts are
those of the weights, and a changed weight moves only as many callers as it must: each target draws
a number u in (0, 1) for the caller, and the smallest -ln(u) / weight wins (weighted rendezvous
hashing; the smallest of exponential variables of rates w is the i-th with probability w_i / sum w).
"""

import hashlib
import math
from dataclasses import dataclass, field

from routing.core.document import ModelSpec, PoolDocument, Rewrite

_DRAWS = 2.0**64


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRules:
    """The rules of a document, by the name that is asked for."""

    named: dict[str, Rewrite] = field(default_factory=dict)
    every: Rewrite | None = None
    """For names without a rule of their own, also such that nobody serves."""
    aliases: tuple[ModelSpec, ...] = ()
    """Names that only a rule knows, as models; the context is the shortest of the targets."""

    @classmethod
    def of(cls, document: PoolDocument) -> "RewriteRules":
        """Sort the rules of a checked document."""
        named: dict[str, Rewrite] = {}
        every = None
        for rule in document.rewrites:
            for name in rule.models:
                named.setdefault(name, rule)
            if not rule.models and every is None:
                every = rule
        models = {model.name: model for model in document.models}
        aliases = tuple(
            _alias(name, rule, models) for name, rule in named.items() if name not in models
        )
        return cls(named=named, every=every, aliases=aliases)

    def rule_for(self, model: str) -> Rewrite | None:
        """The rule for a name that is asked for, if there is one."""
        return self.named.get(model, self.every)


def target_for(rule: Rewrite, caller: str) -> str:
    """Model that a rule sends a caller to; `caller` is who is to get the same model each time."""
    if len(rule.targets) == 1:
        return rule.targets[0].model
    drawn = min(
        rule.targets, key=lambda target: _exponential(caller, target.model) / (target.weight or 1)
    )
    return drawn.model


def _exponential(caller: str, model: str) -> float:
    """A number for the pair, exponentially distributed over callers with mean 1.

    A cryptographic hash, because callers choose their names: with a fast one somebody finds a name
    for the target that he wants.
    """
    text = f"{len(model)}:{model}{caller}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return -math.log((int.from_bytes(digest, "little") + 0.5) / _DRAWS)


def _alias(name: str, rule: Rewrite, models: dict[str, ModelSpec]) -> ModelSpec:
    shortest = min(models[target.model].max_model_len for target in rule.targets)
    return ModelSpec(name=name, max_model_len=shortest)
