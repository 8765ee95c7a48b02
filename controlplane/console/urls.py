"""Addresses of the pages."""

from django.urls import path

from controlplane.console.views import account, control, demo, fleet, money, overview, serving

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
    path("cost", money.cost, name="cost"),
    path("operations", control.operations, name="operations"),
    path("operations/<uuid:pk>", control.operation, name="operation"),
    path("audit", control.audit, name="audit"),
    path("demo/plug", demo.pull, name="plug"),
]
