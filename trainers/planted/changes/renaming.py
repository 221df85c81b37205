"""Neutral commits that add and rename functions which every step calls: profiles are compared across them."""

from __future__ import annotations

from ..edits import Change, Edit

BEST_ACTION = '''    def best_action(self, view: View) -> int:
        """Return the action of the highest value."""
        with torch.inference_mode():
            return int(self.network(torch.from_numpy(view)).argmax())
'''

GREEDY_ACTION = '''    def values(self, view: View) -> torch.Tensor:
        """Return what each action is worth."""
        return self.network(torch.from_numpy(view))

    def greedy_action(self, view: View) -> int:
        """Return the action of the highest value."""
        with torch.inference_mode():
            return int(self.values(view).argmax())
'''

EXPLORATION = """        exploration = max(EXPLORATION, 1 - number / EXPLORATION_STEPS)
        if self.random.random() < exploration:
"""

EXPLORATION_FUNCTION = '''def exploration_at(number: int) -> float:
    """Return the share of random actions at this step."""
    return max(EXPLORATION, 1 - number / EXPLORATION_STEPS)


def main() -> None:
'''

RENAMING = (
    Change(
        "Name the exploration schedule",
        (
            Edit("train.py", EXPLORATION, "        if self.random.random() < exploration_at(number):\n"),
            Edit("train.py", "def main() -> None:\n", EXPLORATION_FUNCTION),
            Edit(
                "train.py",
                "    def act(self, number: int) -> int:\n",
                "    def decide(self, number: int) -> int:\n",
            ),
            Edit(
                "train.py",
                "            action = self.act(number)\n",
                "            action = self.decide(number)\n",
            ),
        ),
    ),
    Change(
        "Call the best action greedy and expose the values",
        (
            Edit("model.py", BEST_ACTION, GREEDY_ACTION),
            Edit("train.py", "self.agent.best_action(", "self.agent.greedy_action("),
        ),
    ),
)
