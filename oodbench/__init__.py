"""oodbench: does this out-of-distribution method really help, on my data, against honestly tuned baselines?"""

from oodbench.api.boards import BoardOptions, leaderboard, write_page
from oodbench.api.models import ExportOptions, export, load_model
from oodbench.api.runs import Result, RunOptions, run
from oodbench.api.suites import SuiteBoardOptions, SuiteOptions, SuiteResult, run_suite, suite_leaderboards
from oodbench.board.leaderboard import Leaderboard
from oodbench.engine.data import Environment, TrainingRows
from oodbench.engine.fitted import FittedModel
from oodbench.engine.metric import metric
from oodbench.engine.models import Linear, Mlp
from oodbench.engine.networks import Network, Shape
from oodbench.engine.predictor import Predictor
from oodbench.engine.recipe import Recipe
from oodbench.engine.rows import Hparams, Rows
from oodbench.engine.state import State
from oodbench.engine.tensor import Tensor
from oodbench.engine.torch_model import TorchModel
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import OodbenchError
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.method import LossMethod, Method, Preset
from oodbench.plugin.selector import Selector, Target
from oodbench.plugin.testing import check_dataset, check_method
from oodbench.settings.fields import setting
from oodbench.settings.space import Choice, Integer, LogInteger, LogUniform, Option, Uniform, Value
from oodbench.study.ensemble import Ensemble
from oodbench.version import __version__ as __version__

__all__ = [
    "BoardOptions",
    "Choice",
    "Dataset",
    "Ensemble",
    "Environment",
    "ExportOptions",
    "FittedModel",
    "Hparams",
    "Integer",
    "Leaderboard",
    "Linear",
    "LogInteger",
    "LogUniform",
    "LossMethod",
    "Method",
    "Mlp",
    "Network",
    "OodbenchError",
    "Option",
    "Predictor",
    "Preset",
    "Recipe",
    "Result",
    "Rows",
    "RunOptions",
    "Selector",
    "Setup",
    "Shape",
    "State",
    "SuiteBoardOptions",
    "SuiteOptions",
    "SuiteResult",
    "Target",
    "Tensor",
    "TorchModel",
    "Trainer",
    "TrainingRows",
    "Trial",
    "Uniform",
    "Value",
    "check_dataset",
    "check_method",
    "export",
    "leaderboard",
    "load_model",
    "metric",
    "run",
    "run_suite",
    "setting",
    "suite_leaderboards",
    "write_page",
]
