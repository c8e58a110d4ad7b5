"""oodbench: does this out-of-distribution method really help, on my data, against honestly tuned baselines?"""

from oodbench.benchmark import Result, leaderboard, run
from oodbench.board import Leaderboard
from oodbench.dataset import Dataset, Environment
from oodbench.errors import OodbenchError
from oodbench.method import Hparams, LossMethod, Method, Predictor, Preset, Rows, TrainingRows
from oodbench.models import Linear, Mlp
from oodbench.recipe import Recipe
from oodbench.settings import setting
from oodbench.space import Choice, Integer, LogUniform, Option, Uniform
from oodbench.suiteresult import SuiteResult, run_suite, suite_leaderboards

__version__ = "0.1.0"

__all__ = [
    "Choice",
    "Dataset",
    "Environment",
    "Hparams",
    "Integer",
    "Leaderboard",
    "Linear",
    "LogUniform",
    "LossMethod",
    "Method",
    "Mlp",
    "OodbenchError",
    "Option",
    "Predictor",
    "Preset",
    "Recipe",
    "Result",
    "Rows",
    "SuiteResult",
    "TrainingRows",
    "Uniform",
    "leaderboard",
    "run",
    "run_suite",
    "setting",
    "suite_leaderboards",
]
