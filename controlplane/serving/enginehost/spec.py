"""What may be asked of the engine host: which programs, which variables, how long."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("python", "-m", "routing.testbed.engine"),
    ("python", "-m", "sglang.launch_server"),
    ("vllm", "serve"),
)
"""Programs that may be started, by their first words. `python` is the host's own interpreter."""

ENVIRONMENT = re.compile(r"^(CUDA|HIP|ROCR|HABANA|ASCEND|RBLN|VLLM|SGLANG|NCCL|UCX|HF)_[A-Z0-9_]+$")
NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]{0,118}[a-z0-9])?$")
SPEC_HASH = re.compile(r"^[0-9a-f]{16,64}$")
MAX_ARGUMENTS = 200
MAX_TEXT = 4096


class SpecError(Exception):
    """A request was refused; the message says which part and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """What should run under a name."""

    spec_hash: str
    generation: int
    fencing_token: int
    argv: tuple[str, ...]
    env: Mapping[str, str]


def prints_ready_line(argv: tuple[str, ...]) -> bool:
    """True for engines that say on their output which port they listen on."""
    return argv[:3] == ("python", "-m", "routing.testbed.engine")


def checked_name(name: str) -> str:
    """The name itself. Raises SpecError."""
    if not NAME.match(name):
        raise SpecError(
            f"Engine name {name!r} is not allowed; use lower-case letters, digits, dots and "
            "hyphens, at most 120."
        )
    return name


def parse_spec(body: Any) -> EngineSpec:
    """Read the body of a PUT. Raises SpecError with the field and what is allowed there."""
    if not isinstance(body, dict):
        raise SpecError("The body is a JSON object.")
    allowed = {"spec_hash", "generation", "fencing_token", "argv", "env"}
    unknown = sorted(set(body) - allowed)
    if unknown:
        raise SpecError(f"Unknown field '{unknown[0]}'; allowed: {', '.join(sorted(allowed))}.")
    spec_hash = body.get("spec_hash")
    if not isinstance(spec_hash, str) or not SPEC_HASH.match(spec_hash):
        raise SpecError("spec_hash is 16 to 64 hexadecimal digits.")
    return EngineSpec(
        spec_hash=spec_hash,
        generation=_count(body, "generation"),
        fencing_token=_count(body, "fencing_token"),
        argv=_argv(body.get("argv")),
        env=_env(body.get("env", {})),
    )


def _count(body: dict[str, Any], field: str) -> int:
    value = body.get(field)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SpecError(f"{field} is a whole number from 0.")
    return value


def _argv(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(_is_word(word) for word in value):
        raise SpecError(f"argv is a list of texts without NUL, each at most {MAX_TEXT} long.")
    if len(value) > MAX_ARGUMENTS:
        raise SpecError(f"argv has {len(value)} words; at most {MAX_ARGUMENTS} are allowed.")
    argv = tuple(value)
    if not any(argv[: len(program)] == program for program in PROGRAMS):
        allowed = "; ".join(" ".join(program) for program in PROGRAMS)
        raise SpecError(f"Program {' '.join(argv[:3])!r} is not allowed; allowed: {allowed}.")
    return argv


def _env(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise SpecError("env is an object of texts.")
    for name, text in value.items():
        if not ENVIRONMENT.match(name):
            raise SpecError(
                f"Variable {name!r} is not allowed; names start with CUDA_, HIP_, ROCR_, HABANA_, "
                "ASCEND_, RBLN_, VLLM_, SGLANG_, NCCL_, UCX_ or HF_."
            )
        if not _is_word(text):
            raise SpecError(f"env.{name} is a text without NUL, at most {MAX_TEXT} long.")
    return dict(value)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT and "\0" not in value
