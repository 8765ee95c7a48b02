"""Addresses of what people do in planning."""

from django.urls import path

from controlplane.planning import race_views, views

app_name = "planning"
urlpatterns = [
    path("scenarios/add", views.scenario_add, name="scenario_add"),
    path("scenarios/<uuid:pk>/run", views.scenario_run, name="scenario_run"),
    path("scenarios/<uuid:pk>/retire", views.scenario_retire, name="scenario_retire"),
    path("runs/<uuid:pk>/cancel", views.run_cancel, name="run_cancel"),
    path("advice/<uuid:pk>/plan", views.advice_plan, name="advice_plan"),
    path("race/start", race_views.race_start, name="race_start"),
    path("race/rate", race_views.race_rate, name="race_rate"),
    path("race/stop", race_views.race_stop, name="race_stop"),
    path("savings", views.savings_calculator, name="savings"),
]
