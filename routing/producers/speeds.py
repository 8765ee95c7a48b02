"""Learned speeds per endpoint and phase, from what the router sees anyway.

Prefill: `seconds until the prompt is computed = f0 * tokens * seconds per token + f1 * step`, where
the tokens are the work ahead in the queue at arrival plus the request's own uncached tokens, and
the step is the learned one.
Decode: `time per output token = f0 * step + f1 * per-sequence * n + f2 * per-context-token * c`,
with the mean concurrency and context over the request's life, less the prefill work mixed in.

The prior is the class's figure in the document. A class learns from all its endpoints, an endpoint
starts from what its class has learned and then learns for itself.
"""

from dataclasses import dataclass
from typing import Any

from routing.core.document import SpeedPrior
from routing.core.lease import Lease
from routing.core.least_squares import RelativeLeastSquares
from routing.core.table import EndpointTable, Instance

MIN_OUTPUT_TOKENS = 8
"""A shorter output says more about chunking of the stream than about the step time."""
_PREFILL_FACTORS, _DECODE_FACTORS = 2, 3


class _Estimates:
    """Both phases of one endpoint or one class."""

    def __init__(self, *, like: "_Estimates | None" = None) -> None:
        self.prefill = RelativeLeastSquares(_PREFILL_FACTORS)
        self.decode = RelativeLeastSquares(_DECODE_FACTORS)
        if like is not None:
            self.prefill.start_from(like.prefill)
            self.decode.start_from(like.decode)


@dataclass(frozen=True, slots=True)
class _Observation:
    parts: tuple[float, ...]
    seconds: float


class LearnedSpeeds:
    """Fills the speed columns of the table; forgets an instance when it is gone."""

    def __init__(self, priors: dict[str, SpeedPrior]) -> None:
        self._priors = priors
        self._of_class: dict[str, _Estimates] = {}
        self._of_instance: dict[Instance, _Estimates] = {}
        self.error: dict[str, float] = {}
        """Mean absolute relative error of predicted times by phase, exponentially weighted."""

    def install(self, table: EndpointTable, priors: dict[str, SpeedPrior]) -> None:
        """Take a document's priors; factors stay, they are relative. Fills all rows."""
        self._priors = priors
        self._of_instance = {
            instance: estimates
            for instance, estimates in self._of_instance.items()
            if instance.is_alive
        }
        self._of_class = {
            name: estimates for name, estimates in self._of_class.items() if name in priors
        }
        for instance in table.instances:
            self._fill(table, instance)

    def forget(self, table: EndpointTable) -> None:
        """Back to the class priors."""
        self._of_class.clear()
        self._of_instance.clear()
        self.error.clear()
        for instance in table.instances:
            self._fill(table, instance)

    def observe_prefill(
        self, table: EndpointTable, lease: Lease, *, computed_tokens: int, seconds: float
    ) -> None:
        """A prompt took `seconds` from sending to computed; its queue is in `lease.at_begin`."""
        instance = lease.prompt_instance
        if not instance.is_alive or lease.at_begin.get("admission", 0.0) > 0 or seconds <= 0:
            # A wait for memory says nothing about the speed of prefill.
            return
        prior = self._priors[instance.spec.speed_class]
        load = lease.at_begin
        tokens = load["prefill_tokens"] + max(1, computed_tokens)
        # The step as learned by decoding: the second factor counts steps, not their length.
        row, sequences = instance.row, load["sequences"] + load["others"]
        step = (
            table.step_seconds[row]
            + table.step_seconds_per_sequence[row] * sequences
            + table.step_seconds_per_context_token[row] * load["context_tokens"]
        )
        parts = (tokens / prior.prefill_tokens_per_second, float(step))
        self._learn(table, instance, "prefill", _Observation(parts, seconds))

    def observe_decode(
        self, table: EndpointTable, lease: Lease, *, output_tokens: int, now: float
    ) -> None:
        """The output took from the first token until `now`; concurrency is read from integrals."""
        instance, first = lease.destination, lease.first_token_at
        if first is None or not instance.is_alive or output_tokens < MIN_OUTPUT_TOKENS:
            return
        elapsed = now - first
        if elapsed <= 0:
            return
        row, before = instance.row, lease.at_first_token
        prior = self._priors[instance.spec.speed_class]
        others = lease.at_begin["others"] if lease.prefill is None else float(table.others[row])
        sequences = (float(table.sequence_integral[row]) - before["sequence"]) / elapsed
        context = (float(table.context_integral[row]) - before["context"]) / elapsed
        mixed_in = float(table.prefill_done_tokens[row]) - before["prefill_done"]
        stalled = mixed_in * float(table.prefill_seconds_per_token[row])
        steps = output_tokens - 1
        seconds = max(elapsed - stalled, 0.2 * elapsed) / steps
        typical = context / sequences if sequences > 0 else 0.0
        parts = _step(prior, sequences + others, context + others * typical)
        self._learn(table, instance, "decode", _Observation(parts, seconds))

    def _learn(
        self, table: EndpointTable, instance: Instance, phase: str, seen: _Observation
    ) -> None:
        shared = self._of_class.setdefault(instance.spec.speed_class, _Estimates())
        own = self._of_instance.get(instance)
        if own is None:
            own = self._of_instance[instance] = _Estimates(like=shared)
        estimate: RelativeLeastSquares = getattr(own, phase)
        pairs = zip(seen.parts, estimate.factors, strict=True)
        self._count_error(phase, sum(part * factor for part, factor in pairs), seen.seconds)
        estimate.update(seen.parts, seen.seconds)
        of_class: RelativeLeastSquares = getattr(shared, phase)
        of_class.update(seen.parts, seen.seconds)
        self._fill(table, instance)
        if of_class.samples.bit_count() == 1:
            # At 1, 2, 4, 8 ... samples: endpoints without samples of their own follow the class.
            self._fill_followers(table, instance.spec.speed_class)

    def _count_error(self, phase: str, predicted: float, seen: float) -> None:
        error = abs(predicted - seen) / seen
        known = self.error.get(phase, error)
        self.error[phase] = known + 0.02 * (error - known)

    def _fill_followers(self, table: EndpointTable, speed_class: str) -> None:
        for instance in table.instances:
            if instance.spec.speed_class == speed_class and instance not in self._of_instance:
                self._fill(table, instance)

    def _fill(self, table: EndpointTable, instance: Instance) -> None:
        row, prior = instance.row, self._priors[instance.spec.speed_class]
        estimates = self._estimates(instance)
        prefill = estimates.prefill.factors if estimates else [1.0] * _PREFILL_FACTORS
        decode = estimates.decode.factors if estimates else [1.0] * _DECODE_FACTORS
        table.prefill_seconds_per_token[row] = prefill[0] / prior.prefill_tokens_per_second
        table.first_step_factor[row] = prefill[1]
        table.step_seconds[row] = decode[0] * prior.step_seconds
        table.step_seconds_per_sequence[row] = decode[1] * prior.step_seconds_per_sequence
        table.step_seconds_per_context_token[row] = decode[2] * prior.step_seconds_per_context_token

    def _estimates(self, instance: Instance) -> _Estimates | None:
        return self._of_instance.get(instance) or self._of_class.get(instance.spec.speed_class)

    def samples(self, instance: Instance) -> dict[str, int]:
        """How many observations of its own an endpoint has, by phase."""
        own = self._of_instance.get(instance)
        return {
            "prefill": own.prefill.samples if own else 0,
            "decode": own.decode.samples if own else 0,
        }

    def source(self, instance: Instance) -> str:
        """Where an endpoint's figures come from: endpoint, class or prior."""
        if instance in self._of_instance:
            return "endpoint"
        return "class" if instance.spec.speed_class in self._of_class else "prior"

    def describe(self, table: EndpointTable, instance: Instance) -> dict[str, Any]:
        """Speeds with variance and sample count, for the snapshot."""
        row, estimates, samples = instance.row, self._estimates(instance), self.samples(instance)
        return {
            "source": self.source(instance),
            "prefill": {
                "tokens_per_second": 1.0 / float(table.prefill_seconds_per_token[row]),
                "factors": estimates.prefill.factors if estimates else None,
                "variances": estimates.prefill.variances if estimates else None,
                "samples": samples["prefill"],
            },
            "decode": {
                "step_seconds": float(table.step_seconds[row]),
                "step_seconds_per_sequence": float(table.step_seconds_per_sequence[row]),
                "step_seconds_per_context_token": float(table.step_seconds_per_context_token[row]),
                "factors": estimates.decode.factors if estimates else None,
                "variances": estimates.decode.variances if estimates else None,
                "samples": samples["decode"],
            },
        }


def _step(prior: SpeedPrior, sequences: float, context: float) -> tuple[float, float, float]:
    return (
        prior.step_seconds,
        prior.step_seconds_per_sequence * sequences,
        prior.step_seconds_per_context_token * context,
    )
