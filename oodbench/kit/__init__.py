"""What methods are made of: sub-populations, mechanisms, clusters, stages. Importing it does not import torch."""

from oodbench.engine.coding import class_signs_array, signed_targets
from oodbench.engine.fitted import linear_model
from oodbench.engine.trial import MOST_TRIALS, training_entropy
from oodbench.kit.clustering import (
    check_clusters,
    cluster_mechanisms,
    moments,
    restrict_moments,
    solve,
    sub_populations,
)
from oodbench.kit.estimators import EstimatorModel, LightGBMTrees, class_numbers, one_thread, require
from oodbench.kit.linear import fit_logistic, fit_ridge
from oodbench.kit.mechanism import worst_mechanism
from oodbench.kit.parts import (
    Part,
    balanced,
    check_weights,
    groups_of,
    hold_out,
    needs_of_weights,
    sample_weights,
    stopping_parts,
)
from oodbench.kit.stages import fit_references
from oodbench.kit.subpopulation import worst_chi_square, worst_share

__all__ = [
    "MOST_TRIALS",
    "EstimatorModel",
    "LightGBMTrees",
    "Part",
    "balanced",
    "check_clusters",
    "check_weights",
    "class_numbers",
    "class_signs_array",
    "cluster_mechanisms",
    "fit_logistic",
    "fit_references",
    "fit_ridge",
    "groups_of",
    "hold_out",
    "linear_model",
    "moments",
    "needs_of_weights",
    "one_thread",
    "require",
    "restrict_moments",
    "sample_weights",
    "signed_targets",
    "solve",
    "stopping_parts",
    "sub_populations",
    "training_entropy",
    "worst_chi_square",
    "worst_mechanism",
    "worst_share",
]
