"""Do the weights and a useful amount of KV fit into the accelerators' memory?"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from controlplane.serving import figures
from controlplane.serving.checks.base import CheckResult, Verdict
from controlplane.serving.deployments import engine_request
from controlplane.serving.engines import launcher
from controlplane.serving.plans import items_of
from inventory.models import Accelerator

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan

SEQUENCES = 8
"""An engine that holds fewer full-length sequences than this is called tight."""
USUAL_TOKENS = 8192
"""Length of a sequence for that, unless the model's longest context is shorter."""


def check(plan: "ChangePlan") -> CheckResult:
    """Block if the weights do not fit, warn if the KV is tight or a figure is unknown."""
    items = [item for item in items_of(plan.diff) if item.to_role]
    accelerators = Accelerator.objects.select_related("model", "node__cluster").in_bulk(
        [item.accelerator for item in items], field_name="pk"
    )
    model = plan.pool.model
    tokens: dict[str, int | None] = {}
    for accelerator in accelerators.values():
        request = engine_request(plan.pool, accelerator, role="both")
        share = launcher(plan.pool.engine).memory_share(request)
        tokens[accelerator.model.slug] = figures.capacity_tokens(accelerator.model, model, share)
    numbers = {"weight_bytes": model.weight_bytes, "kv_tokens": tokens}
    verdict, sentence = _judge(tokens, model.name, model.max_model_len)
    return CheckResult(verdict=verdict, sentence=sentence, numbers=numbers)


def _judge(tokens: dict[str, int | None], model: str, longest: int) -> tuple[Verdict, str]:
    unknown = sorted(name for name, count in tokens.items() if count is None)
    if unknown:
        text = _("Memory or speed of {names} is not known, so the fit is not known.")
        return "block", text.format(names=", ".join(unknown))
    known = {name: count for name, count in tokens.items() if count is not None}
    too_small = sorted(name for name, count in known.items() if count == 0)
    if too_small:
        text = _("The weights of {model} do not fit into the memory of {names}.")
        return "block", text.format(model=model, names=", ".join(too_small))
    wanted = SEQUENCES * min(USUAL_TOKENS, longest)
    tight = sorted(name for name, count in known.items() if count < wanted)
    if tight:
        text = _("KV is tight on {names}: less than {tokens} tokens beside the weights.")
        return "warn", text.format(names=", ".join(tight), tokens=wanted)
    if not known:
        return "pass", _("The plan starts no engine.")
    text = _("Weights fit, with room for at least {tokens} tokens of KV per accelerator.")
    return "pass", text.format(tokens=min(known.values()))
