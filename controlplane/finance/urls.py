"""Addresses of exports."""

from django.urls import path

from controlplane.finance import views

app_name = "finance"
urlpatterns = [path("ledger.csv", views.ledger_csv, name="ledger_csv")]
