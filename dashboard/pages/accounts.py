"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth import views

sign_in = views.LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True)
sign_out = views.LogoutView.as_view()
