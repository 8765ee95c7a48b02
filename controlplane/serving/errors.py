"""Rules of serving that said no.

DomainError
├── ModelUnknownError, PoolRetiredError
├── PolicyRefusedError, SloRefusedError, GatewayRulesRefusedError, EngineArgumentsRefusedError
├── ContainersRefusedError, ManifestsRefusedError
├── PlanEmptyError, PlanRoleRefusedError, AcceleratorsUnknownError
├── PlanStateError, PlanStaleError, PlanExpiredError, PlanBlockedError
├── OwnPlanError, PoolBusyError, RollbackTooLateError
├── LedgerConflictError
├── ArtefactRefusedError, ArtefactUnusableError, ArtefactInUseError
└── RouterTokenError, StaticEngineRefusedError, EngineOutputUnavailableError
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class ModelUnknownError(DomainError):
    code = "model-unknown"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Model is not in the catalogue")
    message = _("There is no model {model} in the shipped catalogue.")
    hint = _("Models there: {allowed}.")


class PoolRetiredError(DomainError):
    code = "pool-retired"
    title = _("Pool is retired")
    message = _("Pool {pool} is retired, so nothing can be changed in it.")
    hint = _("Choose an active pool.")


class PolicyRefusedError(DomainError):
    code = "policy-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Policy is not allowed")
    message = _("The policy was refused at {pointer}: {detail}")
    hint = _("Allowed there: {allowed}.")


class SloRefusedError(DomainError):
    code = "slo-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("SLO is not allowed")
    message = _("Targets and rules of waiting were refused at {pointer}: {detail}")
    hint = _("Correct the value; docs/pool-document.schema.json lists what is allowed.")


class GatewayRulesRefusedError(DomainError):
    code = "gateway-rules-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Objectives or rewrites are not allowed")
    message = _("They were refused at {pointer}: {detail}")
    hint = _("Correct the value; docs/pool-document.schema.json lists what is allowed.")


class EngineArgumentsRefusedError(DomainError):
    code = "engine-arguments-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Engine argument is not known")
    message = _("{detail}")
    hint = _("Remove or correct the argument.")


class ContainersRefusedError(DomainError):
    code = "containers-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Settings of containers are not allowed")
    message = _("The settings were refused at {pointer}: {detail}")
    hint = _("Correct the value; docs/kubernetes.md lists the fields.")


class ManifestsRefusedError(DomainError):
    code = "manifests-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The format cannot express the pool")
    message = _("Pool {pool} cannot be written as {renderer} because of {pointer}: {detail}")
    hint = _("Change what is named, or choose another format: {allowed}.")


class ArtefactRefusedError(DomainError):
    code = "artefact-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Source of model files is not allowed")
    message = _("{field} of artefact {artefact} cannot be {value}.")
    hint = _("Allowed there: {allowed}.")


class ArtefactUnusableError(DomainError):
    code = "artefact-unusable"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Artefact does not fit the pool")
    message = _("Artefact {artefact} cannot be used in pool {pool}: {detail}")
    hint = _("Choose an active artefact of the pool's model.")


class ArtefactInUseError(DomainError):
    code = "artefact-in-use"
    title = _("Artefact is in use")
    message = _("Artefact {artefact} is used by: {pools}.")
    hint = _("Give these pools another artefact, or none.")


class PlanEmptyError(DomainError):
    code = "plan-empty"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Nothing selected")
    message = _("The selection has 0 accelerators, so there is nothing to plan.")
    hint = _("Select at least one node with an accelerator that is in use.")


class PlanRoleRefusedError(DomainError):
    code = "plan-role-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Role is not known")
    message = _("There is no role {role}.")
    hint = _("Roles: {allowed}; or none, to release the accelerators.")


class AcceleratorsUnknownError(DomainError):
    code = "accelerators-unknown"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Accelerator is not known")
    message = _("{missing} of the selected accelerators or nodes do not exist.")
    hint = _("Select them again from the list.")


class PlanStateError(DomainError):
    code = "plan-state"
    title = _("Plan is not in the right state")
    message = _("Plan {plan} is {state.label}; this needs: {needed}.")
    hint = _("Reload the plan to see what happened to it.")


class PlanStaleError(DomainError):
    code = "plan-stale"
    title = _("Plan is stale")
    message = _("Plan {plan} was made for another state of pool {pool}: {difference}")
    hint = _("Make the plan again.")


class PlanExpiredError(DomainError):
    code = "plan-expired"
    title = _("Plan has expired")
    message = _("Plan {plan} expired at {expired_at}.")
    hint = _("Make the plan again.")


class PlanBlockedError(DomainError):
    code = "plan-blocked"
    title = _("A check blocks the plan")
    message = _("Plan {plan} is blocked: {sentence}")
    hint = _("Change the plan so that no check blocks it.")


class OwnPlanError(DomainError):
    code = "plan-own"
    status = HTTPStatus.FORBIDDEN
    title = _("Needs another person")
    message = _("Plan {plan} is your own; nobody approves their own plan.")
    hint = _("Ask another approver.")


class PoolBusyError(DomainError):
    code = "pool-busy"
    title = _("Another plan is being applied")
    message = _("Pool {pool} is being changed by plan {other}.")
    hint = _("Wait until it has ended, or cancel it.")


class RollbackTooLateError(DomainError):
    code = "rollback-too-late"
    title = _("Too late to roll back")
    message = _("Plan {plan} cannot be rolled back: {detail}")
    hint = _("Make a plan with the roles that are wanted.")


class LedgerConflictError(DomainError):
    code = "ledger-conflict"
    title = _("Ledger says otherwise")
    message = _("{accelerator} is {found} in the role ledger, not {expected}.")
    hint = _("Somebody else changed the role; look at the ledger and make another plan.")


class RouterTokenError(DomainError):
    code = "router-token"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Token of the router cannot be read")
    message = _("The reference {reference} of router {router} cannot be read: {detail}")
    hint = _("Use file:/path with mode 0600, or env:NAME.")


class AdoptableUnknownError(DomainError):
    code = "adoptable-unknown"
    status = HTTPStatus.NOT_FOUND
    title = _("No such engines were seen")
    message = _("The last discovery of {cluster} saw no {source}.")
    hint = _("The list of what may be adopted is read anew every ten minutes.")


class EngineOutputUnavailableError(DomainError):
    code = "engine-output-unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = _("Output of the engine cannot be read")
    message = _("The output of engine {name} cannot be read: {detail}")
    hint = _("Ask again later; the deployment's conditions say what is known of it.")


class StaticEngineRefusedError(DomainError):
    code = "static-engine-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Engine cannot be registered")
    message = _("The engine at {url} cannot be registered: {detail}")
    hint = _("Only accelerators of a cluster that somebody else runs can be given an address.")
