"""The games of cs2_vision and their pictures, and the detector that reads them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests import prepared_python
from tests.harness.strangers import UNCOMPILED
from tests.trainers.conftest import import_script
from tests.trainers.cs2_vision_fixtures import FOLDER, HARNESS
from tests.trainers.cs2_vision_fixtures import screen as screen
from tests.trainers.cs2_vision_fixtures import vision as vision
from tests.trainers.cs2_vision_fixtures import weights as weights

# --- scenes, games, pictures --------------------------------------------------------------------------------


def test_a_picture_shows_the_enemy_where_the_truth_says() -> None:
    renderer, scenes = import_script(FOLDER, "renderer"), import_script(FOLDER, "scenes")
    place = scenes.ROUTES[1][0]
    empty, _ = renderer.draw(scenes.Scene("play", 1, place, 3))
    for aside in (-0.3, 0.0, 0.4):
        enemy = scenes.Enemy(scenes.angle(3) + aside, 2.0, 0)
        picture, truth = renderer.draw(scenes.Scene("play", 1, place, 3, (enemy,)))
        rows, columns = np.nonzero(picture != empty)
        assert truth.target[0] == pytest.approx(columns.mean(), abs=1.5)
        assert truth.target[1] == pytest.approx((rows.min() + rows.max()) / 2, abs=1.5)


def test_an_enemy_behind_a_wall_is_not_seen() -> None:
    renderer, scenes = import_script(FOLDER, "renderer"), import_script(FOLDER, "scenes")
    place, far = scenes.ROUTES[0][0], scenes.Enemy(scenes.angle(0), 30.0, 0)
    _, truth = renderer.draw(scenes.Scene("play", 0, place, 0, (far,)))
    assert truth.target is None


def test_consecutive_pictures_are_alike_but_not_the_same(vision: ModuleType) -> None:
    hashing, game = import_script(FOLDER, "hashing"), vision.Game(0)
    screens = [game.screen()]
    for _ in range(60):
        game.step(0)
        screens.append(game.screen())
    assert len({screen.tobytes() for screen in screens[20:]}) == 41
    found = hashing.perceptual_hashes(np.stack(screens))
    other = np.bitwise_count(found[20:-1] ^ found[21:]).sum(axis=1)
    assert np.median(other) < 30 < np.bitwise_count(found[0] ^ found[20:]).sum(axis=1).min()


def turn_to(games: ModuleType, target: float) -> int:
    """The action that brings an enemy nearer to the crosshair; firing, where it is near enough."""
    # One turn moves the middle of the picture by about this many pixels.
    half_turn = games.MIDDLE * math.tan(2 * math.pi / games.HEADINGS) / math.tan(math.radians(33)) / 2
    if abs(target - games.MIDDLE) <= half_turn:
        return int(games.FIRE)
    return int(games.RIGHT if target > games.MIDDLE else games.LEFT)


def test_who_aims_and_fires_hits_most_enemies(vision: ModuleType) -> None:
    games = import_script(FOLDER, "games")
    game = games.Game(3)
    for _ in range(600):
        target = game.seen().target
        game.step(games.HOLD if target is None else turn_to(games, target[0]))
    assert game.came > 15
    assert game.hits > 0.8 * game.came


def test_a_player_who_does_nothing_falls(vision: ModuleType) -> None:
    game, kinds = vision.Game(3), []
    for _ in range(300):
        game.step(0)
        kinds.append(game.kind)
    assert game.hits == 0
    assert set(kinds) == {"play", "loading", "menu", "buy", "score"}
    assert game.number in range(3)


@pytest.mark.parametrize("transfer", ["png", "rgb", "palette", "packed"])
def test_a_picture_comes_through_unchanged(transfer: str, screen: Any) -> None:
    pictures = import_script(FOLDER, "pictures")
    come = pictures.decode(pictures.encode([screen, screen], transfer), transfer)
    assert come.shape == (2, 120, 160, 3)
    assert (come[1] == pictures.PALETTE[screen]).all()


def test_a_picture_as_a_file_is_a_png(screen: Any) -> None:
    pictures = import_script(FOLDER, "pictures")
    content = pictures.as_png(pictures.PALETTE[screen])
    assert content[:16] == b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    assert (pictures.from_png(content) == pictures.PALETTE[screen]).all()


# --- the detector and its weights ---------------------------------------------------------------------------


def test_what_was_trained_tells_screens_and_enemies_of_new_pictures(weights: Path) -> None:
    training, store = import_script(FOLDER, "train_detector"), import_script(FOLDER, "weights")
    pictures, truths = training.draw_pictures(200, seed=99)
    vision = import_script(FOLDER, "detector").Vision(store.load(weights), torch.device("cpu"))
    views = vision.look(training.PALETTE[pictures])
    assert np.mean([view.kind == truth.kind for view, truth in zip(views, truths, strict=True)]) > 0.95
    untrained = training.judge(training.Detector().eval(), 0)
    assert untrained + 0.2 < np.mean(
        [truth.is_met(view.kind, view.target) for view, truth in zip(views, truths, strict=True)]
    )


def test_a_picture_is_seen_alike_in_every_batch(weights: Path) -> None:
    training, store = import_script(FOLDER, "train_detector"), import_script(FOLDER, "weights")
    pictures = training.PALETTE[training.draw_pictures(64, seed=5)[0]]
    vision = import_script(FOLDER, "detector").Vision(store.load(weights), torch.device("cpu"))
    alone = [vision.look(picture[None])[0] for picture in pictures]
    assert [view for at in range(0, 64, 8) for view in vision.look(pictures[at : at + 8])] == alone


def test_the_same_seed_trains_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    training = import_script(FOLDER, "train_detector")
    monkeypatch.setattr(training, "SCENES", 64)
    first, again, other = (training.train(3, seed).state_dict() for seed in (0, 0, 1))
    assert all((first[name] == again[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


def test_two_processes_at_once_train_one_detector(tmp_path: Path) -> None:
    code = UNCOMPILED + "import weights, pathlib; weights.make(pathlib.Path(sys.argv[1]), 1, 0)"
    command = [sys.executable, "-c", code, str(tmp_path / "new" / "weights.pt")]
    path = {**os.environ, "PYTHONPATH": f"{FOLDER}:{HARNESS}"}
    with prepared_python.prepared_starts():
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, env=path, text=True) for _ in range(2)]
    said = "".join(process.communicate()[0] for process in started)
    assert said.count("training the detector once") == said.count("1 updates in") == 1
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["weights.lock", "weights.pt"]


def test_the_weights_lie_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = import_script(FOLDER, "weights")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = store.weights_path(5, 0)
    assert path.parent == tmp_path / "paceline" / "cs2_vision"
    assert len({path, store.weights_path(5, 1), store.weights_path(6, 0)}) == 3


def test_a_file_without_weights_gets_one_sentence(tmp_path: Path) -> None:
    store = import_script(FOLDER, "weights")
    (tmp_path / "none.pt").write_bytes(b"no weights")
    with pytest.raises(store.WeightsError, match="holds no weights of the detector"):
        store.load(tmp_path / "none.pt")
