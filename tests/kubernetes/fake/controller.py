"""Rounds of all controllers, on demand or in a thread."""

import datetime as dt
import threading
import time
from dataclasses import dataclass, field

from tests.kubernetes.fake import groups, jobs, nodes, owners, reports, scheduler, workloads
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.kubelets import NODE, Kubelets

MOST_ROUNDS = 100
QUIET_SECONDS, PAUSES = 0.5, 10
"""How often the thread looks without being told of a change: late starts need a look."""


@dataclass
class Controllers:
    """What a control plane and its nodes do with the objects of one cluster."""

    api: Api
    kubelets: Kubelets
    with_kubelets: bool = True
    """Off: somebody else reports for the nodes, over HTTP."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def tick(self) -> bool:
        """One round; whether anything changed."""
        with self._lock:
            before = self.api.store.version
            owners.collect(self.api)
            workloads.run_deployments(self.api)
            workloads.run_replica_sets(self.api)
            workloads.run_stateful_sets(self.api)
            jobs.run_jobs(self.api)
            groups.run_groups(self.api)
            reports.run_volumes(self.api)
            scheduler.schedule(self.api)
            if self.with_kubelets:
                self.kubelets.run()
            reports.run_slices(self.api)
            reports.run_budgets(self.api)
            reports.run_quotas(self.api)
            return self.api.store.version != before

    def settle(self) -> int:
        """Rounds until nothing changes; how many there were."""
        for number in range(MOST_ROUNDS):
            if not self.tick():
                return number
        raise AssertionError(f"the controllers still changed something after {MOST_ROUNDS} rounds")

    def lose_node(self, name: str) -> None:
        """A node's kubelet falls silent."""
        with self._lock:
            self.kubelets.silent[name] = self.api.clock.now()
            self._rewrite(name, lost=True)

    def find_node(self, name: str) -> None:
        """A node's kubelet reports again."""
        with self._lock:
            self.kubelets.silent.pop(name, None)
            self._rewrite(name, lost=False)

    def _rewrite(self, name: str, *, lost: bool) -> None:
        node, now = self.api.read(NODE, "", name), self.api.clock.stamp()
        new = nodes.lost(node, now) if lost else nodes.found(node, now)
        self.api.replace(NODE, "", name, node | {"spec": new["spec"]})
        self.api.set_status(NODE, self.api.read(NODE, "", name), new["status"])

    def start(self) -> None:
        """Work in a thread from now on."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        with self.api.store.changed:
            self.api.store.changed.notify_all()
        if self._thread:
            self._thread.join(timeout=dt.timedelta(seconds=10).total_seconds())

    def _try(self) -> bool:
        """A round beside callers: what they change meanwhile is looked at in the next one."""
        try:
            return self.tick()
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return True

    def _work(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            if not self._try():
                # A large cluster gets its rounds less often, so that its callers have the machine.
                pause = max(QUIET_SECONDS, PAUSES * (time.monotonic() - began))
                with self.api.store.changed:
                    self.api.store.changed.wait(pause)
