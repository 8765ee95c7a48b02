"""Step times and sizes of a simulated engine, read from `profiles.yaml`.

The step of an engine takes (simulation page, section 2)

    step + experts * (1 - (1 - k/E) ** decoding)
         + per_sequence * decoding + per_context * context tokens of the decoding
         + FLOPs of the prefill chunks / (peak * MFU)

The second term is of models with E experts of which a token takes k: a step reads those that
anyone's token takes. In prefill all are read; that is in the MFU. Measured classes carry fitted
numbers (`routing.simulator.calibration`); others get them from the card's roofline and are
estimates. A replica on two cards is a class of its own (`-tp2`), with what both have together.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("profiles.yaml")

WEIGHT_BANDWIDTH_SHARE = 0.8
KV_BANDWIDTH_SHARE = 0.5
SECONDS_PER_LAYER = 32e-6
MEMORY_SHARE = 0.85


class ProfileError(Exception):
    """An accelerator or model is not in `profiles.yaml`."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Speeds of one engine. Seconds and tokens; bytes per second for links."""

    accelerator: str
    model: str
    step_seconds: float
    step_seconds_per_sequence: float
    step_seconds_per_context_token: float
    prefill_seconds_per_token: float
    prefill_seconds_per_token_and_context: float
    request_overhead_seconds: float
    kv_tokens: int
    kv_bytes_per_token: int
    max_model_len: int
    max_num_batched_tokens: int
    link_bytes_per_second: float
    """What a transfer of KV sees: staged through host memory."""
    wire_bytes_per_second: float
    """What the network moves, one direction."""
    transfer_setup_seconds: float
    estimate: bool
    """True when the speeds follow from a roofline and not from measured runs."""
    step_seconds_of_experts: float = 0.0
    """To read all experts once; 0 for dense models."""
    untouched_share: float = 1.0
    """Of the experts, those that one token does not take."""

    def slower(self, factor: float) -> "Profile":
        """The same engine when every duration takes `factor` times as long."""
        return replace(
            self,
            step_seconds=self.step_seconds * factor,
            step_seconds_of_experts=self.step_seconds_of_experts * factor,
            step_seconds_per_sequence=self.step_seconds_per_sequence * factor,
            step_seconds_per_context_token=self.step_seconds_per_context_token * factor,
            prefill_seconds_per_token=self.prefill_seconds_per_token * factor,
            prefill_seconds_per_token_and_context=self.prefill_seconds_per_token_and_context
            * factor,
            request_overhead_seconds=self.request_overhead_seconds * factor,
            transfer_setup_seconds=self.transfer_setup_seconds * factor,
            link_bytes_per_second=self.link_bytes_per_second / factor,
            wire_bytes_per_second=self.wire_bytes_per_second / factor,
        )

    def prefill_seconds(self, tokens: int, context: int) -> float:
        """Time to compute `tokens` of a prompt after `context` tokens that are there already."""
        attended = tokens * (context + tokens / 2)
        return (
            self.prefill_seconds_per_token * tokens
            + self.prefill_seconds_per_token_and_context * attended
        )

    def decode_seconds(self, sequences: int, context_tokens: int) -> float:
        """Time of a step that adds a token to each sequence; `context_tokens` is their sum."""
        return (
            self.step_seconds
            + self.step_seconds_of_experts * (1.0 - self.untouched_share**sequences)
            + self.step_seconds_per_sequence * sequences
            + self.step_seconds_per_context_token * context_tokens
        )


@lru_cache(maxsize=1)
def _load() -> dict[str, Any]:
    # Imported here, because engines need it once and it costs more than starting a loop.
    import yaml

    with _FILE.open("rb") as file:
        data: dict[str, Any] = yaml.safe_load(file)
    return data


def load_figures(accelerator: str, model: str) -> tuple[dict[str, float], dict[str, float]]:
    """Data sheet figures of a card and of a model. Raises ProfileError naming what is known."""
    data = _load()
    card = _known(data["accelerators"], "accelerator", accelerator)
    return card, _known(data["models"], "model", model)


@lru_cache(maxsize=256)
def load_profile(accelerator: str, model: str) -> Profile:
    """The profile of an accelerator and a model. Raises ProfileError naming what is known."""
    return _profile(accelerator, model, _given(accelerator, model))


def load_unfitted(accelerator: str, model: str) -> Profile:
    """What is known without our fits: data sheets, and what was measured. Raises ProfileError."""
    given = _given(accelerator, model)
    kept = {name: one for name, one in given.items() if one.get("confidence") != "fitted"}
    return _profile(accelerator, model, kept)


def _given(accelerator: str, model: str) -> dict[str, dict[str, Any]]:
    return _load()["profiles"].get(f"{accelerator}/{model}") or {}


def _profile(accelerator: str, model: str, given: dict[str, dict[str, Any]]) -> Profile:
    card, shape = load_figures(accelerator, model)
    values = _values(_load()["defaults"]) | _roofline(card, shape) | _values(given)
    flops_per_second = card["peak_tflops"] * 1e12 * values["mfu"]
    return Profile(
        accelerator=accelerator,
        model=model,
        step_seconds=values["step_seconds"],
        step_seconds_per_sequence=values["step_seconds_per_sequence"],
        step_seconds_per_context_token=values["step_seconds_per_context_token"],
        prefill_seconds_per_token=shape["flops_per_token"] / flops_per_second,
        prefill_seconds_per_token_and_context=shape["attention_flops_per_token_and_context"]
        / flops_per_second,
        request_overhead_seconds=values["request_overhead_seconds"],
        kv_tokens=int(values["kv_tokens"]),
        kv_bytes_per_token=int(shape["kv_bytes_per_token"]),
        max_model_len=int(shape["max_model_len"]),
        max_num_batched_tokens=int(values["max_num_batched_tokens"]),
        # Every simulated engine declares the transport host-staged.
        link_bytes_per_second=card["link_gb_s"] * 1e9 * values["staging_share"],
        wire_bytes_per_second=card["link_gb_s"] * 1e9,
        transfer_setup_seconds=values["transfer_setup_seconds"],
        estimate="step_seconds" not in given,
        step_seconds_of_experts=values["step_seconds_of_experts"],
        untouched_share=1.0 - shape.get("experts_per_token", 0.0) / shape.get("experts", 1.0),
    )


def _roofline(card: dict[str, float], shape: dict[str, float]) -> dict[str, float]:
    bandwidth = card["bandwidth_tb_s"] * 1e12
    weights, kv = shape["weight_bytes"], shape["kv_bytes_per_token"]
    experts = shape.get("expert_bytes", 0.0)
    memory = card["memory_gb"] * 1e9 * MEMORY_SHARE
    return {
        "step_seconds": (weights - experts) / (bandwidth * WEIGHT_BANDWIDTH_SHARE)
        + shape["layers"] * SECONDS_PER_LAYER,
        "step_seconds_of_experts": experts / (bandwidth * WEIGHT_BANDWIDTH_SHARE),
        "step_seconds_per_context_token": kv / (bandwidth * KV_BANDWIDTH_SHARE),
        "kv_tokens": max(0.0, (memory - weights) / kv),
    }


def _known(table: dict[str, Any], what: str, name: str) -> dict[str, float]:
    if name not in table:
        raise ProfileError(
            f"No profile for {what} '{name}'. Known are: {', '.join(sorted(table))}."
        )
    return _values(table[name])


def _values(entries: dict[str, dict[str, Any]]) -> dict[str, float]:
    # YAML 1.1 reads 16.76e9 as text, because it wants a sign in the exponent.
    return {name: float(entry["value"]) for name, entry in entries.items()}
