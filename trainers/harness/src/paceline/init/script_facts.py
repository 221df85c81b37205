"""What a Python file says of itself without being run: imports, signs of training, options, how it starts."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .options import Option, Spelling, read_options

BACKWARD, OPTIMIZER, TRAINER, ENVIRONMENT = "backward", "optimizer", "trainer", "environment"
OPTIMIZERS = frozenset(
    {*("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "LBFGS", "NAdam", "RAdam", "Muon", "Lion")}
)
# A method that trains, of an object that Lightning, stable-baselines3 and their like make.
TRAINING_METHODS = frozenset({"fit", "learn"})
FRAMEWORKS = frozenset(
    {
        *("torch", "lightning", "pytorch_lightning", "transformers", "accelerate", "stable_baselines3"),
        *("trl", "timm", "tianshou", "sb3_contrib", "rllib", "ray"),
    }
)
RANK_MAKERS = frozenset({"init_process_group", "init_rpc", "init_device_mesh"})
ENVIRONMENT_MAKERS = frozenset({"make", "make_vec", "SyncVectorEnv", "AsyncVectorEnv", "make_vec_env"})


@dataclass(frozen=True, slots=True)
class ScriptFacts:
    """Of one file. `imports` are needed to load it, by their dotted names; relative ones begin with dots."""

    imports: tuple[str, ...] = ()
    signs: frozenset[str] = frozenset()
    has_guard: bool = False
    is_program: bool = False
    joins_ranks: bool = False
    options: tuple[Option, ...] = ()
    spelling: Spelling = Spelling.UNKNOWN
    docstring: str = ""
    functions: frozenset[str] = frozenset()

    @property
    def is_relative(self) -> bool:
        """Whether it imports from its own package, so that it only runs as a module."""
        return any(name.startswith(".") for name in self.imports)


def read_script(source: bytes) -> ScriptFacts | None:
    """The facts of a file's source, None where it isn't Python that this interpreter can read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a stranger's escapes in strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    spelling, options = read_options(tree)
    has_guard = any(_is_guard(node) for node in tree.body)
    return ScriptFacts(
        imports=tuple(dict.fromkeys(_needed_imports(tree.body))),
        signs=frozenset(sign for call in calls for sign in _find_signs(call)),
        has_guard=has_guard,
        is_program=has_guard or _trains_when_loaded(tree),
        joins_ranks=any(_call_name(call) in RANK_MAKERS for call in calls),
        options=options,
        spelling=spelling,
        docstring=ast.get_docstring(tree) or "",
        functions=frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef)),
    )


def _needed_imports(body: Sequence[ast.stmt]) -> Iterator[str]:
    """What must be there for the file to be loaded: not what is tried, nor what functions import later."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            joint = "" if module.endswith(".") else "."
            yield from (f"{module}{joint}{alias.name}" for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.If):
            # Under any other condition it may not be needed, such as a logger that is off.
            yield from _needed_imports(node.body if _is_guard(node) else [])
        elif isinstance(node, ast.Try):
            yield from _needed_imports([] if node.handlers else node.body)
        elif isinstance(node, ast.With | ast.For | ast.While | ast.ClassDef):
            yield from _needed_imports(node.body)


def _find_signs(call: ast.Call) -> Iterator[str]:
    name = _call_name(call)
    is_method = isinstance(call.func, ast.Attribute)
    if is_method and name in ("backward", "manual_backward"):
        yield BACKWARD
    if name in OPTIMIZERS or ast.unparse(call.func).startswith(("torch.optim.", "optim.")):
        yield OPTIMIZER
    if name.endswith("Trainer") or (is_method and name in TRAINING_METHODS):
        yield TRAINER
    if name in ENVIRONMENT_MAKERS and ast.unparse(call.func).startswith(("gym", "make_vec", "DummyVec")):
        yield ENVIRONMENT


def _call_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _trains_when_loaded(tree: ast.Module) -> bool:
    """Whether statements outside all functions and classes loop over training, without a guard."""
    loose = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if not any(isinstance(node, ast.For | ast.While | ast.With | ast.Try | ast.Expr) for node in loose):
        return False
    calls = [call for node in loose for call in ast.walk(node) if isinstance(call, ast.Call)]
    signs = {sign for call in calls for sign in _find_signs(call)}
    names = {_call_name(call) for call in calls}
    return bool(signs) or bool(names & {"main", "train", "parse_args", "run"})
