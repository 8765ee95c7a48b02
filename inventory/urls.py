"""Addresses of what people do to the fleet."""

from django.urls import path

from inventory import finding_views, views

app_name = "inventory"
urlpatterns = [
    path("clusters/add", views.cluster_add, name="cluster-add"),
    path("clusters/<uuid:pk>/change", views.cluster_change, name="cluster-change"),
    path("clusters/<uuid:pk>/test", views.cluster_test, name="cluster-test"),
    path("findings/accept", finding_views.findings_accept, name="findings-accept"),
    path("findings/<uuid:pk>/<slug:answer>", finding_views.finding_answer, name="finding-answer"),
    path("import", views.node_import, name="import"),
    path("nodes/<uuid:pk>/cordon", views.node_cordon, name="cordon"),
    path("nodes/<uuid:pk>/uncordon", views.node_uncordon, name="uncordon"),
]
