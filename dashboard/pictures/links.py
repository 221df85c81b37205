"""Addresses that show one picture to whoever knows them: made by a member, revoked by a member."""

from __future__ import annotations

from django.core import signing
from django.db import transaction
from django.utils import timezone

from dashboard.access import AuditAction, Visitor, record_action
from dashboard.models import PictureLink, Project
from dashboard.pictures.drawing import Subject, project_of

SALT = "paceline.pictures.link"


def make_link(visitor: Visitor, subject: Subject) -> PictureLink:
    """The active link of this subject that the visitor made before, or a new one."""
    name = subject._meta.model_name or ""
    project = project_of(subject)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        made = {name: subject, "project": project, "made_by": visitor.user}
        found = PictureLink.objects.filter(revoked_at=None, **made).first()
        if found is not None:
            return found
        link = PictureLink.objects.create(**made)
        record_action(visitor, AuditAction.PICTURE_SHARED, project, subject)
    return link


def revoke_link(visitor: Visitor, link: PictureLink) -> bool:
    """False where it was revoked already."""
    with transaction.atomic():
        if not PictureLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now()):
            return False
        record_action(visitor, AuditAction.PICTURE_REVOKED, link.project, link.subject)
    return True


def link_token(link: PictureLink) -> str:
    """By which its address opens; made of the site's key, stored nowhere."""
    return signing.Signer(salt=SALT).sign(str(link.pk)).replace(":", "~")


def find_link(token: str) -> PictureLink | None:
    """None where the token isn't one of ours, or its link is revoked or gone."""
    try:
        key = signing.Signer(salt=SALT).unsign(token.replace("~", ":"))
    except signing.BadSignature:
        return None
    rows = PictureLink.objects.filter(pk=int(key), revoked_at=None, project__removed_slug="")
    return rows.select_related("project", "series", "regression", "run").first()
