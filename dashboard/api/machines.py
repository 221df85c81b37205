"""The machines that measure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import OneOf, page_address
from dashboard.models import Machine
from dashboard.querysets import machines as machine_queries
from dashboard.sentences.measurements.machines import describe_hardware

router = Router(tags=["machines"])


class HardwareText(BaseModel):
    """What a machine is, each in words; a dash where its host doesn't tell."""

    processor: str
    cores: str
    memory: str
    gpus: str
    driver: str
    system: str
    kernel: str


class MachineRow(BaseModel):
    """A host that measures, and how often its newest runs were kept out of judgement."""

    id: int
    url: str = Field(description="Its page.")
    name: str
    pool: str
    state: str
    hardware: HardwareText
    agent_version: str
    joined_at: datetime | None
    seen_at: datetime | None = Field(description="When its agent was last heard.")
    newest_runs: int = Field(description="How many of its newest done runs the next number is of.")
    tainted_runs: int


class MachinePage(ListedPage):
    items: list[MachineRow]


class MachineQuery(PageQuery):
    pool: str = Field("", max_length=60)
    state: Annotated[str, OneOf(["", *Machine.State.values])] = ""


@router.get("machines", url_name="api-machines", operation_id="list_machines", response=MachinePage)
def list_machines(request: HttpRequest, query: Query[MachineQuery]) -> dict[str, Any]:
    """The machines of the site, by name."""
    wanted = {"pool__name": query.pool, "state": query.state}
    rows = Machine.objects.filter(**{name: value for name, value in wanted.items() if value})
    details = machine_queries.MACHINES_OF_KEYS
    return read_page(request, query, rows, ("name",), lambda row: describe_machine(request, row), details)


@router.get("machines/{int:pk}", url_name="api-machine", operation_id="read_machine", response=MachineRow)
def read_machine(request: HttpRequest, pk: int) -> MachineRow:
    """One machine."""
    return describe_machine(request, get_object_or_404(machine_queries.machines_with_newest_runs(), pk=pk))


def describe_machine(request: HttpRequest, machine: Any) -> MachineRow:
    """`machine` is of `machines_with_newest_runs`."""
    hardware = describe_hardware(machine.fingerprint)
    return MachineRow(
        id=machine.pk,
        url=page_address(request, machine),
        name=machine.name,
        pool=machine.pool.name,
        state=machine.state,
        hardware=HardwareText(
            processor=hardware.processor,
            cores=hardware.cores,
            memory=hardware.memory,
            gpus=hardware.gpus,
            driver=hardware.driver,
            system=hardware.system,
            kernel=hardware.kernel,
        ),
        agent_version=machine.agent_version,
        joined_at=machine.joined_at,
        seen_at=machine.seen_at,
        newest_runs=len(machine.newest_runs),
        tainted_runs=sum(row["tainted"] for row in machine.newest_runs),
    )
