"""All settings, read once from the environment; the comment above each variable documents it."""

import os
from pathlib import Path

from django.utils.translation import gettext_lazy as _

from controlplane.config.embedded import postgres, valkey
from controlplane.config.embedded.places import PROJECT, places
from controlplane.config.env import Env

env = Env(os.environ)
VAR = places().var

# DEBUG: true shows tracebacks in the browser; never in production.
DEBUG = env.flag("DEBUG", default=False)
# SECRET_KEY, SECRET_KEY_FILE: signs sessions. Made once in var/ when neither is given.
SECRET_KEY = env.kept_secret("SECRET_KEY", VAR / "secret-key")
# ALLOWED_HOSTS: comma-separated host names that this installation answers to.
ALLOWED_HOSTS = env.items("ALLOWED_HOSTS", default=("127.0.0.1", "localhost", "[::1]"))
# CSRF_TRUSTED_ORIGINS: comma-separated origins (scheme and host) in front of a TLS proxy.
CSRF_TRUSTED_ORIGINS = env.items("CSRF_TRUSTED_ORIGINS", default=())
# SECURE_COOKIES: true when browsers reach the console over HTTPS.
SECURE_COOKIES = env.flag("SECURE_COOKIES", default=False)
# INSTALLATION: name shown in the top bar.
INSTALLATION = env.text("INSTALLATION", default="Consort")
# KEY_ENVIRONMENT: part of every key's prefix, so that secret scanners can tell installations apart.
KEY_ENVIRONMENT = env.text("KEY_ENVIRONMENT", default="local")
# TOKEN_PEPPER, TOKEN_PEPPER_FILE: mixed into the digests of API tokens. Made once in var/.
TOKEN_PEPPERS = {1: env.kept_secret("TOKEN_PEPPER", VAR / "token-pepper")}
# TRUSTED_PROXIES: comma-separated networks whose X-Forwarded-For counts.
TRUSTED_PROXIES = env.items("TRUSTED_PROXIES", default=())
# API_BODY_LIMIT: bytes that the body of an API request may have.
API_BODY_LIMIT = env.number("API_BODY_LIMIT", default=1024 * 1024, low=1024, high=32 * 1024 * 1024)
# LEDGER_CURRENCY: ISO 4217 currency of the cost ledger; one per installation.
LEDGER_CURRENCY = env.text("LEDGER_CURRENCY", default="USD")
# ENGINE_HOST_URL: address of the process that runs engines of the target `local`.
ENGINE_HOST_URL = env.text("ENGINE_HOST_URL", default="http://127.0.0.1:8460")
# ENGINE_HOST_TOKEN, ENGINE_HOST_TOKEN_FILE: what the engine host asks for. Made once in var/.
ENGINE_HOST_TOKEN = env.kept_secret("ENGINE_HOST_TOKEN", VAR / "engine-host-token")
# LOCAL_KV_EVENTS: true lets real engines of this machine publish what enters their caches. vLLM
# opens that port on every address: whoever reaches it reads token ids, so only behind a firewall.
LOCAL_KV_EVENTS = env.flag("LOCAL_KV_EVENTS", default=False)
# DEMO_PLUG: dotted path of a module that ends processes on purpose; the demo sets it.
DEMO_PLUG = env.text("DEMO_PLUG", default="")
# SERVING_LEASE_SECONDS: how long the loop of a pool waits for a worker that died.
SERVING_LEASE_SECONDS = env.number("SERVING_LEASE_SECONDS", default=15, low=1, high=300)
# CLUSTER_CREDENTIALS_DIR: folder whose folders hold credentials of Kubernetes clusters (see
# docs/clusters.md); without it only `in-cluster` is a connection reference.
CLUSTER_CREDENTIALS_DIR = env.text("CLUSTER_CREDENTIALS_DIR", default="")
# CLUSTER_RUNS: pieces of work that talk to one cluster at once; stay below the number of worker
# processes, so that a cluster that does not answer leaves some for the others.
CLUSTER_RUNS = env.number("CLUSTER_RUNS", default=3, low=1, high=64)
# CLUSTER_TIMEOUT_SECONDS: seconds in which an API server answers one call.
CLUSTER_TIMEOUT_SECONDS = env.number("CLUSTER_TIMEOUT_SECONDS", default=10, low=1, high=60)
# PREFETCH_IMAGE: image of this product, with tag or digest, whose jobs count and copy model files
# on the nodes of clusters; without it, nothing is fetched there.
PREFETCH_IMAGE = env.text("PREFETCH_IMAGE", default="")
# PREFETCH_SECRET: name of the Secret, in the namespace of the engines, with AWS_ACCESS_KEY_ID and
# AWS_SECRET_ACCESS_KEY of internal object stores; empty: they ask for none.
PREFETCH_SECRET = env.text("PREFETCH_SECRET", default="")
# PLANNING_REQUESTS: requests in virtual time for a run of a scenario, each option tried once; about
# 1.5 ms of a core each.
PLANNING_REQUESTS = env.number("PLANNING_REQUESTS", default=16_000, low=100, high=1_000_000)
# SIMULATED: true marks every figure of this installation as simulated, as in the demo.
SIMULATED = env.flag("SIMULATED", default=False)

ROOT_URLCONF = "controlplane.config.urls"
WSGI_APPLICATION = "controlplane.config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = False

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "django_htmx",
    "csp",
    "controlplane.config",
    "controlplane.common",
    "controlplane.audit",
    "controlplane.operations",
    "controlplane.tenancy",
    "inventory",
    "controlplane.telemetry",
    "controlplane.serving",
    "controlplane.metering",
    "controlplane.decisions",
    "controlplane.finance",
    "controlplane.planning",
    "controlplane.console",
    "controlplane.api",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "controlplane.common.middleware.RequestIdMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "controlplane.tenancy.middleware.PreferencesMiddleware",
    "controlplane.console.middleware.ProblemPageMiddleware",
    "controlplane.audit.middleware.DenialsMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "controlplane.console.context.frame",
            ],
            "builtins": ["django.templatetags.i18n", "django.templatetags.static"],
        },
    }
]

# DATABASE_URL, DATABASE_URL_FILE: postgresql://… ; without it an embedded PostgreSQL 18 runs in
# var/.
DATABASES = {"default": env.database("DATABASE_URL", default=postgres.url())}
DATABASES["default"] |= {
    "CONN_MAX_AGE": 60,
    "CONN_HEALTH_CHECKS": True,
    "TEST": {"NAME": env.text("TEST_DATABASE", default="test_consort")},
}

# BROKER_URL, BROKER_URL_FILE: redis://… or amqp://… ; without it an embedded Valkey 9 runs in
# var/.
CELERY_BROKER_URL = env.broker("BROKER_URL", default=valkey.broker_url())
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_SOFT_TIME_LIMIT = 270
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A live race keeps a process for up to half an hour; only workers started with `-Q live` take one.
CELERY_TASK_ROUTES = {"controlplane.planning.tasks.run_race": {"queue": "live"}}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# The broker is a wake-up only: rows are the truth, and sweeps send again what was lost. A message
# of a dead worker comes back after the visibility timeout, which stays above the longest task.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 360,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
}
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}

# CACHE_URL, CACHE_URL_FILE: redis://… for the shared cache; without it the embedded Valkey.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": env.address("CACHE_URL", default=valkey.cache_url()),
    }
}

AUTH_USER_MODEL = "tenancy.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "console:login"
LOGIN_REDIRECT_URL = "console:overview"
SESSION_COOKIE_NAME = "__Host-sessionid" if SECURE_COOKIES else "sessionid"
SESSION_COOKIE_AGE = 8 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ko", _("Korean"))]
LOCALE_PATHS = [PROJECT / "controlplane" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_DIRS = [PROJECT / "controlplane" / "console" / "assets"]
# STATIC_ROOT: folder that `manage.py collectstatic` fills, as an image does; static/ in var/.
STATIC_ROOT = Path(env.text("STATIC_ROOT", default=str(VAR / "static")))
WHITENOISE_USE_FINDERS = True

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "controlplane.api.authentication.TokenAuthentication",
        "controlplane.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["controlplane.api.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "controlplane.api.parsers.JSONParser",
        "controlplane.api.parsers.MergePatchParser",
    ],
    # The API has one format, so a parameter or suffix that asks for another is an unknown one.
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_PAGINATION_CLASS": "controlplane.api.pagination.CursorPagination",
    "DEFAULT_FILTER_BACKENDS": ["controlplane.api.filters.StrictFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "controlplane.api.schema.ApiSchema",
    "EXCEPTION_HANDLER": "controlplane.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Consort",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "ArtefactKindEnum": "controlplane.serving.models.ModelArtefact.Kind",
        "ClusterKindEnum": "inventory.models.Cluster.Kind",
        "FigureSourceEnum": "controlplane.telemetry.models.Evidence",
        "FindingKindEnum": "inventory.models.Finding.Kind",
        "OperationOutputStateEnum": "controlplane.operations.models.Operation.State",
        "PoolPolicyEnum": "controlplane.serving.models.Pool.Policy",
        "RoutingPolicyEnum": "controlplane.decisions.api.questions.POLICIES",
    },
    "PREPROCESSING_HOOKS": ["controlplane.api.schema.views"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "controlplane.api.schema.finish",
    ],
}

# Who decides what a person may do; `common.permissions` asks it.
PERMISSIONS_BACKEND = "controlplane.tenancy.permissions.RolePermissions"
# Checks of a change plan, each (plan) -> CheckResult; see docs/architecture.md.
PLAN_CHECKS = [
    "controlplane.serving.checks.memory.check",
    "controlplane.serving.checks.engine.check",
    "controlplane.serving.checks.artefact.check",
    "controlplane.serving.checks.cluster.check",
    "controlplane.serving.checks.contracts.check",
    "controlplane.serving.checks.assignments.check",
    "controlplane.serving.checks.floor.check",
    "controlplane.finance.checks.check",
]

# Who may hold a node, each (node) -> sentence, "" if not. A node that is held is neither retired
# nor given to repair.
NODE_HOLDERS = ["controlplane.serving.selectors.holders.holds"]
# Who needs the connection of a cluster as it is, each (cluster) -> sentence, "" if not.
CLUSTER_HOLDERS = ["controlplane.serving.selectors.holders.holds_cluster"]

# Cost per hour of accelerators for pool documents: (accelerator ids) -> price by id, None unknown.
ENDPOINT_PRICES = "controlplane.finance.selectors.accelerator_prices"

# LIVENESS_FILE: file that a worker and beat touch while they are alive, for probes; none if empty.
LIVENESS_FILE = env.text("LIVENESS_FILE", default="")

# LOG_LEVEL: DEBUG, INFO, WARNING or ERROR.
LOG_LEVEL = env.text("LOG_LEVEL", default="INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    # A line for each request to engines and routers would hide everything else.
    "loggers": {"httpx": {"level": "WARNING"}},
}
