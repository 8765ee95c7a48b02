"""Does the pool's engine run this model, in this role, on these accelerators?"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from controlplane.serving.checks.base import CheckResult
from controlplane.serving.deployments import engine_request
from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import EngineArgumentError
from controlplane.serving.plans import items_of
from controlplane.serving.targets import target
from inventory.models import Accelerator

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan


def check(plan: "ChangePlan") -> CheckResult:
    """Block if a vendor, precision or role is not supported, or the target cannot be reached."""
    items = [item for item in items_of(plan.diff) if item.to_role]
    engine = launcher(plan.pool.engine)
    precision = plan.pool.model.precision
    verdicts = {
        vendor: engine.support(vendor=vendor, precision=precision, role=plan.role)  # type: ignore[arg-type]  # the column allows only roles
        for vendor in sorted({item.vendor for item in items})
        if plan.role
    }
    numbers = {
        "engine": engine.slug,
        "vendors": {name: v.supported for name, v in verdicts.items()},
    }
    for verdict in verdicts.values():
        if not verdict.supported:
            return CheckResult(verdict="block", sentence=verdict.sentence, numbers=numbers)
    if items and (sentence := _too_parallel(plan, items[0].accelerator)):
        return CheckResult(verdict="block", sentence=sentence, numbers=numbers)
    limits = sorted(
        {
            sentence
            for item in items
            for sentence in target(item.target).capabilities().limits(item.workload)
        }
    )
    if limits:
        return CheckResult(verdict="warn", sentence=" ".join(limits), numbers=numbers)
    if not verdicts:
        return CheckResult(
            verdict="pass", sentence=_("The plan starts no engine."), numbers=numbers
        )
    return CheckResult(
        verdict="pass",
        sentence=" ".join(verdict.sentence for verdict in verdicts.values()),
        numbers=numbers,
    )


def _too_parallel(plan: "ChangePlan", accelerator_id: str) -> str:
    """Sentence if the pool's arguments spread an engine over more than its one accelerator."""
    accelerator = Accelerator.objects.select_related("model", "node").get(pk=accelerator_id)
    request = engine_request(plan.pool, accelerator, role=plan.role)
    try:
        tensor, pipeline = launcher(plan.pool.engine).parallelism(request)
    except (EngineArgumentError, ValueError) as error:
        return str(error)
    if tensor * pipeline == 1:
        return ""
    text = _(
        "The pool's engine arguments spread an engine over {count} accelerators, but an engine is "
        "started on one. Set tensor and pipeline parallel sizes to 1, or choose a model that fits."
    )
    return text.format(count=tensor * pipeline)
