"""The service's answers as text: sentences with units, or short lists."""

from __future__ import annotations

import json

from detector import View

SENTENCES = {
    "play": "The screen shows the view of a player who holds a weapon.",
    "loading": "The screen shows a bar of progress. The next round is being loaded.",
    "buy": "The screen shows a list of equipment that the player can buy.",
    "menu": "The screen shows the menu of the game. Nobody is playing yet.",
    "score": "The screen shows a table of all players and their points. The round is over.",
}


def in_words(view: View) -> str:
    """The long answer."""
    position = "not visible"
    if view.target is not None:
        position = "x = {} px, y = {} px, height = {} px".format(*view.target)
    things = [{"name": "enemy", "position": position, "confidence": f"{view.confidence:.0%}"}]
    display = [
        {"element": "health", "text": f"{view.health} of 100"},
        {"element": "ammunition", "text": f"{view.ammo} of 100"},
        {"element": "notice of a hit", "text": "shown" if view.killed else "not shown"},
    ]
    interface = {"screen": view.kind, "is_playing": view.kind == "play", "description": SENTENCES[view.kind]}
    return json.dumps({"interface": interface, "objects": things, "display": display})


def in_short(view: View) -> str:
    """The compact answer: kind, enemy, health, ammunition, notice."""
    parts = [view.kind, view.target, view.health, view.ammo, int(view.killed)]
    return json.dumps(parts, separators=(",", ":"))
