from django.urls import path

from dashboard.triggers import forge_hook, hook

urlpatterns = [
    path("hooks/<slug:slug>/", hook.receive_hook, name="hook"),
    path("hooks/<slug:slug>/forge/", forge_hook.receive_forge_hook, name="forge-hook"),
]
