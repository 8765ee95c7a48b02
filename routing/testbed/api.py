"""The HTTP face of a simulated engine: vLLM 0.32's routes over one engine driver."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from routing.testbed import api_completions, api_messages
from routing.testbed import api_requests as requests
from routing.testbed import tokens as tk
from routing.testbed.api_answers import AnswerStyle
from routing.testbed.api_completions import Api, Completions
from routing.testbed.api_embeddings import Embeddings
from routing.testbed.driver import EngineDriver
from routing.testbed.errors import ApiError
from routing.testbed.http import Exchange
from routing.testbed.metrics_page import MetricsPage
from routing.testbed.settings import VLLM_VERSION, EngineSettings
from routing.testbed.sglang_page import SglangPage

if TYPE_CHECKING:
    from routing.testbed.publisher import KvPublisher

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_MISSING = {"detail": "Not Found"}
_WRONG_METHOD = {"detail": "Method Not Allowed"}

Route = Callable[[Exchange], None]


class EngineApi:
    """Routes of one engine."""

    def __init__(
        self,
        settings: EngineSettings,
        driver: EngineDriver,
        *,
        context_limit: int,
        side_channel_port: int,
        publisher: "KvPublisher | None",
    ) -> None:
        self._settings = settings
        self._driver = driver
        self._context_limit = context_limit
        self._publisher = publisher
        style = AnswerStyle(
            model=settings.model,
            fingerprint=f"vllm-{VLLM_VERSION}-{settings.engine_id.replace('-', '')[:8]}",
            details=settings.prompt_tokens_details,
            stream_interval=settings.stream_interval,
        )
        model, name, since = driver.model, settings.model, driver.started_at
        self._sglang: SglangPage | None = None
        if settings.flavor == "sglang":
            self._sglang = SglangPage(model, model_name=name, started_at=since)
        self._metrics = self._sglang or MetricsPage(model, model_name=name, started_at=since)
        self._completions = Completions(
            settings,
            driver,
            style=style,
            context_limit=context_limit,
            side_channel_port=side_channel_port,
        )
        self._embeddings = Embeddings(
            driver, block_size=settings.block_size, context_limit=context_limit
        )
        self._routes: dict[str, dict[str, Route]] = {
            "/v1/chat/completions": {"POST": self._completes(api_completions.CHAT)},
            "/v1/completions": {"POST": self._completes(api_completions.COMPLETION)},
            "/v1/responses": {"POST": self._completes(api_completions.RESPONSES)},
            "/v1/messages": {"POST": self._completes(api_completions.MESSAGES)},
            "/v1/messages/count_tokens": {"POST": self._count_tokens},
            "/v1/embeddings": {"POST": self._embed},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._empty},
            "/ping": {"GET": self._empty, "POST": self._empty},
            "/version": {
                "GET": lambda exchange: exchange.send_json(200, {"version": VLLM_VERSION})
            },
            # Real engines do not count here by default: the figure is always 0.
            "/load": {"GET": lambda exchange: exchange.send_json(200, {"server_load": 0})},
            "/metrics": {"GET": self._metrics_page},
            "/tokenize": {"POST": self._tokenize},
            "/detokenize": {"POST": self._detokenize},
            "/kv_event_sources": {"GET": self._event_sources},
            "/reset_prefix_cache": {"POST": self._reset},
        }
        if self._sglang is not None:
            loads = self._sglang.loads
            self._routes["/v1/loads"] = {"GET": lambda exchange: exchange.send_json(200, loads())}

    def handle(self, exchange: Exchange) -> None:
        """Answer a request; what it says wrong is answered in vLLM's error form."""
        methods = self._routes.get(exchange.path.partition("?")[0])
        if methods is None:
            exchange.send_json(404, _MISSING)
            return
        route = methods.get(exchange.method)
        if route is None:
            exchange.send_json(405, _WRONG_METHOD)
            return
        try:
            route(exchange)
        except ApiError as error:
            exchange.send_json(error.status, error.body())

    def _completes(self, api: Api) -> Route:
        return lambda exchange: self._completions.answer(exchange, api)

    def _embed(self, exchange: Exchange) -> None:
        body = requests.parse_json(exchange.body)
        exchange.body.clear()
        self._embeddings.answer(exchange, body, *requests.model_of(body, self._settings))

    def _count_tokens(self, exchange: Exchange) -> None:
        body = requests.parse_json(exchange.body)
        requests.model_of(body, self._settings)
        count = len(requests.chat_tokens(api_messages.as_chat(body, counts_only=True)))
        told = {"input_tokens": count, "context_management": {"original_input_tokens": count}}
        exchange.send_json(200, told)

    def _models(self, exchange: Exchange) -> None:
        created = int(self._driver.started_at)
        permission = {
            "id": f"modelperm-{self._settings.engine_id.replace('-', '')[:16]}",
            "object": "model_permission",
            "created": created,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        base = self._settings.model
        models = [
            {
                "id": name,
                "object": "model",
                "created": created,
                "owned_by": "vllm",
                "root": base if name == base else f"/adapters/{name}",
                "parent": None if name == base else base,
                "max_model_len": self._context_limit,
                "permission": [permission],
            }
            for name in (base, *self._settings.adapters)
        ]
        exchange.send_json(200, {"object": "list", "data": models})

    def _metrics_page(self, exchange: Exchange) -> None:
        exchange.send(200, self._metrics.render(), METRICS_TYPE)

    def _empty(self, exchange: Exchange) -> None:
        exchange.send(200, b"")

    def _tokenize(self, exchange: Exchange) -> None:
        body = requests.parse_json(exchange.body)
        requests.model_of(body, self._settings)
        if "messages" in body:
            ids = requests.chat_tokens(body).tolist()
        else:
            ids = tk.tokenize([str(body.get("prompt", "")).encode()]).tolist()
        texts = (
            [tk.detokenize([number]) for number in ids] if body.get("return_token_strs") else None
        )
        exchange.send_json(
            200,
            {
                "count": len(ids),
                "max_model_len": self._context_limit,
                "tokens": ids,
                "token_strs": texts,
            },
        )

    def _detokenize(self, exchange: Exchange) -> None:
        body = requests.parse_json(exchange.body)
        requests.model_of(body, self._settings)
        ids = body.get("tokens")
        if not isinstance(ids, list) or not all(_is_token(number) for number in ids):
            raise ApiError("tokens must be a list of token ids.", param="tokens")
        exchange.send_json(200, {"prompt": tk.detokenize(ids)})

    def _event_sources(self, exchange: Exchange) -> None:
        sources = {} if self._publisher is None else {"0": self._publisher.source()}
        exchange.send_json(200, sources)

    def _reset(self, exchange: Exchange) -> None:
        self._driver.reset_cache()
        exchange.send(200, b"")


def _is_token(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 2 ** (8 * tk.PIECE_BYTES)
