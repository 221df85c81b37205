from __future__ import annotations

import shutil
import socket

import pytest

from dashboard.services import ServiceError
from dashboard.services.preflight import check_disk, check_port


def test_a_busy_port_is_told_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        sentence = rf"^Port {port} on 127.0.0.1 can't be used \(address already in use\); .* PORT={port + 1}$"
        with pytest.raises(ServiceError, match=sentence):
            check_port("127.0.0.1", port)


def test_a_port_is_free_again_right_after_its_server():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = other.accept()
            accepted.close()
            assert client.recv(1) == b""
    check_port("127.0.0.1", port)


def test_a_full_disk_is_told_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, 12_345_678))
    with pytest.raises(ServiceError, match=r"^Only 12 MB are free for .* needs 500 MB; free some"):
        check_disk(tmp_path / "home")


@pytest.mark.parametrize("host", ["nosuch.invalid", "a b", "192.0.2.1"])
def test_a_foreign_address_names_its_variable(host: str) -> None:
    with pytest.raises(ServiceError, match=r"^PACELINE_HOST is '.+', which is no address of this machine"):
        check_port(host, 8000)
