"""The course of a demo once its tables exist: site, roles, traffic, report."""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from django.utils import timezone

from deploy.demo import advice, earlier, people, policies, site
from deploy.demo.history import write_history
from deploy.demo.installation import Installation, InstallationError
from deploy.demo.report import Run, make_report, summary, write_report
from deploy.demo.table import LiveTable
from deploy.demo.traffic import Traffic, comparison, quiet

ENGINES = 20
ROLES_TIMEOUT_SECONDS = 150.0
POLICIES = ("random", "consort")
SLICE_SECONDS = 60.0
LEAST_SLICE_SECONDS = 2.0
POLL_SECONDS = 0.25
_HELLO = {"model": site.MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": "Hello"}]}


class Show:
    """One run of the demo, from the empty site to its report."""

    def __init__(
        self, installation: Installation, *, say: Callable[[str], None], started: float
    ) -> None:
        self.installation = installation
        self.options = installation.options
        self._say = say
        self._started = started

    def run(self) -> int:
        """Run until Ctrl-C, or for the asked time; 0 when all went well."""
        self.operator = people.login("operator", "Olga Operator", people.OPERATOR_ROLES)
        self.approver = people.login("approver", "Andrea Approver", people.APPROVER_ROLES)
        self.pool = site.write(self.installation, operator=self.operator)
        now = timezone.now()
        self.run_info = Run(project=f"race-{now:%Y%m%d-%H%M%S}", pool=self.pool.slug, started=now)
        before = self.run_info.tokens_before
        before |= earlier.engine_tokens(self.pool.slug, self.run_info.hour)
        self.installation.start_programs()
        self._say(f"First page after {self._elapsed():.0f} s.")
        self._introduce()
        self._give_roles(meanwhile=self._history)
        before["router"] = earlier.router_tokens(self.pool.slug, self.run_info.hour)
        self._first_token()
        self._report(self._compare())
        self._plan()
        self._keep_on()
        return 1 if self.failures else 0

    def _introduce(self) -> None:
        self._say("")
        self._say(f"  Race       {self.options.web_url}/race  (log in, press Start)")
        self._say(f"  Console    {self.options.web_url}")
        for login in (self.operator, self.approver):
            self._say(f"  {login.user.username:9}  {login.password}")
        self._say(f"  Models     {', '.join(url + '/v1' for url in self.options.router_urls)}")
        self._say("  Engines are simulated, and every figure that comes from them says so.")
        self._say("")

    def _history(self) -> None:
        if write_history(until=timezone.now(), days=site.HISTORY_DAYS):
            self._say(f"Wrote {site.HISTORY_DAYS} days of simulated history.")

    def _give_roles(self, *, meanwhile: Callable[[], None]) -> None:
        """Let the first changes run; the history is written while engines start."""
        people_of = {"operator": self.operator.user, "approver": self.approver.user}
        written = False
        deadline = time.monotonic() + ROLES_TIMEOUT_SECONDS
        while not (site.give_next_role(self.pool, **people_of) and self._is_ready()):
            if not written:
                meanwhile()
                written = True
            if time.monotonic() > deadline:
                raise InstallationError(
                    f"{policies.ready_endpoints(self.pool)} of {ENGINES} engines take requests "
                    f"after {ROLES_TIMEOUT_SECONDS:.0f} s; see the worker's and the engine host's "
                    f"logs in {self.installation.supervision.folder}."
                )
            time.sleep(POLL_SECONDS)
        if not written:
            meanwhile()

    def _is_ready(self) -> bool:
        return policies.ready_endpoints(self.pool) >= ENGINES and policies.in_sync(self.pool)

    def _first_token(self) -> None:
        self.tenants = people.tenants()
        project = people.project(
            self.tenants["hanbit"], self.run_info.project, "Comparison of policies"
        )
        self.key = people.fresh_key(project, "comparison")
        quiet_project = people.project(self.tenants["nuri"], "chat", "Chat")
        self.quiet_key = people.fresh_key(quiet_project, "quiet")
        self._until_key_known(self.quiet_key)
        self._say(f"First token after {self._elapsed():.0f} s. Try it yourself:")
        self._say(f"  curl {self.options.router_urls[0]}/v1/chat/completions \\")
        self._say(f"    -H 'Authorization: Bearer {self.quiet_key}' \\")
        self._say(f"    -d '{json.dumps(_HELLO | {'max_tokens': 20})}'")

    def _until_key_known(self, key: str) -> None:
        """Ask each router for one answer; a key is good once its document arrived."""
        deadline = time.monotonic() + policies.TIMEOUT_SECONDS
        for url in self.options.router_urls:
            while True:
                answer = httpx.post(
                    f"{url}/v1/chat/completions", json=_HELLO, timeout=30.0,
                    headers={"Authorization": f"Bearer {key}"},
                )  # fmt: skip
                if answer.status_code == httpx.codes.OK:
                    break
                if answer.status_code != httpx.codes.UNAUTHORIZED or time.monotonic() > deadline:
                    raise InstallationError(f"{url} answered {answer.status_code}: {answer.text}")
                time.sleep(POLL_SECONDS)

    def _compare(self) -> Run:
        """The same requests under each policy, one after the other."""
        self.traffic_started = time.monotonic()
        for policy in POLICIES:
            policies.put_in_force(self.pool, policy, actor=self.operator.user)
            load = comparison(self.key)
            self._say(
                f"Policy {policy}: {load.requests} requests at {load.rate:.0f} a second, "
                f"{load.groups} shared prefixes of {load.system_tokens} tokens …"
            )
            with self._traffic(Traffic(self.options, load, self._file(policy))) as traffic:
                self.run_info.clients[policy] = traffic.result()
        return self.run_info

    def _keep_on(self) -> None:
        """Quiet traffic until Ctrl-C, or for what is left of the asked time."""
        if self.options.seconds is None:
            self._say("Ctrl-C stops everything.")
        seed = 0
        while (left := self._seconds_left()) > LEAST_SLICE_SECONDS:
            seed += 1
            self._slice(min(left, SLICE_SECONDS), seed)

    def _slice(self, seconds: float, seed: int) -> None:
        if not self.options.quiet_rate:
            time.sleep(seconds)
            return
        load = quiet(self.quiet_key, rate=self.options.quiet_rate, seconds=seconds, seed=seed)
        with self._traffic(Traffic(self.options, load, self._file("quiet"))) as traffic:
            failed = traffic.result()["failed"]
        if failed:
            self.failures.append(f"{failed} requests of the quiet traffic failed")

    def _seconds_left(self) -> float:
        if self.options.seconds is None:
            return math.inf
        return self.options.seconds - (time.monotonic() - self.traffic_started)

    @contextmanager
    def _traffic(self, traffic: Traffic) -> Iterator[Traffic]:
        table = LiveTable(self.pool, say=self._say)
        try:
            while traffic.is_running():
                table.tick()
                time.sleep(POLL_SECONDS)
            yield traffic
        finally:
            traffic.stop()

    def _report(self, run: Run) -> None:
        token = people.reader_token(self.operator.user)
        report, self.failures = make_report(run, url=self.options.web_url, token=token)
        if self.options.report is not None:
            write_report(self.options.report, report)
            self._say(f"Report: {self.options.report}")
        for line in summary(report):
            self._say(line)
        for failure in self.failures:
            self._say(f"Not as it should be: {failure}.")

    def _plan(self) -> None:
        """What the planner says of the site; after the comparison, whose engines it would slow."""
        run = advice.run_scenario(self.pool, actor=self.operator.user)
        failure = advice.tell(run, say=self._say)
        if failure:
            self.failures.append(failure)
            self._say(f"Not as it should be: {failure}.")

    def _file(self, name: str) -> Path:
        return self.installation.supervision.folder / f"traffic-{name}.json"

    def _elapsed(self) -> float:
        return time.monotonic() - self._started
