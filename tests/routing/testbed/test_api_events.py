"""Named events are chunks of a stream."""

from routing.testbed.api_events import named


def test_an_event_is_named_by_its_type() -> None:
    event = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'

    assert named({"type": "message_stop"}) == b"%x\r\n%b\r\n" % (len(event), event)
