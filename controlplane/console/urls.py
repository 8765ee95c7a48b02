"""Addresses of the pages."""

from django.urls import path

from controlplane.console.views import (
    account,
    control,
    demo,
    fleet,
    money,
    overview,
    planning,
    race,
    routing,
    serving,
)

app_name = "console"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("login", account.sign_in, name="login"),
    path("logout", account.sign_out, name="logout"),
    path("account", account.account, name="account"),
    path("preferences", account.set_preferences, name="preferences"),
    path("help", account.help_page, name="help"),
    path("problems/<slug:code>", account.problem, name="problem"),
    path("search", control.search, name="search"),
    path("fleet/nodes", fleet.nodes, name="nodes"),
    path("fleet/nodes/<uuid:pk>", fleet.node, name="node"),
    path("serving/pools", serving.pools, name="pools"),
    path("serving/pools/<uuid:pk>", serving.pool, name="pool"),
    path("serving/roles", serving.roles, name="roles"),
    path("serving/changes", serving.changes, name="changes"),
    path("serving/changes/<uuid:pk>", serving.change, name="change"),
    path("serving/routers", serving.routers, name="routers"),
    path("routing/decisions", routing.decisions, name="decisions"),
    path("routing/decisions/<uuid:pk>", routing.decision, name="decision"),
    path("routing/test", routing.test, name="route-test"),
    path("race", race.race, name="race"),
    path("race.csv", race.figures, name="race-figures"),
    path("planning", planning.planning, name="planning"),
    path("planning/scenarios/<uuid:pk>", planning.scenario, name="scenario"),
    path("planning/runs/<uuid:pk>", planning.run, name="scenario-run"),
    path("planning/advice/<uuid:pk>", planning.advice, name="advice"),
    path("planning/compare", planning.compare, name="compare-runs"),
    path("cost", money.cost, name="cost"),
    path("operations", control.operations, name="operations"),
    path("operations/<uuid:pk>", control.operation, name="operation"),
    path("audit", control.audit, name="audit"),
    path("demo/plug", demo.pull, name="plug"),
]
