"""The pages of an account: allauth's views with our templates, and the page that leads to them."""

from __future__ import annotations

from typing import Any

from allauth.account import views as passwords
from allauth.mfa.base import views as codes
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as apps
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions import views as sessions
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts import second_factors
from dashboard.mail_server import sends_mail


def provider_name() -> str:
    """The OpenID provider's; empty where the site has none."""
    return settings.PACELINE_OIDC.name if settings.PACELINE_OIDC else ""


class SignInView(passwords.LoginView):
    template_name = "account/sign_in.html"

    def get_context_data(self, **named: Any) -> dict[str, Any]:
        return super().get_context_data(
            **named,
            next=self.get_next_url() or "",
            provider_name=provider_name(),
            sends_mail=sends_mail(),
        )


class PasswordResetView(passwords.PasswordResetView):
    template_name = "account/password_reset.html"

    def get_context_data(self, **named: Any) -> dict[str, Any]:
        return super().get_context_data(**named, sends_mail=sends_mail())

    def post(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not sends_mail():
            return redirect("account_reset_password")
        return super().post(request, *arguments, **named)


class PasswordNewView(passwords.PasswordResetFromKeyView):
    """Where a link leads: of a new account its first password is set."""

    template_name = "account/password_new.html"

    def form_valid(self, form: Any) -> HttpResponse:
        user = self.reset_user
        is_new = user.last_login is None and not user.has_usable_password()
        # For the sentence that allauth says after it.
        template_name = "password_set" if is_new else "password_renewed"
        self.request.__dict__["password_message"] = f"account/messages/{template_name}.txt"
        return super().form_valid(form)


@never_cache
def redirect_to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """In place of the administration's own form; who is signed in already may not come in."""
    if request.user.is_authenticated:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next", "") or reverse("admin:index"))


@require_safe
@never_cache
@login_required
def account_page(request: HttpRequest) -> HttpResponse:
    """What an account has: its password, second factor, provider and sessions."""
    listed = UserSession.objects.purge_and_list(request.user)
    context = {
        "second_factor": second_factors.has_second_factor(request.user),
        "must_have_second_factor": second_factors.must_have_second_factor(request, request.user),
        "provider_name": provider_name(),
        "linked": SocialAccount.objects.filter(user_id=request.user.pk).exists(),
        "sessions": sorted(listed, key=lambda session: session.created_at, reverse=True),
    }
    return render(request, "account/account.html", context)


@login_required
def refuse_first_password(request: HttpRequest) -> HttpResponse:
    """A password would be a way around the provider; who has none otherwise gets a link."""
    messages.info(request, "Your account has no password here: an administrator can send you a link for one.")
    return redirect("account")


@login_required
def second_factor_page(_request: HttpRequest) -> HttpResponse:
    """allauth leads here once a second factor was set up or removed."""
    return redirect("account")


class RecoveryCodesView(recovery_codes.ViewRecoveryCodesView):
    template_name = "account/recovery_codes.html"


sign_in = SignInView.as_view()
sign_out = require_POST(passwords.LogoutView.as_view())
change_password = passwords.PasswordChangeView.as_view(
    template_name="account/password_change.html", success_url="/account/"
)
reset_password = PasswordResetView.as_view()
reset_sent = passwords.PasswordResetDoneView.as_view(template_name="account/password_reset_sent.html")
set_password = PasswordNewView.as_view()
confirm_password = passwords.ReauthenticateView.as_view(template_name="account/confirm.html")
inactive = passwords.AccountInactiveView.as_view(template_name="account/inactive.html")
enter_code = codes.AuthenticateView.as_view(template_name="account/code.html")
confirm_code = codes.ReauthenticateView.as_view(template_name="account/confirm_code.html")
set_up_app = never_cache(apps.ActivateTOTPView.as_view(template_name="account/second_factor.html"))
remove_app = apps.DeactivateTOTPView.as_view(template_name="account/second_factor_remove.html")
show_recovery_codes = never_cache(RecoveryCodesView.as_view())
renew_recovery_codes = recovery_codes.GenerateRecoveryCodesView.as_view(
    template_name="account/recovery_codes_new.html"
)
download_recovery_codes = recovery_codes.DownloadRecoveryCodesView.as_view(
    template_name="account/recovery_codes.txt"
)
# The list is part of the page of the account: this address has none to lead back to.
end_other_sessions = require_POST(sessions.ListUserSessionsView.as_view(success_url=reverse_lazy("account")))
