"""What went wrong for users of comparable routers, and which test of ours holds the answer.

    python -m tests.architecture.lessons     writes docs/lessons.md

A test says what it holds with `@pytest.mark.lesson("W11")`. Ids and reports are public issue or
pull-request numbers of the projects named.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

from tests.architecture.sources import ROOT, name_of, tracked

PAGE = ROOT / "docs/lessons.md"

GROUPS = {
    "W": "Wrong picks and mixed hardware",
    "S": "Stale or wrong load",
    "X": "The cache index: drift, events, tokenizers",
    "B": "Bodies, streams, protocols",
    "F": "Failures and prefill/decode pairs",
    "N": "Scale",
    "T": "Tenants, policy, explanation",
}
LESSONS = {
    "W01": "A model may demand what a card must have; only such endpoints serve it (llm-d-router 1868, 1873)",
    "W02": "Device utilisation from an exporter can be an input beside the engine's own load (llm-d-router 1706)",
    "W03": "Block size is a property of the endpoint: different ones work in one pool (llm-d-router 2873)",
    "W04": "Hits are counted in tokens, whatever the block sizes of engine and index are (llm-d-router 2889)",
    "W05": "How fast an endpoint works is learned, so the faster card gets more (aibrix PR 2365)",
    "W06": "Prefill and decode of a model may run on different cards, with a verdict per pair (dynamo 414)",
    "W08": "A pair whose KV layouts differ is refused with the reason, unless staging is allowed (vllm-gaudi 1588, 1589; vllm-neuron 26, 27)",
    "W09": "The block size in force is the one that the engine reports (vllm-ascend 12589, 7563, 10193)",
    "W10": "One can see which prefixes the router believes an endpoint to hold (vllm-ascend 9905)",
    "W11": "A hit is worth the tokens it saves, not its share of the prompt (llm-d-router 1095; GIE 2561)",
    "W12": "One prefix shared by everybody spreads before queues form (llm-d-router PR 669; dynamo 737)",
    "W13": "Fresh prefix groups go to different endpoints (llm-d-router 346, PR 357)",
    "W14": "No healthy decode endpoint idles while others queue (dynamo 7836)",
    "W15": "Routers that decide at one moment do not all choose one endpoint (dynamo 589)",
    "W16": "Without a hit, load decides, not the size of an index (sglang 14305, 14532, 14650)",
    "W17": "Affinity gives way to load gradually (sglang 32195)",
    "W18": "Load is judged per phase: a prefill queue shows though decode is fast (sglang 27547; smg 1714)",
    "W19": "Work that others sent to an engine counts, on every hit too (sglang 25466, 28600, 29481)",
    "W20": "Load is tracked where bytes only pass through (vllm-router 179)",
    "W21": "What is equal is drawn evenly (Infera 103)",
    "W22": "A session leaves an endpoint whose cache does not hold it any more (prime-rl 3255)",
    "W23": "A small hit does not win over a large load between ranks (tpu-inference 3307)",
    "W24": "A cold pool is filled evenly (odh-kserve 1422)",
    "W25": "Scores hold with one candidate, with equal ones and with missing values (llm-d-router 1061, 1069, 1107)",
    "W26": "In a pair the cached prefix counts where it lies (GIE 2391)",
    "W27": "Load is guarded by the defaults (ray 59390)",
    "S01": "No order of removal, return and end makes a count negative (llm-d 1950; llm-d-router PR 1739)",
    "S02": "A client that leaves frees everything, at every step (vllm-router PR 215)",
    "S03": "Metrics are read gently, and less often from a slow engine (llm-d 2118; llm-d-router 2195, 1842)",
    "S04": "All ranks of an engine's metrics page count (GIE 2950)",
    "S05": "Loaded adapters that idle are known (llm-d-router 2605, 2625, PR 2792)",
    "S06": "Adapters can be placed on endpoints, not only followed (llm-d-router 709)",
    "X01": "After a restart the index is rebuilt; events with an unknown parent wait, counted (llm-d-kv-cache 372)",
    "X02": "Evictions and tiers are followed (llm-d-kv-cache 537, 563, 593; llm-d-router 1738, 878)",
    "X03": "An engine's restart is noticed and the health of its events is shown (llm-d-router 2853; llm-d-kv-cache 544)",
    "X04": "There is a place for snapshots beside bounded replay (vllm PR 50134, 57789; sglang 33394, 34407)",
    "X05": "Numbers that fall back without notice start a life, and its events count (sgl-router kv-stream-health)",
    "X06": "Arrays and maps are read at every level; an unknown shape raises an alarm (vllm PR 42892; kthena 1535, 1549)",
    "X07": "What the engine hashes is hashed; no overlap on all chat traffic raises an alarm (sglang 27386)",
    "X08": "Our tokens are compared with the engine's (llm-d-router 2641)",
    "X09": "Anthropic's messages know the cache of the same chat (llm-d-router 1861, 2513)",
    "X10": "Salts are part of the key: tenants' prefixes never meet (llm-d-router 1389, PR 1494)",
    "X11": "A decision says when cache knowledge did not apply (production-stack 1045)",
    "X12": "Images and other media are known by their content (llm-d-kv-cache 411; llm-d-router 900, 1003; dynamo 11588)",
    "X13": "Predicted and real cached tokens are compared and shown per endpoint (Fastllm-proxy 22)",
    "B01": "Bodies of many megabytes pass, chunked or not (GIE 854, 2056, 2058, 2095)",
    "B02": "Hop-by-hop headers of an engine never reach the client (GIE 2993, 2996)",
    "B03": "ext_proc keeps the order of messages and takes empty bodies (GIE 3028, 3033)",
    "B04": "A body in several parts is read as one (ai-gateway 2198)",
    "B05": "FailOpen of a pool reaches the data plane (ai-gateway 2502)",
    "B06": "Failing open is tested in the body mode in use (envoy 40757, 45189)",
    "B07": "What each data plane does with bodies is written down (agentgateway 724; dynamo 11868)",
    "B08": "Limits of bodies are high and can be set (sglang 38735)",
    "B09": "Weighted pools are proven on a gateway before they are offered (kgateway 11667)",
    "B10": "A stream that breaks ends with an error event and counts as failed (litellm 40404)",
    "F01": "An error of the client never opens a breaker (sglang 25811)",
    "F02": "Breakers hold in pairs as they do elsewhere (sglang 31206, 31933, 17002; Infera 82)",
    "F03": "A dead endpoint is forgotten at once (NeMo-RL 3613)",
    "F04": "A retry goes to the next best endpoint, fast and bounded (production-stack 382, 15)",
    "F05": "Waiting for KV has an end (vllm 50719)",
    "F06": "Parallelism of both ends is compared before they are paired (llm-d 2433, 1138)",
    "F07": "Block sizes of both ends are compared (vllm 42895)",
    "F08": "Failing transfers lower the share of a pair (sglang 13054, 9266; Mooncake 851)",
    "F09": "Pairs stay inside a declared group (aibrix 1417, 2605, 1273)",
    "F10": "Ranks behind one port are endpoints of their own (llm-d-router PR 750; aibrix 1858)",
    "F11": "A pair that always fails goes out, though both halves look well (smg 2483)",
    "N01": "Far over a thousand requests at once, every table bounded (production-stack 448, 687, 711, 782)",
    "N02": "Whole clusters and outside providers can be endpoints (llm-d-router 1907)",
    "T01": "Why this endpoint, and how close the next one was (llm-d-router 1843; GIE 2985)",
    "T02": "A test may force an endpoint, with permission (llm-d-router 1213)",
    "T03": "Waiting has limits per band and per request (llm-d-router 2316, PR 2649)",
    "T04": "Batch work trickles through under load (GIE 1861)",
    "T05": "A prediction is kept with its outcome (llm-d-router 2380, PR 2383)",
    "T06": "A record says which rule and which key decided (semantic-router 3658, 3975)",
    "T07": "Traffic splits by model name with weights, sessions keep their side (GIE 1811, 1926; aisix 687)",
    "T14": "The order of limits is printed (litellm 11962, 31097)",
}
NOT_HELD = {
    "W02": "Utilisation of exporters comes with telemetry; the price uses what engines report and what it measures itself.",
    "B07": "docs/faces.md says it of Envoy, the only data plane that was tried.",
    "B09": "Not offered: a gateway splits by the weights of its HTTPRoute before a router sees a request, and `consort route import` says so.",
    "N02": "Endpoints are engines; a provider outside has no KV contract and no speed that could be learned the same way.",
}
"""Lessons without a test, and why."""


def held() -> dict[str, list[str]]:
    """Lesson id to the tests that are marked with it, `path::name`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in tracked("tests/**/test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for lesson in _marks(node):
                    found[lesson].append(f"{name_of(path)}::{node.name}")
    return {lesson: sorted(tests) for lesson, tests in found.items()}


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    calls = (mark for mark in node.decorator_list if isinstance(mark, ast.Call))
    return [
        argument.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "lesson"
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def page() -> str:
    """The text of docs/lessons.md."""
    tests = held()
    lines = [
        "# Lessons",
        "",
        "Requirements for routing that come from what users of comparable systems reported, and the",
        "tests that hold them. Written by `python -m tests.architecture.lessons`.",
    ]
    for letter, title in GROUPS.items():
        lines += [
            "",
            f"## {letter}. {title}",
            "",
            "| id | what must hold | held by |",
            "|---|---|---|",
        ]
        for lesson, text in LESSONS.items():
            if lesson.startswith(letter):
                shown = "<br>".join(f"`{_short(test)}`" for test in tests.get(lesson, ())[:3])
                lines.append(f"| {lesson} | {text} | {shown or NOT_HELD.get(lesson, 'open')} |")
    return "\n".join(lines) + "\n"


def _short(test: str) -> str:
    path, _, name = test.partition("::")
    return f"{Path(path).stem}::{name}"


if __name__ == "__main__":
    PAGE.write_text(page())
    missing = [lesson for lesson in LESSONS if lesson not in held() and lesson not in NOT_HELD]
    sys.stdout.write(f"without a test or a reason: {', '.join(missing) or 'none'}\n")
