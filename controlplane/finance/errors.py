"""Answers of finance that are not a yes.

DomainError
├── AssetCostExistsError      a first version is there already
├── AssetCostMissingError     nothing to revise
├── AssetCostBackdatedError   a version may only change the future
├── LifeOverError             nothing would be left to depreciate over
├── ResidualTooHighError      a version cannot earn money back
├── ServiceTimeError          a time that no life fits behind
├── CurrencyDiffersError      the ledger has one currency
└── PoolMissingError          a comparison without a pool
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class AssetCostExistsError(DomainError):
    code = "asset-cost-exists"
    title = _("The node has a cost already")
    message = _("Node {node} has version {version} of its cost.")
    hint = _("Revise it; a version is never edited.")


class AssetCostMissingError(DomainError):
    code = "asset-cost-missing"
    title = _("The node has no cost yet")
    message = _("Node {node} has no cost that could be revised.")
    hint = _("Record what it cost first.")


class AssetCostBackdatedError(DomainError):
    code = "asset-cost-backdated"
    title = _("A revision changes the future only")
    message = _("The revision would start at {valid_from}, which is not in the future.")
    hint = _("Choose a start after {earliest}; past hours of the ledger stay as they are.")


class LifeOverError(DomainError):
    code = "life-over"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The life would be over")
    message = _(
        "A life of {life_months} months ends at {end}, before the revision at {valid_from}."
    )
    hint = _("Choose a longer life, or a start of the revision inside of it.")


class ResidualTooHighError(DomainError):
    code = "residual-too-high"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The residual value is too high")
    message = _("The residual value {residual} is above the book value {book_value} of that time.")
    hint = _("Depreciation cannot be negative; choose a residual value up to the book value.")


class ServiceTimeError(DomainError):
    code = "service-time"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("This time is not possible")
    message = _("A node cannot have gone into service at {in_service_at}.")
    hint = _("Allowed: the years {first} to {last}.")


class CurrencyDiffersError(DomainError):
    code = "currency-differs"
    title = _("The ledger has one currency")
    message = _("The amounts are in {currency}, the ledger is in {ledger_currency}.")
    hint = _("Convert the amounts with the rate of the purchase and note the rate.")


class PoolMissingError(DomainError):
    code = "pool-missing"
    status = HTTPStatus.BAD_REQUEST
    title = _("A comparison needs a pool")
    message = _("The parameter 'pool' is missing.")
    hint = _("Name the pool whose policies are compared, for example pool=granite-kr.")
