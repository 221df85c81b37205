from pathlib import Path

import pytest
from paceline import manifest
from paceline.manifest import ManifestError
from paceline.manifest.benchmarks import Case
from paceline.manifest.scaling import Sweep

SNAKE = """
[environment]
requirements = ["requirements.txt"]

[benchmarks.snake]
version = 2
script = "snake/train.py"
params = { batch = 64, fused = true }
cases = [ { variant = "baseline" }, { variant = "optimized", batch = 128 } ]
warmup_steps = 100
steps = 1000
repetitions = 3

[benchmarks.snake.guard]
score = { minimum = 3.0 }

[benchmarks.snake.quick]
steps = 50
params = { log = false }
"""


def parse_snake(text: str = SNAKE) -> manifest.Benchmark:
    return manifest.parse_manifest(text, "paceline.toml").benchmarks["snake"]


def test_cases_are_merged_over_params_and_spelt_canonically() -> None:
    keys = [case.key for case in parse_snake().cases]
    assert keys == ["batch=64,fused=true,variant=baseline", "batch=128,fused=true,variant=optimized"]


def test_defaults() -> None:
    bench = manifest.parse_manifest('[benchmarks.a]\nversion=1\nscript="a.py"\nsteps=50', "m").benchmarks["a"]
    assert (bench.repetitions, bench.warmup_steps, bench.counting_steps, bench.countings) == (5, 0, 50, 2)
    assert bench.cases == (Case({}, ""),)


def test_the_environment_is_optional() -> None:
    assert manifest.parse_manifest(SNAKE, "m").environment == manifest.Environment(("requirements.txt",))
    smallest = '[benchmarks.a]\nversion=1\nscript="a.py"\nsteps=5'
    assert manifest.parse_manifest(smallest, "m").environment is None


def test_settings_choose_a_case() -> None:
    assert parse_snake().case({"variant": "baseline"}).params["batch"] == 64
    assert parse_snake().case({"fused": True, "variant": "optimized"}).params["batch"] == 128


def test_settings_that_no_case_has_make_one() -> None:
    chosen = parse_snake().case({"variant": "optimized", "batch": 7})
    assert chosen.key == "batch=7,fused=true,variant=optimized"


def test_several_cases_need_a_choice() -> None:
    with pytest.raises(ManifestError, match="several cases, choose one with --set: batch=64"):
        parse_snake().case({})


def test_quick_is_shorter_and_unguarded() -> None:
    quick = parse_snake().as_quick()
    assert (quick.steps, quick.counting_steps, quick.countings, quick.guard) == (50, 50, 1, {})
    assert quick.repetitions == 2


WRONG = {
    "benchmarks.snake.warmup_step: is unknown, did you mean 'warmup_steps'?": ("warmup_steps", "warmup_step"),
    "benchmarks.snake.quick.step: is unknown, did you mean 'steps'?": ("steps = 50", "step = 50"),
    "benchmarks.snake.version: must be an integer": ("version = 2", 'version = "2"'),
    "benchmarks.snake.version: is 0, must be between 1": ("version = 2", "version = 0"),
    "benchmarks.snake.version: is missing": ("version = 2", ""),
    "benchmarks.snake.steps: must be an integer": ("steps = 1000", "steps = true"),
    "benchmarks.snake.script: is '../train.py', must be a path inside": ("snake/train.py", "../train.py"),
    "benchmarks.snake.params.batch: must be a number": ("batch = 64", "batch = [1]"),
    "benchmarks.snake.cases[0].variant: must be a number": ('"baseline"', '"a,b"'),
    "benchmarks.snake.cases[1]: is the same case as": ('"optimized", batch = 128', '"baseline"'),
    "benchmarks.snake.guard.score: needs a minimum": ("minimum = 3.0", ""),
    "benchmarks.snake.guard.score.minimum: must be a finite": ("3.0", "nan"),
    "benchmarks.snake.guard.score.minimum: is 3, above the maximum of 2": ("3.0", "3.0, maximum = 2"),
    "benchmarks.snake.learning_seeds: names 0, the seed of every": (
        "version = 2",
        "version = 2\nlearning_seeds = [0, 1]",
    ),
    "benchmarks.snake.params.batch: must be a number of at most 64 bits": ("batch = 64", f"batch = {2**63}"),
    "benchmarks.snake.params: has 52 members, at most 50": (
        "batch = 64",
        ", ".join(f"p{number} = 1" for number in range(51)),
    ),
    "environment: says nothing, name requirements, lock": ('requirements = ["requirements.txt"]', ""),
    "manifest.environmen: is unknown, did you mean 'environment'?": ("[environment]", "[environmen]"),
    "is not valid TOML": ("version = 2", "version = "),
}


def test_a_crowd_of_cases_is_refused_before_they_are_made() -> None:
    head = '[benchmarks.a]\nversion=1\nscript="a.py"\nsteps=5\ncases = ['
    crowd = ",".join(f"{{n={number}}}" for number in range(20_000))
    with pytest.raises(
        ManifestError, match=r"benchmarks\.a\.cases: has 20000 cases, at most 1000 are allowed"
    ):
        manifest.parse_manifest(f"{head}{crowd}]", "m")
    with pytest.raises(ManifestError, match="benchmarks: are 201, at most 200 are allowed"):
        manifest.parse_manifest("\n".join(f"[benchmarks.b{number}]" for number in range(201)), "m")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('"x\\ny" = 1', r"benchmarks.a.'x\ny': is unknown"),
        ('guard = {"x\\u0000" = {minimum = 1}}', r"benchmarks.a.guard.'x\x00': must be a printable name"),
        (
            'limits = {"gauge.x\\ny" = {maximum = 1}}',
            r"benchmarks.a.limits.'gauge.x\ny': must be a printable",
        ),
        (f'gc = "{"k" * 5000}"', f"benchmarks.a.gc: '{'k' * 200}...' is unknown"),
    ],
)
def test_a_sentence_is_one_line_that_can_be_read(line: str, sentence: str) -> None:
    with pytest.raises(ManifestError) as caught:
        manifest.parse_manifest(f'[benchmarks.a]\nversion=1\nscript="a.py"\nsteps=5\n{line}', "m")
    assert str(caught.value).startswith(f"m: {sentence}")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"#" * (256 * 1024 + 1), "m: is larger than 262144 bytes"),
        (b"\xff", "m: is not UTF-8: invalid start byte at byte 0"),
    ],
)
def test_what_is_no_text_of_a_bearable_size_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ManifestError, match=sentence):
        manifest.decode_manifest(data, "m")


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "paceline.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SNAKE.encode())
    assert list(manifest.load_manifest(path).benchmarks) == ["snake"]


COMPLETE = """
[benchmarks.sweep]
version = 1
script = "sweep.py"
steps = 100
affinity = [1, 0]
gc = "frozen"
variables = { DATA_FOLDER = "data" }

[benchmarks.sweep.limits]
gpu_utilization = { minimum = 80 }
"count.drops" = { maximum = 0 }
"phase_time:learn" = { minimum = 0.001, maximum = 0.01 }

[benchmarks.sweep.scaling]
parameter = "episodes"
values = [1024, 128, 256, 512]
params = { log = false }

[benchmarks.sweep.job]
unit = "episodes"
amount = 50000

[benchmarks.sweep.quick]
scaling = true
"""


def parse_sweep(text: str = COMPLETE) -> manifest.Benchmark:
    return manifest.parse_manifest(text, "paceline.toml").benchmarks["sweep"]


def test_a_sweep_is_sorted_and_measured_twice() -> None:
    found = parse_sweep().scaling
    assert found == Sweep("episodes", (128, 256, 512, 1024), 2, {"log": False})


def test_limits_name_a_metric_or_a_phase_of_one() -> None:
    found = [(bound.name, bound.minimum, bound.maximum) for bound in parse_sweep().limits]
    expected = [("gpu_utilization", 80, None), ("count.drops", None, 0), ("phase_time:learn", 0.001, 0.01)]
    assert found == expected


def test_the_surroundings_are_read() -> None:
    found = parse_sweep()
    assert (found.affinity, found.gc, found.variables) == ((0, 1), "frozen", {"DATA_FOLDER": "data"})
    assert (found.job and (found.job.amount, found.job.unit)) == (50000, "episodes")
    snake = parse_snake()
    assert (snake.affinity, snake.gc, snake.variables, snake.job) == (None, "default", {}, None)


def test_quick_sweeps_once_or_not_at_all() -> None:
    quick = parse_sweep().as_quick().scaling
    assert quick is not None
    assert (quick.values, quick.repetitions) == ((128, 256, 512, 1024), 1)
    without = parse_sweep(COMPLETE.replace("scaling = true", "")).as_quick()
    assert (without.scaling, without.job) == (None, None)


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [
        ("scaling_exponent", "episodes", True),
        ("scaling_exponent_step_time", "episodes", True),
        ("projected_time", "episodes", True),
        ("projected_time", "steps", False),
        ("step_time", "episodes", False),
    ],
)
def test_some_metrics_are_read_off_the_sweep_alone(metric: str, unit: str, expected: bool) -> None:
    sweep = parse_sweep(COMPLETE.replace('unit = "episodes"', f'unit = "{unit}"'))
    assert sweep.needs_sweep(metric) is expected
    assert not parse_snake().needs_sweep(metric)


WRONG_SWEEPS = {
    "scaling.value: is unknown, did you mean 'values'?": ("[1024, 128", "[1024, 128, 64]\nvalue = [128"),
    "scaling.values: must be 3 to 20 different": ("[1024, 128, 256, 512]", "[128, 256]"),
    "scaling.values: must be 3 to 20 different numbers": ("[1024, 128, 256, 512]", "[128, 256, 128]"),
    "scaling.values: has 0, must be above 0": ("[1024, 128, 256, 512]", "[0, 128, 256]"),
    "scaling.values: must differ by a factor of 1.5": ("[1024, 128, 256, 512]", "[128, 129, 130]"),
    "scaling.values: must be a list of finite numbers": ("[1024, 128, 256, 512]", '["many"]'),
    "scaling.values: is missing; was 'vaules' meant": ("values = ", "vaules = "),
    "scaling.parameter: is 'a b', must be a parameter": ('"episodes"\nv', '"a b"\nv'),
    "scaling.params.episodes: is the swept parameter": ("log = false", "episodes = 3"),
    "scaling.repetitions: is 11, must be between 1 and 10": ("params = {", "repetitions = 11\nparams = {"),
    "limits.gpu_utilisation: is unknown, did you mean 'gpu_utilization'": (
        "gpu_utilization =",
        "gpu_utilisation =",
    ),
    "limits.count: must be spelt with its name, in quotes": ('"count.drops" =', "count.drops ="),
    "limits.throughput:learn: throughput has no phases": ("phase_time:learn", "throughput:learn"),
    "limits.gpu_utilization: needs a minimum or a maximum": ("{ minimum = 80 }", "{}"),
    "limits.gpu_utilization.least: is unknown": ("{ minimum = 80 }", "{ least = 80 }"),
    "limits.phase_time:learn.minimum: is 1, above the maximum of 0.01": ("0.001", "1"),
    "job.amont: is unknown, did you mean 'amount'": ("amount = 50000", "amount = 50000\namont = 1"),
    "job.amount: is missing": ("amount = 50000", ""),
    "job.amount: is -1, must be above 0": ("50000", "-1"),
    "job.unit: is missing": ('unit = "episodes"', ""),
    "affinity: must be different integers between 0": ("[1, 0]", "[1, 1]"),
    "affinity: must be a list of integers": ("[1, 0]", '"all"'),
    "gc: 'frosen' is unknown, did you mean 'frozen'": ('"frozen"', '"frosen"'),
    "gc: must be one of default, disabled, frozen": ('"frozen"', "false"),
    "variables.OMP_NUM_THREADS: is set by the protocol, use threads": ("DATA_FOLDER", "OMP_NUM_THREADS"),
    "variables.PYTHONPATH: is set by the protocol, name the folders in python_path": (
        "DATA_FOLDER",
        "PYTHONPATH",
    ),
    "variables.A-B: must be named with letters": ("DATA_FOLDER", "A-B"),
    "variables.DATA_FOLDER: must be a string": ('"data"', "3"),
    "afinity: is unknown, did you mean 'affinity'?": ("affinity =", "afinity ="),
}


@pytest.mark.parametrize("sentence", WRONG_SWEEPS)
def test_a_wrong_addition_is_named(sentence: str) -> None:
    old, new = WRONG_SWEEPS[sentence]
    assert old in COMPLETE
    with pytest.raises(ManifestError) as caught:
        parse_sweep(COMPLETE.replace(old, new, 1))
    assert f"paceline.toml: benchmarks.sweep.{sentence}" in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "table"), [("scaling_exponent_steps", "scaling"), ("projected_time", "job")]
)
def test_a_limit_on_what_is_never_measured_is_refused(metric: str, table: str) -> None:
    head = '[benchmarks.a]\nversion = 1\nscript = "a.py"\nsteps = 5\n'
    text = f"{head}limits = {{ {metric} = {{ maximum = 2 }} }}"
    with pytest.raises(ManifestError, match=f"benchmarks.a.limits.{metric}: needs the table {table}"):
        manifest.parse_manifest(text, "m")


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_key_is_named(sentence: str) -> None:
    old, new = WRONG[sentence]
    with pytest.raises(ManifestError) as caught:
        parse_snake(SNAKE.replace(old, new, 1))
    assert sentence.removeprefix("manifest.") in str(caught.value)
    assert str(caught.value).startswith("paceline.toml: ")


def test_headlines_are_known_metrics() -> None:
    with pytest.raises(ManifestError, match="'trougput' is unknown, did you mean 'throughput'"):
        parse_snake(SNAKE.replace("repetitions = 3", 'headline = ["trougput"]'))
    with pytest.raises(ManifestError, match="has 7 names, at most 6"):
        parse_snake(SNAKE.replace("repetitions = 3", f"headline = {['step_time'] * 7}"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("phase_time", "phase_time needs a phase, write phase_time:PHASE"),
        ("phase_memory:", "phase_memory needs a phase, write phase_memory:PHASE"),
        ("throughput:learn", "throughput has no phases"),
    ],
)
def test_headlines_and_limits_name_a_phase_where_there_is_one(name: str, sentence: str) -> None:
    with pytest.raises(ManifestError, match=f"snake.headline: {sentence}$"):
        parse_snake(SNAKE.replace("repetitions = 3", f'headline = ["{name}"]'))
    with pytest.raises(ManifestError, match=f"limits.{name}: {sentence}$"):
        parse_snake(SNAKE.replace("repetitions = 3", f'limits = {{ "{name}" = {{ maximum = 2 }} }}'))


def test_the_manifest_is_found_upwards(tmp_path: Path) -> None:
    (tmp_path / "paceline.toml").write_text(SNAKE)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert manifest.find_manifest(tmp_path / "a" / "b") == tmp_path / "paceline.toml"


def test_no_manifest_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"no paceline\.toml in .* or any folder above"):
        manifest.find_manifest(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = " + "[" * 5000, "is nested too deeply"),
        ("a = " + "9" * 5000, "has a number with too many digits"),
        (SNAKE.replace("version = 2", "version = 0x" + "f" * 5000), "has a number with too many digits"),
        (
            SNAKE.replace("3.0", "1" + "0" * 400),
            "benchmarks.snake.guard.score.minimum: must be a finite number",
        ),
        (SNAKE.replace("version = 2", f"version = {2**31}"), "benchmarks.snake.version: is 2147483648, must"),
        (
            SNAKE + "repetitions = 101",
            "benchmarks.snake.quick.repetitions: is 101, must be between 1 and 100",
        ),
    ],
)
def test_what_is_too_large_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ManifestError, match=f"^m: {sentence}"):
        manifest.parse_manifest(text, "m")


def test_a_misspelt_required_key_is_named() -> None:
    text = '[benchmarks.train]\nversion = 1\nscript = "train.py"\nstepz = 10\n'
    with pytest.raises(ManifestError, match="steps: is missing; was 'stepz' meant to be it"):
        manifest.parse_manifest(text, "paceline.toml")


RANKED = """
[benchmarks.a]
version = 1
module = "package.train"
steps = 5
auto = true
step = "batch"
processes = 4
"""


def test_a_module_may_be_measured_in_several_processes() -> None:
    benchmark = manifest.parse_manifest(RANKED, "m").benchmarks["a"]
    assert (benchmark.script, benchmark.module) == ("package.train", True)
    assert (benchmark.step, benchmark.processes) == ("batch", 4)
    assert benchmark.script_folder == Path("package")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("steps = 5", 'steps = 5\nscript = "train.py"', "module: stands beside script, name one of them"),
        ("package.train", "package/train.py", "module: is 'package/train.py', must be a module's name"),
        ("auto = true", "", "step: needs auto = true"),
        ('"batch"', '"epoch"', "step: 'epoch' is unknown; known are optimizer, batch, "),
        ("= 4", "= 257", "processes: is 257, must be between 1 and 256"),
        ("= 4", '= 4\nworking_directory = ".."', "working_directory: is '..', must be a path inside"),
    ],
)
def test_wrong_keys_of_modules_and_ranks_are_named(old: str, new: str, sentence: str) -> None:
    with pytest.raises(ManifestError) as caught:
        manifest.parse_manifest(RANKED.replace(old, new, 1), "m")
    assert f"benchmarks.a.{sentence}" in str(caught.value)
