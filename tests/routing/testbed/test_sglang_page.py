"""SGLang's page and load report of an engine at work."""

from routing.engines.sglang import ENGINE
from routing.testbed.sglang_page import SglangPage
from tests.routing.testbed.helpers import make_model, make_sequence


def test_what_runs_and_what_waits_is_on_the_page_and_in_the_report() -> None:
    model = make_model(sequences=1)
    for number in range(3):
        model.add(make_sequence(100, name=f"cmpl-{number}", start=1000 * number))
    model.begin_step(0.0)
    page = SglangPage(model, model_name='a "model"', started_at=1.0)

    signals = ENGINE.signals(page.render())

    assert (signals.running, signals.waiting) == (1, 2)
    assert signals.kv_usage is not None
    assert signals.kv_usage > 0
    (load,) = page.loads()["loads"]
    assert (load["num_running_reqs"], load["num_waiting_uncached_tokens"]) == (1, 200)
