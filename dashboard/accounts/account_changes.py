"""What an administrator of the site does to accounts: each change whole, and in the audit log."""

from __future__ import annotations

from collections.abc import Iterable

from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.db import transaction

from dashboard.access import Actor, AuditAction, record_action
from dashboard.accounts import second_factors
from dashboard.accounts.links import password_link

APP = "dashboard"
# What an account that is no administrator may do on the whole site: (code, label, what it does).
SITE_PERMISSIONS = (
    ("add_project", "Add projects", "whose code the hosts then run"),
    ("add_trigger", "Operate every project", "also private ones"),
    ("add_triage", "Triage", "in every project that it may read"),
    ("change_channel", "Keep channels", "of every project that it may read"),
    ("add_machine", "Add machines", "by join codes"),
    ("change_machine", "Change machines", "pause, drain, resume and retire them"),
)
FIELD_LABELS = {"name": "Name", "email": "E-mail address"}
CODES = tuple(code for code, _, _ in SITE_PERMISSIONS)


class AccountError(Exception):
    """What was asked for can't be; the message is one sentence for people that stands at the field."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


def invite_account(
    actor: Actor, name: str, email: str, *, administrator: bool, permissions: Iterable[str]
) -> User:
    """A new account without a password: `password_link` gives the link by which the person sets one."""
    user = User(username=_read_name(name), email=email.strip())
    user.is_superuser = user.is_staff = administrator
    user.set_unusable_password()
    _check_details(user)
    codes = _known_codes(permissions)
    with transaction.atomic():
        # Of two that make it at once one waits here, and sees the other's.
        _lock_accounts()
        _check_name_is_free(user)
        user.save(force_insert=True)
        user.user_permissions.set(_permission_rows(codes))
        about = {"account": user.username, "administrator": administrator, "permissions": codes}
        record_action(actor, AuditAction.ACCOUNT_ADDED, None, user, **about)
    return user


def change_details(actor: Actor, user: User, name: str, email: str) -> list[str]:
    """The name by which the person signs in, and the address that mail goes to; the names of what changed."""
    before = (user.username, user.email)
    user.username, user.email = _read_name(name), email.strip()
    _check_details(user)
    changed = [
        label
        for label, old, new in zip(("name", "email"), before, (user.username, user.email), strict=True)
        if old != new
    ]
    with transaction.atomic():
        _lock_accounts()
        _check_name_is_free(user)
        if changed:
            user.save(update_fields=["username", "email"])
            _record_change(actor, user, "details", fields=changed, before=before[0])
    return changed


def change_rights(actor: Actor, user: User, *, administrator: bool, permissions: Iterable[str]) -> None:
    """Whether it administers the site, and which of SITE_PERMISSIONS it has. Others of Django's stay."""
    codes = _known_codes(permissions)
    with transaction.atomic():
        _lock_accounts()
        row = User.objects.get(pk=user.pk)
        if row.is_superuser and not administrator:
            _check_other_administrator(row)
        if row.is_superuser != administrator:
            User.objects.filter(pk=row.pk).update(is_superuser=administrator, is_staff=administrator)
        row.user_permissions.remove(*_permission_rows(CODES))
        row.user_permissions.add(*_permission_rows(codes))
        _record_change(actor, row, "rights", administrator=administrator, permissions=codes)


def close_account(actor: Actor, user: User) -> None:
    """It can't sign in, its sessions end, and its tokens are worth nothing, until it is opened again."""
    with transaction.atomic():
        _lock_accounts()
        row = User.objects.get(pk=user.pk)
        if not row.is_active:
            return
        if row.is_superuser:
            _check_other_administrator(row)
        User.objects.filter(pk=row.pk).update(is_active=False)
        end_sessions(row)
        _record_change(actor, row, "closed")


def open_account(actor: Actor, user: User) -> None:
    with transaction.atomic():
        if User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
            _record_change(actor, user, "opened")


def give_password_link(actor: Actor, user: User) -> str:
    """A link by which the person sets a password, once and within a day."""
    if not user.is_active:
        raise AccountError(f"The account {user} is closed: open it first.")
    with transaction.atomic():
        _record_change(actor, user, "password link")
    return password_link(user)


def take_second_factor(actor: Actor, user: User) -> bool:
    """For who has lost phone and recovery codes; whether there was one."""
    with transaction.atomic():
        had = second_factors.reset_second_factor(user)
        if had:
            _record_change(actor, user, "second factor")
    return had


def unlink_provider(actor: Actor, user: User) -> bool:
    """The account at the provider makes one of its own here when it signs in again; whether it was linked."""
    with transaction.atomic():
        linked = bool(SocialAccount.objects.filter(user_id=user.pk).delete()[0])
        if linked:
            _record_change(actor, user, "provider")
    return linked


def end_sessions(user: User) -> None:
    for session in UserSession.objects.filter(user_id=user.pk):
        session.end()


def _record_change(actor: Actor, user: User, change: str, **about: object) -> None:
    record_action(actor, AuditAction.ACCOUNT_CHANGED, None, user, account=str(user), change=change, **about)


def _lock_accounts() -> None:
    """Two administrators that take each other's rights at once must not both succeed."""
    list(User.objects.filter(is_superuser=True).select_for_update(no_key=True).order_by("pk"))


def _check_other_administrator(user: User) -> None:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if not others.exists():
        raise AccountError(
            f"{user} is the last administrator of this site: make another one first.", "administrator"
        )


def _read_name(name: str) -> str:
    """In the spelling that Django keeps: the same name in other characters of Unicode is no other name."""
    return str(User.normalize_username(name.strip()))


def _check_details(user: User) -> None:
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        name = "name" if field == "username" else field
        raise AccountError(f"{FIELD_LABELS.get(name, name)}: {sentences[0]}", name) from None


def _check_name_is_free(user: User) -> None:
    if User.objects.filter(username__iexact=user.username).exclude(pk=user.pk).exists():
        raise AccountError(f"There is an account {user.username} already.", "name")


def _known_codes(permissions: Iterable[str]) -> list[str]:
    asked = list(permissions)
    unknown = next((code for code in asked if code not in CODES), None)
    if unknown is not None:
        raise AccountError(f"Permissions: they must be among {', '.join(CODES)}.", "permissions")
    return [code for code in CODES if code in asked]


def _permission_rows(codes: Iterable[str]) -> list[Permission]:
    return list(Permission.objects.filter(content_type__app_label=APP, codename__in=list(codes)))
