"""The public surface, pinned: a change here is a change for every plug-in author."""

import subprocess
import sys

import oodbench

NAMES = """BoardOptions Choice Dataset Ensemble Environment ExportOptions FittedModel Hparams Integer Leaderboard Linear
LogInteger LogUniform LossMethod Method Mlp Network OodbenchError Option Predictor Preset Recipe Result Rows
RunOptions Selector Setup Shape State SuiteBoardOptions SuiteOptions SuiteResult Target Tensor TorchModel Trainer
TrainingRows Trial Uniform Value check_dataset check_method export leaderboard load_model metric run run_suite
setting suite_leaderboards write_page""".split()


def test_public_names() -> None:
    assert sorted(oodbench.__all__) == NAMES
    assert all(hasattr(oodbench, name) for name in NAMES)


def test_importing_oodbench_imports_nothing_heavy() -> None:
    heavy = ("torch", "ray", "mlflow", "pandas", "scipy", "pyarrow", "matplotlib")
    code = (
        "import sys, oodbench, oodbench.cli.main, oodbench_methods.fdro, oodbench_datasets.table.table\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_only_one_room_imports_ray_and_one_mlflow() -> None:
    from pathlib import Path

    root = Path(oodbench.__file__).parent
    sources = {path.relative_to(root): path.read_text() for path in root.rglob("*.py")}
    for package, place in (("ray", "search"), ("mlflow", "record")):
        users = {
            path.parts[0]
            for path, text in sources.items()
            if any(line.split()[:2] in (["import", package], ["from", package]) for line in text.splitlines() if line)
        }
        assert users == {place}
