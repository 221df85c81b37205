"""The accounts of the site: listed, invited, and what an administrator changes of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.access import visitor_of
from dashboard.accounts import account_changes
from dashboard.accounts.account_changes import CODES, SITE_PERMISSIONS, AccountError
from dashboard.accounts.invitations import send_invitation
from dashboard.accounts.links import password_link
from dashboard.accounts.views import provider_name
from dashboard.mail_server import sends_mail
from dashboard.pages.paging import requested_page
from dashboard.pages.site.sections import site_context
from dashboard.querysets.accounts import listed_accounts, shown_account

ROWS_PER_PAGE = 50
LONGEST_SEARCH = 254
LABELS = {code: label for code, label, _ in SITE_PERMISSIONS}


def confirm_identity(request: HttpRequest) -> None:
    """Whoever finds an open browser grants nothing: the password is asked for again, 15 minutes after."""
    raise_if_reauthentication_required(request, app="")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def accounts_page(request: HttpRequest) -> HttpResponse:
    """POST invites: `name`, `email`, `administrator`, `permissions`. The answer shows a link: no redirect."""
    if request.method != "POST":
        return render_accounts(request)
    confirm_identity(request)
    typed = {
        **read_texts(request),
        "administrator": bool(request.POST.get("administrator")),
        "permissions": request.POST.getlist("permissions"),
    }
    try:
        invited = account_changes.invite_account(
            visitor_of(request),
            typed["name"],
            typed["email"],
            administrator=typed["administrator"],
            permissions=typed["permissions"],
        )
    except AccountError as error:
        return render_accounts(request, error=error, typed=typed)
    link = password_link(invited)
    mailed = bool(invited.email) and sends_mail() and send_invitation(invited, link)
    return render_accounts(request, invited={"invited": invited, "link": link, "mailed": mailed})


def read_texts(request: HttpRequest) -> dict[str, Any]:
    return {name: request.POST.get(name, "").strip() for name in ("name", "email")}


def render_accounts(
    request: HttpRequest,
    *,
    error: AccountError | None = None,
    typed: dict[str, Any] | None = None,
    invited: dict[str, Any] | None = None,
) -> HttpResponse:
    search = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    page = requested_page(request, listed_accounts(search), ROWS_PER_PAGE)
    shown = {
        **site_context(request, "site-accounts"),
        "page": page,
        "accounts": [{"row": row, "rights": rights_of(row)} for row in page],
        "search": search,
        "errors": error_by_field(error),
        "typed": typed or {"name": "", "email": "", "administrator": False, "permissions": []},
        "choices": SITE_PERMISSIONS,
        "sends_mail": sends_mail(),
        "provider_name": provider_name(),
        **(invited or {}),
    }
    return render(request, "site/accounts.html", shown, status=400 if error else 200)


def error_by_field(error: AccountError | None) -> dict[str, str]:
    return {
        **dict.fromkeys(("name", "email", "administrator", "permissions"), ""),
        **({error.field: str(error)} if error else {}),
    }


def rights_of(account: User) -> list[str]:
    """What it may do on the whole site, in the words of the form; nothing of an administrator."""
    if account.is_superuser:
        return []
    own = {permission.codename for permission in account.user_permissions.all()}
    return [label for code, label in LABELS.items() if code in own]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account_page(request: HttpRequest, pk: int) -> HttpResponse:
    """POST's `action` is a key of ACTIONS, or `link`, whose answer shows the link: no redirect."""
    account = find_account(pk)
    if request.method != "POST":
        return render_account(request, account)
    confirm_identity(request)
    action = request.POST.get("action", "")
    try:
        if action == "link":
            link = account_changes.give_password_link(visitor_of(request), account)
            return render_account(request, account, {"link": link})
        if action not in ACTIONS:
            raise AccountError(f"action: must be one of link, {', '.join(ACTIONS)}.")
        messages.success(request, ACTIONS[action](request, account))
    except AccountError as error:
        if not error.field:
            messages.error(request, str(error))
            return redirect("site-account", pk)
        typed = {**read_texts(request)} if action == "details" else {}
        return render_account(request, find_account(pk), {**typed, "errors": error_by_field(error)}, 400)
    return redirect("site-account", pk)


def find_account(pk: int) -> User:
    account = shown_account(pk)
    if account is None:
        raise Http404("There is no such account.")
    return account


def change_details(request: HttpRequest, account: User) -> str:
    texts = read_texts(request)
    changed = account_changes.change_details(visitor_of(request), account, texts["name"], texts["email"])
    return f"The account is {account} now." if changed else "Nothing had to be changed."


def change_rights(request: HttpRequest, account: User) -> str:
    administrator = bool(request.POST.get("administrator"))
    chosen = request.POST.getlist("permissions")
    account_changes.change_rights(
        visitor_of(request), account, administrator=administrator, permissions=chosen
    )
    return f"{account} administers this site now." if administrator else f"The rights of {account} are saved."


def close_account(request: HttpRequest, account: User) -> str:
    account_changes.close_account(visitor_of(request), account)
    return f"The account {account} is closed: nobody is signed in with it any more."


def open_account(request: HttpRequest, account: User) -> str:
    account_changes.open_account(visitor_of(request), account)
    return f"{account} may sign in again."


def take_second_factor(request: HttpRequest, account: User) -> str:
    account_changes.take_second_factor(visitor_of(request), account)
    return f"{account} signs in with the password alone until a new second factor is set up."


def unlink_provider(request: HttpRequest, account: User) -> str:
    account_changes.unlink_provider(visitor_of(request), account)
    return f"{account} is linked with no account of {provider_name() or 'a provider'} any more."


ACTIONS: dict[str, Callable[[HttpRequest, User], str]] = {
    "details": change_details,
    "rights": change_rights,
    "close": close_account,
    "open": open_account,
    "factor": take_second_factor,
    "unlink": unlink_provider,
}


def render_account(
    request: HttpRequest, account: User, about: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    provider = settings.PACELINE_OIDC
    shown = {
        **site_context(request, "site-accounts"),
        "account": account,
        "own": account == request.user,
        "name": account.username,
        "email": account.email,
        "choices": SITE_PERMISSIONS,
        "chosen": {permission.codename for permission in account.user_permissions.all()} & set(CODES),
        "roles": account.__dict__["shown_roles"],
        "provider_name": provider_name(),
        "by_group": bool(provider and provider.admin_group),
        "errors": error_by_field(None),
        **(about or {}),
    }
    return render(request, "site/account.html", shown, status=status)
