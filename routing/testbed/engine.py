"""A simulated engine: one process that looks like a vLLM server on one accelerator.

    python -m routing.testbed.engine --model granite-4.1-8b --accelerator amd-mi325x --role both

Prints one JSON line when it listens. SIGTERM: no further requests, two seconds for those under way.
SIGUSR1: the publisher of KV events starts anew.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from routing.simulator.profiles import ProfileError
from routing.testbed.api import EngineApi
from routing.testbed.driver import EngineDriver
from routing.testbed.events import EventLog
from routing.testbed.http import Server
from routing.testbed.nixl import Link, Puller, SideChannel
from routing.testbed.scheduler import EngineModel
from routing.testbed.settings import (
    FLAVORS,
    LOAD_FAILURE_POLICIES,
    ROLES,
    EngineSettings,
    SettingsError,
)

if TYPE_CHECKING:
    from routing.testbed.publisher import KvPublisher

GRACE_SECONDS = 2.0


class Engine:
    """One engine in this process; several may share an event loop."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self._profile = settings.profile()
        self._limits = settings.limits(self._profile)
        self._events = None if settings.kv_events_port is None else EventLog()
        self.model = EngineModel(self._profile, self._limits, log=self._events)
        self.port = 0
        self.side_channel_port = 0
        self.publisher: KvPublisher | None = None
        self._server: Server | None = None
        self._driver: EngineDriver | None = None
        self._side_channel: SideChannel | None = None
        self._puller: Puller | None = None

    async def start(self) -> None:
        """Listen on all ports. Raises OSError when one is taken."""
        settings, profile = self.settings, self._profile
        link = Link(profile.link_bytes_per_second, profile.transfer_setup_seconds)
        self._puller = Puller(
            link=link,
            kv_bytes_per_token=profile.kv_bytes_per_token,
            # SGLang has no other answer to KV that did not come.
            fail_on_loss=settings.kv_load_failure_policy == "fail" or settings.flavor == "sglang",
        )
        self.publisher = self._publisher()
        self._driver = EngineDriver(
            self.model,
            start_pull=self._puller.start,
            event_log=self._events,
            publish=self.publisher.publish if self.publisher else _nothing,
        )
        self._puller.attach(self._driver)
        self._side_channel = SideChannel(self._driver, engine_id=settings.engine_id, link=link)
        self.side_channel_port = await self._side_channel.start(
            settings.host, settings.side_channel_port
        )
        api = EngineApi(
            settings,
            self._driver,
            context_limit=settings.context_limit(profile, self._limits),
            side_channel_port=self.side_channel_port,
            publisher=self.publisher,
        )
        self._server = Server(api.handle)
        self.port = await self._server.start(settings.host, settings.port)

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End: answers under way have `grace_seconds` left."""
        if self._server is not None:
            await self._server.stop(grace_seconds)
        if self._side_channel is not None:
            self._side_channel.stop()
        if self._puller is not None:
            self._puller.stop()
        if self._driver is not None:
            self._driver.stop()
        if self.publisher is not None:
            self.publisher.stop()

    def restart_publisher(self) -> None:
        """As when only the sender of cache events fails: SIGUSR1 does it."""
        if self.publisher is not None:
            self.publisher.restart()

    def ready_line(self) -> str:
        """What is printed when the engine listens."""
        line = {
            "ready": True,
            "port": self.port,
            "pid": os.getpid(),
            "engine_id": self.settings.engine_id,
            "side_channel_port": self.side_channel_port,
            "kv_events_port": self.publisher.port if self.publisher else None,
            "kv_replay_port": self.publisher.replay_port if self.publisher else None,
        }
        return json.dumps(line)

    def _publisher(self) -> "KvPublisher | None":
        settings = self.settings
        if settings.kv_events_port is None:
            return None
        # ZeroMQ and msgpack cost 12 MB, which most engines do not need.
        from routing.testbed.publisher import KvPublisher

        return KvPublisher(
            settings.host,
            port=settings.kv_events_port,
            replay_port=settings.kv_replay_port or 0,
            topic=settings.topic or f"kv@{settings.engine_id}@{settings.model}",
        )


def _nothing(_: object) -> None:
    """Events of an engine without a publisher."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an engine until SIGTERM or SIGINT; 2 when it was asked for something impossible."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    settings = _settings(_parser().parse_args(arguments))
    try:
        engine = Engine(settings)
    except (ProfileError, SettingsError) as error:
        print(f"The engine cannot start: {error}", file=sys.stderr)
        return 2
    return _run(engine)


def _run(engine: Engine) -> int:
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(engine))
    except OSError as error:
        wanted = f"{engine.settings.host}:{engine.settings.port}"
        print(f"The engine cannot listen on {wanted} or a side port: {error}.", file=sys.stderr)
        return 1
    return 0


async def _serve(engine: Engine) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, engine.restart_publisher)
    await engine.start()
    # What exists by now lives as long as the process: leave it out of every collection.
    gc.collect()
    gc.freeze()
    print(engine.ready_line(), flush=True)
    await ended.wait()
    await engine.stop()


def _settings(options: argparse.Namespace) -> EngineSettings:
    values = vars(options)
    values["engine_id"] = values["engine_id"] or str(uuid.uuid4())
    values["adapters"] = tuple(values["adapters"])
    return EngineSettings(**values)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="routing.testbed.engine", description="Simulated engine.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8000, help="port to listen on, 0 for a free one")
    add("--model", required=True, help="name of the model; must be in profiles.yaml")
    add("--accelerator", required=True, help="accelerator class; must be in profiles.yaml")
    add("--role", choices=ROLES, default="both", help="part in a prefill/decode pair")
    add("--flavor", choices=FLAVORS, default="vllm", help="engine whose metrics and pairs it has")
    add("--engine-id", default="", help="NIXL engine id; made up when absent")
    add("--speed", type=float, default=1.0, help="model seconds per second")
    add("--slowdown", type=float, default=1.0, help="times slower than its class")
    _add_sizes(parser)
    _add_channels(parser)
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--block-size", type=int, default=16, help="tokens per KV block")
    add("--kv-tokens", type=int, help="KV cache size; the profile's when absent")
    add("--max-num-seqs", type=int, default=256, help="sequences in a batch")
    add("--max-num-batched-tokens", type=int, help="tokens in a step")
    add("--lora", action="append", default=[], dest="adapters", help="name of a loaded adapter")
    add("--stream-interval", type=int, default=1, help="tokens per event of a stream")
    add("--max-model-len", type=int, help="longest prompt plus answer")


def _add_channels(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--kv-events-port", type=int, help="publish KV events there, 0 for a free port")
    add("--kv-replay-port", type=int, help="replay KV events there, 0 for a free port")
    add("--topic", default="", help="topic of KV events")
    add("--side-channel-port", type=int, default=0, help="port where decode engines pull")
    add("--kv-hold-seconds", type=float, default=30.0, help="how long a prefill keeps its blocks")
    add("--kv-load-failure-policy", choices=LOAD_FAILURE_POLICIES, default="recompute")
    add(
        "--no-prompt-tokens-details",
        dest="prompt_tokens_details",
        action="store_false",
        help="leave cached_tokens out of usage, as engines do by default",
    )


if __name__ == "__main__":
    sys.exit(main())
