"""Where hot prefixes live: the slow time scale of the policy `consort`.

The price of each request sees the present only. It keeps a prefix wherever it happened to be
computed first, long after better places are known, and in a pool that is short of memory each
prefix that moves pushes out another. So groups of prompts have homes:

- A group that was seen twice gets a home: where it is cached already, unless that endpoint carries
  more than its share; then the one that lacks most. Ties are broken by rendezvous hashing, so that
  routers with the same document agree, and a restart finds the same places.
- One home for each endpoint's worth of load that the group brings (with some room), so a very hot
  prefix is on several endpoints before a queue appears; fewer where the pool is quiet.
- What an endpoint's share is follows from the learned speeds: requests per second are spread so
  that one more adds the same waiting everywhere. With `n = r A / (1 - r B)` sequences at a rate `r`
  (A and B: the fixed and the growing part of an output's time, prompts included) that is
  `r = (1 - sqrt(A / m)) / B` for one common m; memory and sequences limit `r`.
- Every two seconds a few groups (3 %, at least one) move from whoever carries more than 1.1 of its
  share to whoever lacks most; none twice within a minute.

Everything here is derived: nothing is saved, a restart rebuilds it from what comes.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.core.lease import Lease
from routing.core.table import EndpointTable, Flags, Floats, Instance
from routing.pool.burden import Burden
from routing.producers.homes import Group, GroupTable

Keys = Sequence[int] | NDArray[np.uint64]
REFRESH_SECONDS = 2.0
REST_SECONDS = 60.0
"""A group that was moved stays at least so long."""
TOO_MUCH, TOO_LITTLE = 1.1, 0.95
"""Carried over fair share, above which an endpoint gives and below which it takes."""
TOO_MUCH_IF_TIGHT, TIGHT = 1.5, 0.35
"""The first of them where sequences hold this share of the pool's KV memory, and for a group that
has its first home: a prefix that moves is there twice for a while, and pushes out others."""
MOVED_SHARE = 0.03
ROOM = 1.25
"""Homes per endpoint's worth of load."""
BUSY = 0.25
"""Share of what the pool can carry at most, below which groups get fewer homes."""
LEAST_UTILISATION = 0.5
"""Shares are those of a pool that is at least half full, so that a quiet pool spreads too."""
_TYPICAL_STEP = 0.05
_PROMPT_WEIGHT = 0.125
"""A prompt token against an output token, as load."""


@dataclass(slots=True)
class Typical:
    """Running means over requests."""

    prompt: float = 0.0
    output: float = 0.0
    work: float = 0.0
    count: int = 0

    def add(self, *, prompt: float, output: float, work: float) -> None:
        self.count += 1
        step = max(_TYPICAL_STEP, 1.0 / self.count)
        self.prompt += step * (prompt - self.prompt)
        self.output += step * (output - self.output)
        self.work += step * (work - self.work)

    @property
    def tokens(self) -> float:
        """Load of one request."""
        return self.output + _PROMPT_WEIGHT * self.prompt


class Homes:
    """Placement of hot groups over the endpoints of one pool."""

    def __init__(self) -> None:
        self.groups = GroupTable()
        self.moves = 0
        self._typical = Typical()
        self._rate = self._utilisation = 0.0
        self._too_much = TOO_MUCH
        self._arrived = 0
        self._refreshed_at = -math.inf
        self._table: EndpointTable | None = None
        self._instances: tuple[Instance, ...] = ()
        self._kinds = np.zeros(0, dtype=np.intp)
        self._burden = Burden()

    def of(self, keys: Keys) -> tuple[tuple[int, ...], float]:
        """Rows of the homes of a prompt's group and its tokens; () and 0 where it has none."""
        group = self.groups.find(keys)
        if group is None or not group.homes:
            return (), 0.0
        return tuple([home.row for home in group.homes if home.row >= 0]), group.shared

    def began(self, keys: Sequence[int], lease: Lease, *, now: float) -> None:
        """A request was sent."""
        prompt, output = lease.request.parsed.prompt_tokens, lease.output_tokens
        instance, hit = lease.destination, lease.decision.predicted.hit_tokens
        self._typical.add(prompt=prompt, output=output, work=lease.work_tokens)
        self._arrived += 1
        tokens = output + _PROMPT_WEIGHT * prompt
        group = self.groups.observe(keys, tokens=tokens, now=now)
        if group is None:
            self._note_stranger(instance, tokens=tokens, prompt=prompt)
            return
        group.prompt += (_TYPICAL_STEP if group.prompt else 1.0) * (prompt - group.prompt)
        if hit > 0:
            group.shared += (_TYPICAL_STEP if group.shared else 1.0) * (hit - group.shared)
        if not any(home.row >= 0 for home in group.homes):
            group.homes = (self._first_home(group, instance),)
            if self._knows(group.homes[0]):
                self._carry(group, sign=1.0)
                self._write_lacking()

    def _note_stranger(self, instance: Instance, *, tokens: float, prompt: float) -> None:
        """A prompt of no group counts where it went: the next one goes elsewhere."""
        if self._knows(instance) and self._table is not None:
            row, groups = instance.row, self.groups
            taken = self._burden.add_stranger(row, tokens=tokens, prompt=prompt, groups=groups)
            self._table.lacking[row] -= taken

    def _knows(self, instance: Instance) -> bool:
        row = instance.row
        return 0 <= row < len(self._instances) and self._instances[row] is instance

    def _write_lacking(self) -> None:
        if self._table is not None and len(self._table) == len(self._burden.fair):
            self._table.lacking[:] = self._burden.lacking()

    def _first_home(self, group: Group, instance: Instance) -> Instance:
        """Where it is cached already, unless that endpoint has enough."""
        if not self._knows(instance) or self._burden.ratios()[instance.row] <= TOO_MUCH_IF_TIGHT:
            return instance
        group.homes = (instance,)
        table_row = self._neediest(group)
        return instance if table_row is None else self._instances[table_row]

    def refresh(self, table: EndpointTable, usable: Flags, *, now: float) -> None:
        """Every two seconds: fair shares from the speeds, then a few groups move."""
        elapsed = now - self._refreshed_at
        if elapsed < REFRESH_SECONDS or not self._typical.count:
            return
        seen = self._arrived / elapsed if math.isfinite(elapsed) else 0.0
        self._rate += 0.3 * (seen - self._rate) if self._rate else seen
        self._arrived, self._refreshed_at = 0, now
        if table is not self._table:
            self._table, self._instances = table, table.instances
            self._kinds = _kinds(table.instances)
            self._burden.follow(table)
        self.groups.refresh(
            endpoints=int(usable.sum()), tokens_per_request=self._typical.tokens, now=now
        )
        self._too_much = TOO_MUCH_IF_TIGHT if _is_tight(table, usable) else TOO_MUCH
        if math.isfinite(elapsed):
            self._burden.decay(elapsed)
        fair, self._utilisation = fair_shares(table, usable, self._typical, rate=self._rate)
        self._burden.begin(table, usable, fair, self.groups)
        self._settle(usable)
        self._grow_and_shrink(usable)
        self._move(now=now)
        self._write_lacking()

    def _settle(self, usable: Flags) -> None:
        """Who carries what; homes that are gone or may not be used are left."""
        for group in self.groups:
            if group.homes:
                group.homes = tuple(
                    home for home in group.homes if home.row >= 0 and usable[home.row]
                )
                self._carry(group, sign=1.0)
        self._burden.weigh()

    def _carry(self, group: Group, *, sign: float) -> None:
        share = sign * self.groups.share(group) / max(1, len(group.homes))
        for home in group.homes:
            self._burden.add(home.row, share=share, prompt=sign * group.prompt)

    def _grow_and_shrink(self, usable: Flags) -> None:
        """As many homes as the group's load needs; a quiet pool needs one, whatever its share."""
        count = int(usable.sum())
        busy = min(1.0, self._utilisation / BUSY)
        for group in self.groups:
            if not group.homes:
                continue
            share = self.groups.share(group) * count * busy
            wanted = min(count, max(1, math.ceil(ROOM * share - 0.5)))
            if wanted == len(group.homes):
                continue
            self._carry(group, sign=-1.0)
            while len(group.homes) < wanted:
                row = self._neediest(group)
                if row is None:
                    break
                group.homes = (*group.homes, self._instances[row])
            # One less than was enough a moment ago would come back at once.
            if len(group.homes) > wanted + 1:
                group.homes = group.homes[: wanted + 1]
            self._carry(group, sign=1.0)

    def _neediest(self, group: Group) -> int | None:
        """The row that lacks most of its share; near-ties by rendezvous.

        It is of the kind of the group's homes: who may go there may go here.
        """
        lacking, kinds = self._burden.lacking(), self._kinds
        lacking[(self._burden.fair <= 0) | (kinds != kinds[group.homes[0].row])] = -np.inf
        for home in group.homes:
            lacking[home.row] = -np.inf
        most = float(lacking.max(initial=-np.inf))
        if not math.isfinite(most):
            return None
        near = np.flatnonzero(lacking >= most - 0.1 * abs(most))
        return max(near.tolist(), key=lambda row: _rendezvous(group.key, self._instances[row]))

    def _move(self, *, now: float) -> None:
        movable = [group for group in self.groups if len(group.homes) == 1]
        for _ in range(max(1, int(MOVED_SHARE * len(movable)))):
            ratios = self._burden.ratios()
            giver = int(ratios.argmax()) if len(ratios) else -1
            if giver < 0 or ratios[giver] <= self._too_much:
                return
            surplus = float(self._burden.carried[giver] * (1.0 - 1.0 / ratios[giver]))
            group = self._best_to_move(movable, giver, surplus, now=now)
            taker = None if group is None else self._neediest(group)
            if group is None or taker is None or ratios[taker] >= TOO_LITTLE:
                return
            self._carry(group, sign=-1.0)
            group.homes, group.moved_at = (self._instances[taker],), now
            self._carry(group, sign=1.0)
            self.moves += 1

    def _best_to_move(
        self, groups: list[Group], row: int, surplus: float, *, now: float
    ) -> Group | None:
        """The heaviest of a row's groups that is not more than it has too much."""
        best, heaviest = None, 0.0
        for group in groups:
            if group.homes[0].row == row and now - group.moved_at >= REST_SECONDS:
                share = self.groups.share(group)
                if heaviest < share <= surplus:
                    best, heaviest = group, share
        return best

    def forget(self) -> None:
        """Block keys changed their meaning, or caches are believed empty."""
        self.groups.forget()
        self._burden.forget()

    def describe(self, instance: Instance) -> dict[str, float | int | None]:
        """What one endpoint carries against its fair share, for the snapshot."""
        row, burden = instance.row, self._burden
        known = 0 <= row < len(burden.fair)
        return {
            "groups": sum(instance in group.homes for group in self.groups),
            "carried_share": round(float(burden.carried[row]), 4) if known else None,
            "fair_share": round(float(burden.fair[row]), 4) if known else None,
        }


def _is_tight(table: EndpointTable, usable: Flags) -> bool:
    used = np.fmax(table.private_tokens / table.capacity_tokens, table.kv_usage)[usable]
    known = used[~np.isnan(used)]
    return bool(len(known) and known.mean() > TIGHT)


def fair_shares(
    table: EndpointTable, usable: Flags, typical: Typical, *, rate: float
) -> tuple[Floats, float]:
    """Shares of the load over the rows, summing to 1 (or 0 where nothing is usable); and the load
    over the most that the pool can carry.

    `rate` is in requests per second; see the module for the formula.
    """
    prompt, output = typical.prompt, max(1.0, typical.output)
    context = prompt + output / 2
    per_token = table.prefill_seconds_per_token + (
        table.prefill_seconds_per_token_and_context * prompt * 0.75
    )
    fixed = output * table.step_seconds
    growing = output * (
        table.step_seconds_per_sequence + table.step_seconds_per_context_token * context
    )
    growing = np.maximum(growing + typical.work * per_token, 1e-12)
    fits = np.fmin(table.capacity_tokens / (typical.work + output), table.max_sequences)
    # At most `fits` sequences at a time: r = n / (A + n B).
    most = np.where(usable, np.fmin(1.0 / growing, fits / (fixed + fits * growing)), 0.0)
    total = float(most.sum())
    if total <= 0:
        return np.zeros(len(table)), 0.0
    wanted = max(rate, LEAST_UTILISATION * total)
    if wanted >= 0.99 * total:
        return most / total, rate / total
    low, high = float(fixed[usable].min()), float(fixed[usable].max()) * 1e6
    shares = most
    for _ in range(40):
        middle = math.sqrt(low * high)
        shares = np.clip((1.0 - np.sqrt(fixed / middle)) / growing, 0.0, most)
        low, high = (middle, high) if shares.sum() < wanted else (low, middle)
    return np.asarray(shares / max(float(shares.sum()), 1e-12)), rate / total


def _kinds(instances: Sequence[Instance]) -> NDArray[np.intp]:
    """Equal numbers for endpoints that the same requests may use."""
    known: dict[tuple[object, ...], int] = {}
    return np.array(
        [
            known.setdefault(
                (
                    instance.spec.jurisdiction,
                    instance.spec.operator,
                    instance.spec.capabilities,
                    instance.spec.adapters,
                    instance.spec.max_model_len,
                ),
                len(known),
            )
            for instance in instances
        ],
        dtype=np.intp,
    )


def _rendezvous(key: int, instance: Instance) -> int:
    """The same order of endpoints for a group, whoever asks."""
    text = f"{key}\0{instance.spec.id}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
