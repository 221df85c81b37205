"""Neutral commits that change code and neither its time nor its memory, nor what is learned."""

from __future__ import annotations

from ..edits import Change, Edit, lines_after, lines_before

LAYERS = """        self.network = nn.Sequential(
            nn.Linear(VIEW * VIEW, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, ACTIONS),
        )
"""

LAYERS_FUNCTION = '''def layers(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes, with a ReLU between each two."""
    built: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        built += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*built[:-1])


class Agent:
'''

OPTIMIZER_FUNCTION = '''def optimizer_of(network: nn.Module) -> torch.optim.Optimizer:
    """One update of all parameters is one kernel."""
    return torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, fused=True)


class Agent:
'''

DIGEST = """        digest = hashlib.sha256()
        for parameter in self.agent.network.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        return digest.hexdigest()
"""

DIGEST_FILE = '''"""A network's parameters as one short text."""

import hashlib

from torch import nn


def digest_of(network: nn.Module) -> str:
    """Return a hash of the parameters."""
    digest = hashlib.sha256()
    for parameter in network.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()
'''

ARGUMENTS_END = '''    return parser.parse_args()


def main() -> None:
    """Train as the arguments say."""
    args = arguments()
    torch.set_num_threads(1)
'''

REFACTORINGS = (
    Change(
        "Complete the type hints of the memory",
        (Edit("replay.py", "    def __len__(self):\n", "    def __len__(self) -> int:\n"),),
    ),
    Change(
        "Say what the agent doesn't do",
        (
            Edit(
                "model.py",
                '    """The network with its optimizer: acts, and learns from batches."""\n',
                '    """The network with its optimizer: acts, and learns from batches.\n\n'
                '    It has no second network for its targets: the game is simple enough without.\n    """\n',
            ),
        ),
    ),
    Change(
        "Build the layers in a function",
        (
            Edit("model.py", LAYERS, "        self.network = layers(VIEW * VIEW, HIDDEN, HIDDEN, ACTIONS)\n"),
            Edit("model.py", "class Agent:\n", LAYERS_FUNCTION),
            lines_before("model.py", "import torch", "from itertools import pairwise", ""),
        ),
    ),
    Change(
        "Say why the view is replaced",
        (
            lines_before(
                "train.py",
                "        self.view = self.game.reset() if ended else next_view",
                "        # The view of a finished game is never acted on: the next one starts at once.",
            ),
        ),
    ),
    Change(
        "Return early while the memory is short",
        (
            Edit(
                "train.py",
                "        if len(self.replay) >= self.batch_size:\n            self.update()\n",
                "        if len(self.replay) < self.batch_size:\n            return\n        self.update()\n",
            ),
        ),
    ),
    Change(
        "Explain every argument",
        (
            Edit("train.py", '"0"))\n', '"0"), help="seed of all that is drawn")\n'),
            Edit("train.py", "default=100_000)\n", 'default=100_000, help="decisions of the snake")\n'),
        ),
    ),
    Change(
        "Explain the constants of the model",
        (
            lines_after("model.py", "HIDDEN = 64", '"""Units in each hidden layer."""', ""),
            lines_after("model.py", "DISCOUNT = 0.9", '"""What a reward is worth one step later."""'),
        ),
    ),
    Change(
        "Make the optimizer in a function",
        (
            Edit("model.py", "class Agent:\n", OPTIMIZER_FUNCTION),
            Edit(
                "model.py",
                "torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE, fused=True)\n",
                "optimizer_of(self.network)\n",
            ),
        ),
    ),
    Change(
        "Move the hash of the parameters to a file of its own",
        (
            Edit("digest.py", "", DIGEST_FILE),
            Edit("train.py", DIGEST, "        return digest_of(self.agent.network)\n"),
            Edit("train.py", "import hashlib\n", ""),
            lines_before(
                "train.py", "from environment import ACTIONS, Snake", "from digest import digest_of"
            ),
        ),
    ),
    Change(
        "Read the arguments in a function",
        (
            Edit(
                "train.py",
                'def main() -> None:\n    """Train as the arguments say."""\n',
                'def arguments() -> argparse.Namespace:\n    """Read the command line."""\n',
            ),
            Edit("train.py", "    args = parser.parse_args()\n    torch.set_num_threads(1)\n", ARGUMENTS_END),
        ),
    ),
    Change(
        "Call what the network says predicted",
        (
            Edit(
                "model.py",
                "        values = self.network(batch.views)",
                "        predicted = self.network(batch.views)",
            ),
            Edit("model.py", "mse_loss(values, targets)", "mse_loss(predicted, targets)"),
        ),
    ),
    Change(
        "Say what the last line is",
        (
            Edit(
                "train.py",
                "    print(trainer.fingerprint())\n",
                '    print(f"parameters {trainer.fingerprint()}")\n',
            ),
        ),
    ),
    Change(
        "Part the summary with semicolons",
        (Edit("replay.py", 'return ", ".join(parts)', 'return "; ".join(parts)'),),
    ),
    Change(
        "Explain how exploration ends",
        (
            lines_after(
                "train.py", "EXPLORATION_STEPS = 200", '"""Steps in which random actions become rare."""'
            ),
            lines_after("train.py", "EXPLORATION = 0.05", '"""Their share from then on."""'),
        ),
    ),
    Change(
        "Say what a transition is for",
        (
            Edit(
                "replay.py",
                '    """One step: what was seen, what was done, what came of it."""\n',
                '    """One step: what was seen, what was done, what came of it. It never changes."""\n',
            ),
        ),
    ),
    Change(
        "Say why targets have no gradient",
        (
            Edit(
                "model.py",
                "        with torch.no_grad():\n",
                "        # They are what is aimed at: only the values move.\n        with torch.no_grad():\n",
            ),
        ),
    ),
    Change(
        "Name the generator's type",
        (
            Edit(
                "train.py",
                "        self.random = random.Random(seed)\n",
                "        self.random: random.Random = random.Random(seed)\n",
            ),
        ),
    ),
    Change(
        "Say what the rows of a batch are",
        (
            Edit(
                "tensors.py",
                '    """What one update learns from, a row per transition."""\n',
                '    """What one update learns from, a row per transition, as they were drawn."""\n',
            ),
        ),
    ),
)
