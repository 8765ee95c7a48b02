"""Learned speeds per endpoint and phase, from what the router sees anyway.

`routing.core.speed_model` says how a time follows from work in parts; what is learned is a factor
for each part. Prefill is learned from the time until a prompt is computed, with the work that was
ahead of it; decoding from stretches of an output (not only from its end, which a long answer
reaches after minutes), with the mean concurrency and context over the stretch, less the prompts
that were computed in between. An answer that came at once teaches the sum of both.

Three levels: the class's prior from the document, what the class has learned from all its
endpoints, what an endpoint has learned. An endpoint starts from its class with a smaller
uncertainty, so that sisters are taken to be alike until they show that they are not.
"""

import math
import statistics
from dataclasses import dataclass
from typing import Any

from routing.core import speed_model
from routing.core.document import SpeedPrior
from routing.core.lease import Lease
from routing.core.least_squares import NOISE_VARIANCE, RelativeLeastSquares
from routing.core.speed_model import ATTENDED_SHARE, DECODE_FACTORS, PREFILL_FACTORS
from routing.core.table import EndpointTable, Instance

MIN_OUTPUT_TOKENS = 8
"""A shorter output says more about chunking of the stream than about the step time."""
STRETCH_TOKENS = 32
STRETCH_SECONDS = 0.25
"""Least length of a stretch of output, and least time between two of one endpoint."""
SETTLED_SAMPLES = 64
"""Of one endpoint; from there on whole answers are looked at as seldom as stretches."""
WHOLE_NOISE = 0.04
"""Relative variance of a whole answer's time for each of its phases."""
STALL_DOUBT = 0.5
"""Relative deviation of what prompts took of a stretch: whole prompts are booked when they end."""
COMPARE_SECONDS, COMPARED_SAMPLES = 10.0, 20
SLOW_FACTOR, SETTLED_FACTOR = 1.5, 1.3
"""Step time over the class's median at which an endpoint is a finding, and at which no more."""
CLASS_VARIANCE, SISTER_VARIANCE = 0.25, 0.09
"""How far a factor may be off: 50 % for a class against its prior, 30 % within a class."""
_WORK_PARTS = 3
"""Parts of a prefill that grow with its tokens; they come first."""
TOGETHER = 0.6
"""Share of that uncertainty which all factors of a phase have in common."""


class Estimates:
    """Both phases of one endpoint or one class."""

    __slots__ = ("decode", "prefill", "stretch_after")

    def __init__(self, *, like: "Estimates | None" = None) -> None:
        variance = CLASS_VARIANCE if like is None else SISTER_VARIANCE
        self.prefill = RelativeLeastSquares(PREFILL_FACTORS, variance=variance, together=TOGETHER)
        self.decode = RelativeLeastSquares(DECODE_FACTORS, variance=variance, together=TOGETHER)
        self.stretch_after = -math.inf
        """Earliest time at which another stretch is looked at."""
        if like is not None:
            self.prefill.start_from(like.prefill)
            self.decode.start_from(like.decode)

    def of(self, phase: str) -> RelativeLeastSquares:
        """One phase by name."""
        return self.prefill if phase == "prefill" else self.decode


@dataclass(frozen=True, slots=True)
class _Observation:
    parts: tuple[float, ...]
    seconds: float
    noise: float = NOISE_VARIANCE


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an endpoint's steps compare with those of its class."""

    factor: float
    sisters: int

    @property
    def is_slow(self) -> bool:
        """Slow enough to be told."""
        return self.factor >= SLOW_FACTOR

    @property
    def is_fine(self) -> bool:
        """Far enough from it to be settled."""
        return self.factor < SETTLED_FACTOR

    def sentence(self) -> str:
        """For people."""
        others = "the other one" if self.sisters == 1 else f"the {self.sisters} others"
        return (
            f"Its decode steps take {self.factor:.1f} times as long as those of {others} of its "
            "class. It gets less work; look at its clocks, its cooling and its neighbours."
        )


class LearnedSpeeds:
    """Fills the speed columns of the table; forgets an instance when it is gone."""

    def __init__(self, priors: dict[str, SpeedPrior]) -> None:
        self._priors = priors
        self.of_class: dict[str, Estimates] = {}
        self.of_instance: dict[Instance, Estimates] = {}
        self.error: dict[str, float] = {}
        """Mean absolute relative error of the model by phase, exponentially weighted."""
        self._compare_at = -math.inf

    def install(self, table: EndpointTable, priors: dict[str, SpeedPrior]) -> None:
        """Take a document's priors; factors stay, they are relative. Fills all rows."""
        self._priors = priors
        self.of_instance = {
            instance: estimates
            for instance, estimates in self.of_instance.items()
            if instance.is_alive
        }
        self.of_class = {
            name: estimates for name, estimates in self.of_class.items() if name in priors
        }
        self.fill(table)

    def fill(self, table: EndpointTable) -> None:
        """Write all rows."""
        for instance in table.instances:
            self._fill(table, instance)

    def forget(self, table: EndpointTable) -> None:
        """Back to the class priors."""
        self.of_class.clear()
        self.of_instance.clear()
        self.error.clear()
        self.fill(table)

    def observe_prefill(
        self, table: EndpointTable, lease: Lease, *, computed_tokens: int, seconds: float
    ) -> None:
        """A prompt took `seconds` from sending to computed; its queue is in `lease.at_begin`."""
        instance = lease.prompt_instance
        if not instance.is_alive or lease.at_begin.get("admission", 0.0) > 0 or seconds <= 0:
            # A wait for memory says nothing about the speed of prefill.
            return
        parts = self._prefill_parts(table, lease, computed_tokens)
        seconds += self._done_ahead(lease, parts, computed_tokens)
        self._learn(table, instance, "prefill", _Observation(parts, seconds))

    def _done_ahead(self, lease: Lease, parts: tuple[float, ...], computed_tokens: int) -> float:
        """Seconds that the prompt at work had been computed when this one came.

        What is ahead counts all of it, so its time has to count, as a price has it.
        """
        load, own = lease.at_begin, max(1, computed_tokens)
        ahead, moving = load["prefill_tokens"], load.get("moving", 0.0)
        if moving <= 0 or ahead <= 0:
            return 0.0
        factors = self._factors(lease.prompt_instance, "prefill")
        whole = _sum(parts[:_WORK_PARTS], factors[:_WORK_PARTS])
        first = max(load.get("head", 0.0), ahead / load["prefill_requests"])
        return min(moving, whole * min(first, ahead) / (own + ahead))

    def _prefill_parts(
        self, table: EndpointTable, lease: Lease, computed_tokens: int
    ) -> tuple[float, ...]:
        instance, load = lease.prompt_instance, lease.at_begin
        own, ahead = max(1, computed_tokens), load["prefill_tokens"]
        # What is ahead attends to its own prompts, of which only the mean length is known.
        prompt = lease.request.parsed.prompt_tokens
        context = (own * (prompt - own / 2) + ahead * prompt / 2) / (own + ahead)
        # The step as learned by decoding: factors count steps, not their length.
        row, sequences = instance.row, load["sequences"] + load["others"]
        step = (
            table.step_seconds[row]
            + table.step_seconds_per_sequence[row] * sequences
            + table.step_seconds_per_context_token[row] * load["context_tokens"]
        )
        prior = self._priors[instance.spec.speed_class]
        return speed_model.prefill_parts(
            prior, tokens=own + ahead, context=max(context, 0.0), step=float(step)
        )

    def is_due(self, lease: Lease, *, now: float) -> bool:
        """Whether a stretch of this output is worth a look."""
        own = self.of_instance.get(lease.destination)
        return own is None or now >= own.stretch_after

    def observe_decode(
        self, table: EndpointTable, lease: Lease, *, output_tokens: float, now: float
    ) -> None:
        """`output_tokens` after the first of the stretch took until `now`.

        The stretch began at `lease.stretch_at` with the integrals `lease.at_first_token`.
        """
        instance, first = lease.destination, lease.stretch_at
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
        typical = context / sequences if sequences > 0 else 0.0
        stalled = mixed_in * seconds_per_stalled_token(table, row, context=typical)
        seconds = max(elapsed - stalled, 0.2 * elapsed) / output_tokens
        parts = speed_model.decode_parts(
            prior, sequences=sequences + others, context=context + others * typical
        )
        noise = NOISE_VARIANCE + (STALL_DOUBT * stalled / (seconds * output_tokens)) ** 2
        self._learn(table, instance, "decode", _Observation(parts, seconds, noise))
        self.of_instance[instance].stretch_after = now + STRETCH_SECONDS

    def observe_whole(
        self, table: EndpointTable, lease: Lease, *, computed_tokens: int, output_tokens: int,
        now: float,
    ) -> None:  # fmt: skip
        """An answer came as a whole: both phases are off by the same factor, as far as one knows.

        The split is that of the learned speeds, so a mistake of one phase is shared by both until
        streams, or answers of other lengths, tell them apart.
        """
        instance = lease.destination
        if not instance.is_alive or lease.at_begin.get("admission", 0.0) > 0:
            return
        own = self._start(instance)
        if own.decode.samples >= SETTLED_SAMPLES and now < own.stretch_after:
            # What is known is refined by a few answers a second as well as by all of them.
            return
        own.stretch_after = now + STRETCH_SECONDS
        prior = self._priors[instance.spec.speed_class]
        row, before, elapsed = instance.row, lease.at_begin, now - lease.began_at
        if elapsed <= 0 or output_tokens < 1:
            return
        sequences = (float(table.sequence_integral[row]) - before["sequence"]) / elapsed
        context = (float(table.context_integral[row]) - before["context"]) / elapsed
        decode = speed_model.decode_parts(
            prior, sequences=sequences + before["others"], context=context
        )
        prefill = self._prefill_parts(table, lease, computed_tokens)
        prompt_seconds = _sum(prefill, own.prefill.factors)
        step = _sum(decode, own.decode.factors)
        stretch = float(table.stretch[row])
        ratio = elapsed / (prompt_seconds + output_tokens * step * stretch)
        self._learn(table, instance, "decode", _Observation(decode, ratio * step, WHOLE_NOISE))
        self._learn(
            table, instance, "prefill", _Observation(prefill, ratio * prompt_seconds, WHOLE_NOISE)
        )

    def _start(self, instance: Instance) -> Estimates:
        name = instance.spec.speed_class
        shared = self.of_class.get(name)
        if shared is None:
            shared = self.of_class[name] = Estimates()
        own = self.of_instance.get(instance)
        if own is None:
            own = self.of_instance[instance] = Estimates(like=shared)
        return own

    def _learn(
        self, table: EndpointTable, instance: Instance, phase: str, seen: _Observation
    ) -> None:
        estimate = self._start(instance).of(phase)
        shared = self.of_class[instance.spec.speed_class].of(phase)
        if estimate.samples == 0:
            # The other phase may have made this endpoint's estimates before the class knew more.
            estimate.start_from(shared)
        self._count_error(phase, _sum(seen.parts, estimate.factors), seen.seconds)
        estimate.update(seen.parts, seen.seconds, noise=seen.noise)
        shared.update(seen.parts, seen.seconds, noise=seen.noise)
        self._fill(table, instance)
        if shared.samples.bit_count() == 1:
            # At 1, 2, 4, 8 ... samples: endpoints without samples of their own follow the class.
            self._fill_followers(table, instance.spec.speed_class)

    def _count_error(self, phase: str, predicted: float, seen: float) -> None:
        error = abs(predicted - seen) / seen
        known = self.error.get(phase, error)
        self.error[phase] = known + 0.02 * (error - known)

    def _fill_followers(self, table: EndpointTable, speed_class: str) -> None:
        for instance in table.instances:
            if instance.spec.speed_class == speed_class:
                self._fill(table, instance)

    def _fill(self, table: EndpointTable, instance: Instance) -> None:
        row, prior = instance.row, self._priors[instance.spec.speed_class]
        factors = [*self._factors(instance, "prefill"), *self._factors(instance, "decode")]
        values = zip(speed_model.COLUMNS, speed_model.coefficients(prior), factors, strict=True)
        for name, value, factor in values:
            getattr(table, name)[row] = value * factor

    def _factors(self, instance: Instance, phase: str) -> list[float]:
        estimate = self._estimate(instance, phase)
        size = PREFILL_FACTORS if phase == "prefill" else DECODE_FACTORS
        return [1.0] * size if estimate is None else estimate.factors

    def _estimate(self, instance: Instance, phase: str) -> RelativeLeastSquares | None:
        """The endpoint's own where it has samples, else its class's."""
        own = self.of_instance.get(instance)
        if own is not None and own.of(phase).samples:
            return own.of(phase)
        shared = self.of_class.get(instance.spec.speed_class)
        return None if shared is None else shared.of(phase)

    def compare(self, *, now: float) -> dict[Instance, Comparison]:
        """Endpoints against the median of their class; looked at every ten seconds."""
        if now < self._compare_at:
            return {}
        self._compare_at = now + COMPARE_SECONDS
        found: dict[Instance, Comparison] = {}
        by_class: dict[str, list[Instance]] = {}
        for instance, own in self.of_instance.items():
            if instance.is_alive and own.decode.samples >= COMPARED_SAMPLES:
                by_class.setdefault(instance.spec.speed_class, []).append(instance)
        for name, instances in by_class.items():
            steps = {one: self._typical_step(name, one) for one in instances}
            for instance in instances:
                sisters = [step for one, step in steps.items() if one is not instance]
                if sisters:
                    factor = steps[instance] / statistics.median(sisters)
                    found[instance] = Comparison(factor, len(sisters))
        return found

    def _typical_step(self, speed_class: str, instance: Instance) -> float:
        prior = self._priors[speed_class]
        parts = speed_model.decode_parts(prior, sequences=16.0, context=32_000.0)
        return _sum(parts, self.of_instance[instance].decode.factors)

    def samples(self, instance: Instance) -> dict[str, int]:
        """How many observations of its own an endpoint has, by phase."""
        own = self.of_instance.get(instance)
        return {
            "prefill": own.prefill.samples if own else 0,
            "decode": own.decode.samples if own else 0,
        }

    def source(self, instance: Instance) -> str:
        """Where an endpoint's figures come from: endpoint, class or prior."""
        if instance in self.of_instance:
            return "endpoint"
        return "class" if instance.spec.speed_class in self.of_class else "prior"

    def describe(self, table: EndpointTable, instance: Instance) -> dict[str, Any]:
        """Speeds with variance and sample count, for the snapshot."""
        row, samples = instance.row, self.samples(instance)

        def phase(name: str, **figures: Any) -> dict[str, Any]:
            estimate = self._estimate(instance, name)
            return figures | {
                "factors": estimate.factors if estimate else None,
                "variances": estimate.variances if estimate else None,
                "samples": samples[name],
            }

        linear = float(table.prefill_seconds_per_token[row])
        attention = float(table.prefill_seconds_per_token_and_context[row])
        return {
            "source": self.source(instance),
            "prefill": phase(
                "prefill",
                tokens_per_second=1.0 / (linear + attention * speed_model.REFERENCE_CONTEXT),
                steps_per_token=float(table.prefill_steps_per_token[row]),
                network_seconds=float(table.network_seconds[row]),
            ),
            "decode": phase(
                "decode",
                step_seconds=float(table.step_seconds[row]),
                step_seconds_per_sequence=float(table.step_seconds_per_sequence[row]),
                step_seconds_per_context_token=float(table.step_seconds_per_context_token[row]),
            ),
        }


def seconds_per_stalled_token(table: EndpointTable, row: int, *, context: float) -> float:
    """What each prompt token costs those who wait in the batch; `context` is a sequence's mean.

    Steps that chunks share with the batch are no stall: they make a token for everybody.
    """
    attention = float(table.prefill_seconds_per_token_and_context[row])
    return float(table.prefill_seconds_per_token[row]) + attention * context * ATTENDED_SHARE


def _sum(parts: tuple[float, ...], factors: list[float]) -> float:
    return sum(part * factor for part, factor in zip(parts, factors, strict=True))
