"""State words: each code has a glyph by shape, a word in the reader's language, and a tone."""

import re
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class Look(NamedTuple):
    """How a state is shown; the tone colours last, after glyph and word."""

    tone: str
    """Class beside `st`: ok, run, warn, bad, off or "" for plain text."""
    icon: str
    word: object


_LOOKS: dict[str, Look] = {
    # life of a node
    "planned": Look("off", "todo", _("planned")),
    "provisioning": Look("run", "run", _("provisioning")),
    "ready": Look("ok", "ok", _("ready")),
    "cordoned": Look("off", "lock", _("cordoned")),
    "draining": Look("run", "run", _("draining")),
    "maintenance": Look("off", "pause", _("maintenance")),
    "retired": Look("off", "none", _("retired")),
    # health
    "healthy": Look("ok", "ok", _("healthy")),
    "degraded": Look("warn", "part", _("degraded")),
    "failed": Look("bad", "bad", _("failed")),
    "unknown": Look("off", "unk", _("unknown")),
    # whether a model fits, and its files on nodes
    "fits": Look("ok", "ok", _("fits")),
    "tight": Look("warn", "part", _("tight")),
    "too_small": Look("bad", "bad", _("too small")),
    "not_divisible": Look("bad", "bad", _("not divisible")),
    "present": Look("ok", "ok", _("present")),
    "fetching": Look("run", "run", _("being fetched")),
    "checking": Look("run", "run", _("being checked")),
    "wrong": Look("bad", "bad", _("other files")),
    # endpoints and workloads
    "starting": Look("run", "run", _("starting")),
    "warming": Look("run", "run", _("warming")),
    "gone": Look("off", "none", _("gone")),
    "stopped": Look("off", "none", _("stopped")),
    "stopping": Look("run", "run", _("stopping")),
    "ending": Look("run", "run", _("ending")),
    "exited": Look("bad", "bad", _("exited")),
    # change plans, waves, operations
    "draft": Look("", "doc", _("draft")),
    "proposed": Look("", "wait", _("proposed")),
    "approved": Look("", "ok", _("approved")),
    "applying": Look("run", "run", _("applying")),
    "observing": Look("run", "run", _("observing")),
    "succeeded": Look("ok", "ok", _("succeeded")),
    "done": Look("ok", "ok", _("done")),
    "rolled_back": Look("warn", "warn", _("rolled back")),
    "rolling_back": Look("run", "back", _("rolling back")),
    "cancelled": Look("off", "none", _("cancelled")),
    "rejected": Look("off", "none", _("rejected")),
    "pending": Look("off", "todo", _("pending")),
    "running": Look("run", "run", _("running")),
    "waiting": Look("off", "todo", _("waits")),
    "paused": Look("", "pause", _("paused")),
    "expired": Look("warn", "wait", _("expired")),
    "stale": Look("warn", "wait", _("stale")),
    # checks of a plan
    "pass": Look("ok", "ok", pgettext_lazy("check", "pass")),
    "warn": Look("warn", "warn", pgettext_lazy("check", "warn")),
    "block": Look("bad", "bad", pgettext_lazy("check", "block")),
    # pairs of endpoints
    "compatible": Look("ok", "ok", _("compatible")),
    "compatible_with": Look("warn", "part", _("with staging")),
    "incompatible": Look("bad", "bad", _("incompatible")),
    # routers and pushes
    "acknowledged": Look("ok", "ok", _("acknowledged")),
    "in_sync": Look("ok", "ok", _("in sync")),
    "behind": Look("warn", "wait", _("behind")),
    "refused": Look("bad", "bad", _("refused")),
    "sent": Look("run", "send", _("sent")),
    "silent": Look("off", "cut", _("silent")),
    # objectives
    "met": Look("ok", "ok", _("met")),
    "missed": Look("warn", "warn", _("missed")),
    "no_data": Look("off", "unk", _("no data")),
    # findings, conditions, audit
    "open": Look("", "find", _("open")),
    "accepted": Look("ok", "ok", _("accepted")),
    "dismissed": Look("off", "none", _("dismissed")),
    "resolved": Look("ok", "ok", _("resolved")),
    "overridden": Look("off", "none", _("overridden")),
    "skipped": Look("off", "none", _("skipped")),
    "undone": Look("warn", "back", _("undone")),
    "superseded": Look("off", "none", _("superseded")),
    "allowed": Look("ok", "ok", _("allowed")),
    "denied": Look("bad", "lock", _("denied")),
    "error": Look("bad", "bad", _("error")),
    "active": Look("ok", "ok", _("active")),
    # connections of clusters, and what is there
    "answers": Look("ok", "ok", _("answers")),
    "unusable": Look("warn", "warn", _("unusable")),
    "complete": Look("ok", "ok", _("complete")),
    "missing": Look("bad", "bad", _("missing")),
    "there": Look("ok", "ok", _("there")),
    "not_there": Look("off", "none", _("not there")),
    "true": Look("ok", "ok", pgettext_lazy("condition", "yes")),
    "false": Look("warn", "part", pgettext_lazy("condition", "no")),
}

_ROLES: dict[str, tuple[str, object]] = {
    "prefill": ("p", _("prefill")),
    "decode": ("d", _("decode")),
    "both": ("b", _("both")),
    "idle": ("i", _("idle")),
    "unassigned": ("i", _("unassigned")),
    "unavailable": ("u", _("unavailable")),
    "transition": ("t", _("transition")),
    "unknown": ("k", _("unknown")),
}

_METHODS: dict[str, object] = {
    "measured": _("measured"),
    "modelled": _("modelled"),
    "simulated": _("estimate (simulated)"),
    "claimed": _("claim, not a saving"),
}

_CONFIDENCE: dict[str, object] = {
    "vendor": _("vendor figure"),
    "published": _("published"),
    "measured": _("measured"),
    "secondary": _("second-hand"),
    "unverified": _("unverified"),
    "estimate": _("estimate"),
    "high": _("high confidence"),
    "medium": _("medium confidence"),
    "low": _("low confidence"),
}

_CHECKS: dict[str, object] = {
    "memory": _("Memory fit"),
    "engine": _("Engine support"),
    "artefact": _("Files of the model"),
    "cluster": _("Objects in the cluster"),
    "contracts": _("KV contract"),
    "assignments": _("Role ledger"),
    "floor": _("Capacity floor"),
    "finance": _("Cost per hour"),
}

_OPERATIONS: dict[str, object] = {
    "serving.apply-plan": _("Apply a change plan"),
    "serving.roll-back-plan": _("Roll back a change plan"),
    "planning.run-scenario": _("Run a scenario"),
    "planning.live-race": _("Live race"),
    "serving.reset-knowledge": _("Forget what routers and engines learned"),
    "inventory.test-connection": _("Test the connection of a cluster"),
}

_STEPS: dict[str, object] = {
    "ask for the version": _("ask for the version"),
    "list the kinds": _("list the kinds"),
    "ask for the rights": _("ask for the rights"),
    "empty prefix caches": _("empty prefix caches"),
    "reset routers": _("reset routers"),
}

_VENDORS: dict[str, str] = {
    "nvidia": "NVIDIA",
    "amd": "AMD",
    "intel-gaudi": "Intel",
    "huawei-ascend": "Huawei",
    "rebellions": "Rebellions",
    "furiosa": "FuriosaAI",
}


def is_listed(code: str) -> bool:
    """True if the state code has a glyph and a word of its own."""
    return _key(code) in _LOOKS


def look(code: str) -> Look:
    """How to show a state code; an unlisted code shows itself with the glyph of unknown."""
    return _LOOKS.get(_key(code), Look("off", "unk", code.replace("_", " ")))


def _key(code: str) -> str:
    return code.replace("-", "_").lower()


def role(code: str | None) -> tuple[str, object]:
    """Letter of the pattern and word of a role or cost class; None means unassigned."""
    key = code or "unassigned"
    return _ROLES.get(key, ("k", key))


def method(code: str) -> object:
    """Word for how a figure came to be: measured, modelled, estimate (simulated), claim."""
    return _METHODS.get(code, code)


def confidence(code: str) -> object:
    """Word for how far a hardware figure can be trusted."""
    return _CONFIDENCE.get(code, code)


def vendor(slug: str) -> str:
    """Proper name of a vendor; an unlisted slug shows itself."""
    return _VENDORS.get(slug, slug)


def short_model(name: str) -> str:
    """Name of an accelerator model without what stands in brackets."""
    return " ".join(re.sub(r"\([^)]*\)", "", name).split())


def step(name: str) -> object:
    """Words for a step of an operation; a step without words shows its name."""
    return _STEPS.get(name, name)


def operation(kind: str) -> object:
    """What an operation does, in words; an unlisted kind shows itself."""
    return _OPERATIONS.get(kind, kind)


def check(name: str) -> object:
    """Name of a check of a plan."""
    return _CHECKS.get(name, name)
