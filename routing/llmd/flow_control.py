"""Flow control as our admission and back: bands, times to wait, bounds.

Upstream's gate `flowControl` is off by default; then requests are never queued, as with our default
of no queue. Its bounds of 0 mean none; here everything is bounded, so they become the sum over the
bands, and `0s` becomes the longest time that a document may state. Saturation is expected wait in
seconds here, tenants share by tokens and deadlines order them: upstream's detectors, fairness and
ordering policies are kept and do nothing.
"""

from typing import Any

import msgspec

from routing.core.document import Admission, Band
from routing.llmd.model import EndpointPickerConfig, FlowControl, PriorityBand, given
from routing.llmd.notes import Note
from routing.llmd.units import duration, seconds, whole

BAND_REQUESTS = 5000
BAND_BYTES = 10**9
TTL_SECONDS = 60.0
LONGEST_SECONDS = 86_400.0
MOST_BANDS = 20
GATE = "flowControl"


def is_on(config: EndpointPickerConfig) -> bool:
    """Whether the feature gate is open; the last mention counts."""
    state = False
    for gate in given(config.feature_gates, ()):
        name, _, value = gate.partition("=")
        if name.strip() == GATE:
            state = value.strip().lower() in ("", "true")
    return state


def admission_of(config: EndpointPickerConfig, notes: list[Note]) -> Admission:
    """Our admission; notes name what is bounded otherwise or does nothing."""
    flow = given(config.flow_control, FlowControl())
    if not is_on(config):
        if flow != FlowControl():
            _kept(notes, "/flowControl", GATE, "its feature gate is off")
        return Admission()
    _note_policies(flow, notes)
    bands = tuple(_band(band, place, notes) for place, band in enumerate(_bands(flow, notes)))
    total = sum(band.queue_requests or 0 for band in bands) or BAND_REQUESTS
    requests = _bound(flow.max_requests, "/flowControl/maxRequests", total, notes)
    size = _bound(flow.max_bytes, "/flowControl/maxBytes", BAND_BYTES * max(1, len(bands)), notes)
    return Admission(
        queue_requests=requests,
        queue_bytes=size,
        queue_seconds=_ttl(flow, notes),
        bands=bands,
        evict_sheddable=given(flow.enable_eviction, default=False),
    )


def _bands(flow: FlowControl, notes: list[Note]) -> tuple[PriorityBand, ...]:
    bands = given(flow.priority_bands, ())
    if len(bands) > MOST_BANDS:
        message = f"the first {MOST_BANDS} bands are used"
        _adapted(notes, "/flowControl/priorityBands", "priorityBands", message)
    return bands[:MOST_BANDS]


def _band(band: PriorityBand, place: int, notes: list[Note]) -> Band:
    pointer = f"/flowControl/priorityBands/{place}"
    if not isinstance(band.max_bytes, msgspec.UnsetType):
        _kept(notes, f"{pointer}/maxBytes", "maxBytes", "bytes are bounded over all bands")
    for name in ("fairness_policy_ref", "ordering_policy_ref"):
        reference = getattr(band, name)
        if not isinstance(reference, msgspec.UnsetType):
            field = "fairnessPolicyRef" if name.startswith("f") else "orderingPolicyRef"
            _kept(notes, f"{pointer}/{field}", reference, "tenants share by tokens here")
    stated = band.max_requests
    if isinstance(stated, msgspec.UnsetType):
        stated = BAND_REQUESTS
    requests = whole(stated, f"{pointer}/maxRequests")
    return Band(priority=given(band.priority, 0), queue_requests=requests or BAND_REQUESTS)


def _bound(value: Any, pointer: str, default: int, notes: list[Note]) -> int:
    stated = whole(given(value, 0), pointer)
    if stated:
        return stated
    _adapted(notes, pointer, pointer.rpartition("/")[2], f"no limit upstream, {default} here")
    return default


def _ttl(flow: FlowControl, notes: list[Note]) -> float:
    pointer = "/flowControl/defaultRequestTTL"
    text = given(flow.default_request_ttl, "60s")
    found = seconds(text, pointer)
    other = given(flow.no_endpoint_request_ttl, text)
    if other != text:
        message = "with no endpoint at all a request is refused at once"
        _kept(notes, "/flowControl/noEndpointRequestTTL", "noEndpointRequestTTL", message)
    if found <= 0 or found > LONGEST_SECONDS:
        _adapted(notes, pointer, "defaultRequestTTL", f"at most {LONGEST_SECONDS:g} s here")
        return LONGEST_SECONDS
    return found


def _note_policies(flow: FlowControl, notes: list[Note]) -> None:
    places = (
        ("default_priority_band", "defaultPriorityBand", "a priority without a band has none"),
        ("default_negative_priority_band", "defaultNegativePriorityBand",
         "priorities below 0 wait only where a band says so"),
        ("usage_limit_policy_plugin_ref", "usageLimitPolicyPluginRef", "no counterpart here"),
        ("saturation_detector", "saturationDetector", "saturation is expected wait in seconds"),
    )  # fmt: skip
    for attribute, name, message in places:
        if not isinstance(getattr(flow, attribute), msgspec.UnsetType):
            _kept(notes, f"/flowControl/{name}", name, message)


def _kept(notes: list[Note], pointer: str, subject: str, message: str) -> None:
    notes.append(Note(kind="kept", pointer=pointer, subject=subject, message=message))


def _adapted(notes: list[Note], pointer: str, subject: str, message: str) -> None:
    notes.append(Note(kind="adapted", pointer=pointer, subject=subject, message=message))


def flow_control_of(admission: Admission) -> FlowControl | None:
    """Flow control for an admission; `None` when nothing is queued."""
    if admission.queue_requests == 0:
        return None
    bands: Any = tuple(
        PriorityBand(
            priority=band.priority,
            max_requests=msgspec.UNSET if band.queue_requests is None else band.queue_requests,
        )
        for band in admission.bands
    )
    return FlowControl(
        max_requests=admission.queue_requests,
        max_bytes=admission.queue_bytes,
        default_request_ttl=duration(admission.queue_seconds),
        priority_bands=bands or msgspec.UNSET,
        enable_eviction=admission.evict_sheddable or msgspec.UNSET,
    )
