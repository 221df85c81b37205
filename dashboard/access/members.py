"""Who has which role in a project. A project that has an admin keeps one."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from dashboard.access.audit import Actor, AuditAction, record_action
from dashboard.access.errors import AccessError
from dashboard.models import Membership, Project

Role = Membership.Role


def add_member(actor: Actor, project: Project, user_name: str, role: str) -> Membership:
    """Give a person a role. AccessError where there is no such account, or it has one already."""
    _check_role(role)
    user = User.objects.filter(username=user_name.replace("\0", "").strip(), is_active=True).first()
    if user is None:
        raise AccessError(f"name: there is no account {user_name.strip()[:150]!r}.")
    with transaction.atomic():
        _lock_project(project)
        if project.memberships.filter(user=user).exists():
            raise AccessError(f"name: {user} is a member already; change the role below.")
        member = Membership.objects.create(project=project, user=user, role=role)
        record_action(actor, AuditAction.MEMBER_ADDED, project, user, account=str(user), role=role)
    return member


def change_role(actor: Actor, member: Membership, role: str) -> None:
    _check_role(role)
    with transaction.atomic():
        _lock_project(member.project)
        before = Membership.objects.get(pk=member.pk).role
        if before == role:
            return
        if before == Role.ADMIN:
            _check_other_admin(member)
        Membership.objects.filter(pk=member.pk).update(role=role)
        about = {"account": str(member.user), "role": role, "before": before}
        record_action(actor, AuditAction.MEMBER_CHANGED, member.project, member.user, **about)


def remove_member(actor: Actor, member: Membership) -> None:
    with transaction.atomic():
        _lock_project(member.project)
        if Membership.objects.filter(pk=member.pk, role=Role.ADMIN).exists():
            _check_other_admin(member)
        Membership.objects.filter(pk=member.pk).delete()
        record_action(
            actor, AuditAction.MEMBER_REMOVED, member.project, member.user, account=str(member.user)
        )


def _lock_project(project: Project) -> None:
    """Two admins that remove each other at once must not both succeed."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)


def _check_other_admin(member: Membership) -> None:
    admins = Membership.objects.filter(project=member.project, role=Role.ADMIN, user__is_active=True)
    if not admins.exclude(pk=member.pk).exists():
        raise AccessError(f"role: {member.user} is the last admin here: make another one first.")


def _check_role(role: str) -> None:
    if role not in Role.values:
        raise AccessError(f"role: must be one of {', '.join(Role.values)}.")
