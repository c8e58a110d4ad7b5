"""What methods are made of: sub-populations, mechanisms, clusters, gradients, pairs of rows, stages. Importing it does
not import torch."""

from oodbench.engine.coding import class_signs_array, signed_targets
from oodbench.engine.fitted import linear_model
from oodbench.engine.trial import MOST_TRIALS, training_entropy
from oodbench.kit.balance import GROUPINGS, balanced_draw, balanced_weights, check_groups, needs_of_groups, row_groups
from oodbench.kit.clustering import (
    check_clusters,
    cluster_mechanisms,
    moments,
    restrict_moments,
    solve,
    sub_populations,
)
from oodbench.kit.environments import (
    annealed,
    bottleneck,
    check_environments,
    covariances,
    equal_shares,
    gaussian_kernel,
    mean_kernels,
    mean_over_pairs,
    mean_risk,
    scale_penalty,
    squared_means,
    variances,
)
from oodbench.kit.estimators import EstimatorModel, LightGBMTrees, class_numbers, labels_of, one_thread, require
from oodbench.kit.gradients import last_layer_variances, masked_mean, reverse_gradient, sign_agreement
from oodbench.kit.invariance import check_subsets, invariant_columns, least_squares
from oodbench.kit.linear import fit_logistic, fit_ridge
from oodbench.kit.marginal import net_flow, smoothing_flows
from oodbench.kit.mechanism import worst_mechanism
from oodbench.kit.pairs import draw_partners, mixed_losses
from oodbench.kit.parts import (
    Part,
    check_weights,
    fit_without_held_out,
    hold_out,
    needs_of_weights,
    sample_weights,
    stopping_parts,
)
from oodbench.kit.pytabkit import TabularNetwork
from oodbench.kit.reweighting import decorrelating_weights, independence_weights
from oodbench.kit.stages import fit_references
from oodbench.kit.subpopulation import chi_square_share, without_largest, worst_chi_square, worst_kl, worst_share
from oodbench.kit.tabicl import InContextRows, find_weights

__all__ = [
    "GROUPINGS",
    "MOST_TRIALS",
    "EstimatorModel",
    "InContextRows",
    "LightGBMTrees",
    "Part",
    "TabularNetwork",
    "annealed",
    "balanced_draw",
    "balanced_weights",
    "bottleneck",
    "check_clusters",
    "check_environments",
    "check_groups",
    "check_subsets",
    "check_weights",
    "chi_square_share",
    "class_numbers",
    "class_signs_array",
    "cluster_mechanisms",
    "covariances",
    "decorrelating_weights",
    "draw_partners",
    "equal_shares",
    "find_weights",
    "fit_logistic",
    "fit_references",
    "fit_ridge",
    "fit_without_held_out",
    "gaussian_kernel",
    "hold_out",
    "independence_weights",
    "invariant_columns",
    "labels_of",
    "last_layer_variances",
    "least_squares",
    "linear_model",
    "masked_mean",
    "mean_kernels",
    "mean_over_pairs",
    "mean_risk",
    "mixed_losses",
    "moments",
    "needs_of_groups",
    "needs_of_weights",
    "net_flow",
    "one_thread",
    "require",
    "restrict_moments",
    "reverse_gradient",
    "row_groups",
    "sample_weights",
    "scale_penalty",
    "sign_agreement",
    "signed_targets",
    "smoothing_flows",
    "solve",
    "squared_means",
    "stopping_parts",
    "sub_populations",
    "training_entropy",
    "variances",
    "without_largest",
    "worst_chi_square",
    "worst_kl",
    "worst_mechanism",
    "worst_share",
]
