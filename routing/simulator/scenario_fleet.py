"""The fleet of a scenario file: its members, a fleet by name, or a pool document."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from routing.core.document import (
    DocumentError,
    EndpointSpec,
    Policy,
    PoolDocument,
    Slo,
    parse_document,
)
from routing.simulator.fleet import Fleet, Member, build_fleet
from routing.simulator.notes import Note
from routing.simulator.profiles import Profile, ProfileError, load_profile
from routing.simulator.race.fleets import FLEETS, RaceFleet
from routing.simulator.report.prices import list_currency, listed
from routing.simulator.scenario_specs import MemberSpec, PoolSpec, ScenarioSpec
from routing.simulator.workloads.specs import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a fleet is made of."""

    spec: ScenarioSpec
    known: RaceFleet | None
    """The fleet that the file names, if it names one."""
    block_tokens: int
    slo: Slo


def known(name: str) -> RaceFleet:
    """A fleet by its id. Raises DocumentError."""
    if name not in FLEETS:
        raise DocumentError("/fleet", f"No fleet is called '{name}'.", tuple(FLEETS))
    return FLEETS[name]


def fleet_of(source: Source, read: Read) -> tuple[Fleet, tuple[Note, ...]]:
    """The fleet and what to know of it. Raises DocumentError."""
    spec = source.spec
    stated = [spec.fleet is not None, source.known is not None, spec.pool is not None]
    if sum(stated) != 1:
        word = (
            "A scenario has a fleet or a pool, and not both." if any(stated) else "There is none."
        )
        raise DocumentError("/pool" if spec.pool else "/fleet", word, ("fleet", "pool"))
    if spec.pool is not None:
        return _of_document(source, spec.pool, read), ()
    return _of_members(source)


def check(fleet: Fleet, pointer: str) -> None:
    """Somebody computes prompts and somebody answers. Raises DocumentError."""
    roles = {spec.role for spec in fleet.document.endpoints}
    if not roles:
        raise DocumentError(pointer, "There is no endpoint in it.")
    if not roles & {"both", "decode"}:
        raise DocumentError(
            pointer, "Nobody answers: every endpoint has the role 'prefill'.", ("decode", "both")
        )
    if not roles & {"both", "prefill"}:
        raise DocumentError(
            pointer,
            "Nobody computes prompts: every endpoint has the role 'decode'.",
            ("prefill", "both"),
        )


# Members.


def _of_members(source: Source) -> tuple[Fleet, tuple[Note, ...]]:
    spec = source.spec
    model = spec.model or (source.known.model if source.known else None)
    if model is None:
        raise DocumentError("/model", "A fleet needs the name of the model that it serves.")
    members = _named(source.known, spec) if source.known else _stated(spec, model)
    if not members:
        raise DocumentError("/fleet", "There is no endpoint in it.")
    for place, member in enumerate(members):
        _check_memory(_profile(member.accelerator, model, f"/fleet/{place}"), f"/fleet/{place}")
    built = build_fleet(
        members,
        model=model,
        block_tokens=source.block_tokens,
        policy=spec.policy,
        slo=source.slo,
        admission=spec.admission,
    ).in_currency(spec.currency or list_currency())
    return built, () if spec.currency else tuple(_claimed(built))


def _named(fleet: RaceFleet, spec: ScenarioSpec) -> tuple[Member, ...]:
    if spec.currency not in (None, list_currency()):
        word = f"The fleet '{fleet.id}' has list prices; list its members to state your own."
        raise DocumentError("/currency", word, (list_currency(),))
    return fleet.members


def _stated(spec: ScenarioSpec, model: str) -> tuple[Member, ...]:
    members = tuple(_member(one, model, place) for place, one in enumerate(spec.fleet or ()))
    if spec.currency is not None:
        return members
    if any(member.price_per_hour for member in members):
        raise DocumentError("/currency", "Prices are stated, and not in which currency.")
    return tuple(_priced(member) for member in members)


def _member(spec: MemberSpec, model: str, place: int) -> Member:
    _profile(spec.accelerator, model, f"/fleet/{place}")
    return Member(**msgspec.structs.asdict(spec))


def _priced(member: Member) -> Member:
    price = listed(member.accelerator).price_per_hour
    watts = member.watts or listed(member.accelerator).watts
    return replace(member, price_per_hour=None if price is None else str(price), watts=watts)


def _claimed(fleet: Fleet) -> Iterator[Note]:
    endpoints = fleet.document.endpoints
    lacking = sorted({one.speed_class for one in endpoints if one.price_per_hour is None})
    yield Note("list-prices")
    if lacking:
        yield Note("no-list-price", {"names": ", ".join(lacking)})


def _profile(accelerator: str, model: str, pointer: str) -> Profile:
    try:
        return load_profile(accelerator, model)
    except ProfileError as error:
        place = "/model" if f"model '{model}'" in str(error) else f"{pointer}/accelerator"
        raise DocumentError(place, str(error)) from error


def _check_memory(profile: Profile, pointer: str) -> None:
    if profile.kv_tokens < 1024:
        raise DocumentError(
            f"{pointer}/accelerator",
            f"The memory of '{profile.accelerator}' has no room for '{profile.model}' and a KV"
            f" cache: {profile.kv_tokens} tokens would be left.",
        )


# Pool documents.


def _of_document(source: Source, pool: PoolSpec, read: Read) -> Fleet:
    document = _document(pool.document, read)
    profiles = {spec.id: _profile_of(spec, source, pool, document) for spec in document.endpoints}
    for name in pool.speeds:
        if name not in profiles:
            word = f"There is no endpoint '{name}' in the pool."
            raise DocumentError(f"/pool/speeds/{name}", word, tuple(profiles))
    changed: dict[str, Any] = {
        "endpoints": tuple(
            msgspec.structs.replace(spec, block_size_tokens=source.block_tokens)
            for spec in document.endpoints
        ),
        "policy": source.spec.policy if source.spec.policy != Policy() else document.policy,
        "slo": source.slo,
    }
    if source.spec.admission is not None:
        changed["admission"] = source.spec.admission
    return Fleet(msgspec.structs.replace(document, **changed), profiles, pool.speeds)


def _document(path: str, read: Read) -> PoolDocument:
    try:
        return parse_document(read(path))
    except OSError as error:
        word = f"'{path}' cannot be read: {error.strerror or error}."
        raise DocumentError("/pool/document", word) from error
    except DocumentError as error:
        word = f"{path} is refused at {error.pointer or 'its top'}: {error.message}"
        raise DocumentError("/pool/document", word, error.allowed) from error


def _profile_of(
    spec: EndpointSpec, source: Source, pool: PoolSpec, document: PoolDocument
) -> Profile:
    """Of an endpoint by its speed class, `accelerator/model` where the control plane named it."""
    head, _, tail = spec.speed_class.partition("/")
    accelerator = pool.accelerators.get(spec.speed_class, head)
    model = source.spec.model or tail or document.models[0].name
    try:
        profile = load_profile(accelerator, model)
    except ProfileError as error:
        word = f"Endpoint '{spec.id}' of class '{spec.speed_class}': {error}"
        raise DocumentError("/pool/accelerators", word) from error
    _check_memory(profile, "/pool")
    return replace(profile, kv_tokens=spec.kv_capacity_tokens or profile.kv_tokens)
