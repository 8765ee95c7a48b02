"""Addresses of what people do to plans and pools."""

from django.urls import path

from controlplane.serving import views

app_name = "serving"
urlpatterns = [
    path("changes/add", views.change_add, name="change_add"),
    path("changes/<uuid:pk>/<slug:verb>", views.change_act, name="change_act"),
    path("pools/<uuid:pk>/policy", views.pool_policy, name="pool_policy"),
    path("pools/<uuid:pk>/slo", views.pool_slo, name="pool_slo"),
    path("pools/<uuid:pk>/rollout", views.pool_rollout, name="pool_rollout"),
    path("pools/<uuid:pk>/gateway", views.pool_gateway, name="pool_gateway"),
]
