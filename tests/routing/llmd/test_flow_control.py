"""Flow control as admission."""

from routing.core.document import Admission, Band
from routing.llmd.conversion import Report, convert
from routing.llmd.flow_control import flow_control_of
from tests.routing.llmd.test_reading import HEAD, sample


def converted(text: str) -> Report:
    return convert(HEAD + text)


def test_the_gate_is_closed_unless_it_is_opened() -> None:
    closed = converted("flowControl: {maxRequests: 7}")

    assert closed.admission == Admission()
    assert [note.message for note in closed.unmapped] == ["its feature gate is off"]
    assert converted("featureGates: [flowControl, 'flowControl=false']").admission == Admission()


def test_bands_bounds_and_times_are_taken_over() -> None:
    assert convert(sample("everything")).admission == Admission(
        queue_requests=12_000,
        queue_bytes=2 * 2**30,
        queue_seconds=90.0,
        bands=(Band(priority=100, queue_requests=500), Band(priority=0, queue_requests=5000)),
        evict_sheddable=True,
    )


def test_no_limit_becomes_the_sum_of_the_bands_and_no_end_the_longest_time() -> None:
    report = converted(
        "featureGates: [flowControl=true]\n"
        "flowControl: {defaultRequestTTL: 0s, priorityBands: [{priority: 1}, {priority: 2}]}"
    )

    assert report.admission.queue_requests == 10_000
    assert report.admission.queue_bytes == 2 * 10**9
    assert report.admission.queue_seconds == 86_400
    adapted = {note.pointer for note in report.notes if note.kind == "adapted"}
    assert adapted == {
        "/flowControl/maxRequests",
        "/flowControl/maxBytes",
        "/flowControl/defaultRequestTTL",
    }


def test_an_open_gate_alone_queues_with_upstreams_defaults() -> None:
    admission = converted("featureGates: [flowControl]").admission

    assert (admission.queue_requests, admission.queue_seconds) == (5000, 60)


def test_an_admission_without_a_queue_has_no_flow_control() -> None:
    assert flow_control_of(Admission()) is None
