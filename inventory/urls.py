"""Addresses of what people do to the fleet."""

from django.urls import path

from inventory import views

app_name = "inventory"
urlpatterns = [
    path("import", views.node_import, name="import"),
    path("nodes/<uuid:pk>/cordon", views.node_cordon, name="cordon"),
    path("nodes/<uuid:pk>/uncordon", views.node_uncordon, name="uncordon"),
]
