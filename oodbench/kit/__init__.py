"""What methods are made of: sub-populations, mechanisms, clusters, inferred environments, tangent features, gradients,
pairs of rows, stages. Importing it does not import torch."""

from oodbench.engine.coding import class_signs_array, signed_targets
from oodbench.engine.fitted import constant_model, linear_model
from oodbench.engine.products import multiply
from oodbench.engine.rules import KeptRule
from oodbench.engine.trial import MOST_TRIALS, training_entropy
from oodbench.kit.balance import GROUPINGS, balanced_draw, balanced_weights, check_groups, needs_of_groups, row_groups
from oodbench.kit.boosting import BOOSTING_OPTIONS, BOOSTING_PRESETS, check_weights, fit_boosting, needs_of_weights
from oodbench.kit.clustering import (
    check_clusters,
    cluster_mechanisms,
    cluster_moments,
    contrasts_between,
    moments,
    random_labels,
    restrict_moments,
    solve,
    stacked_targets,
    sub_populations,
)
from oodbench.kit.common_mechanism import (
    invariant_by_gradient,
    invariant_by_scale,
    leading_projection,
    span_projection,
)
from oodbench.kit.environments import (
    annealed,
    bottleneck,
    check_environments,
    convex_irm,
    covariances,
    equal_shares,
    gaussian_kernel,
    logit_variance,
    mean_kernels,
    mean_over_pairs,
    mean_risk,
    scale_penalty,
    squared_means,
    variances,
)
from oodbench.kit.estimators import EstimatorModel, LightGBMTrees, class_numbers, labels_of, one_thread, require
from oodbench.kit.gradients import (
    environment_gradients,
    first_layer_gap,
    gap_along_gradient,
    last_layer_variances,
    masked_mean,
    reverse_gradient,
    sign_agreement,
    unit_first_layer,
)
from oodbench.kit.inference import factor_slopes, infer_environments, split_slopes
from oodbench.kit.invariance import check_subsets, invariant_columns, least_squares
from oodbench.kit.linear import fit_logistic, fit_ridge
from oodbench.kit.marginal import net_flow, smoothing_flows
from oodbench.kit.matrix_irm import fit_matrix_irm
from oodbench.kit.mechanism import explore_mechanisms, worst_mechanism
from oodbench.kit.pairs import draw_partners, mixed_losses
from oodbench.kit.parts import (
    Part,
    fit_without_held_out,
    hold_out,
    stopping_parts,
)
from oodbench.kit.pytabkit import TabularNetwork
from oodbench.kit.reweighting import decorrelating_weights, independence_weights
from oodbench.kit.stages import fit_by_seed, fit_references
from oodbench.kit.subpopulation import (
    base_without_largest,
    chi_square_share,
    without_largest,
    worst_chi_square,
    worst_kl,
    worst_share,
)
from oodbench.kit.tabicl import InContextRows, find_weights
from oodbench.kit.tangent import TangentBasis, TangentModel, tangent_features

__all__ = [
    "BOOSTING_OPTIONS",
    "BOOSTING_PRESETS",
    "GROUPINGS",
    "MOST_TRIALS",
    "EstimatorModel",
    "InContextRows",
    "KeptRule",
    "LightGBMTrees",
    "Part",
    "TabularNetwork",
    "TangentBasis",
    "TangentModel",
    "annealed",
    "balanced_draw",
    "balanced_weights",
    "base_without_largest",
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
    "cluster_moments",
    "constant_model",
    "contrasts_between",
    "convex_irm",
    "covariances",
    "decorrelating_weights",
    "draw_partners",
    "environment_gradients",
    "equal_shares",
    "explore_mechanisms",
    "factor_slopes",
    "find_weights",
    "first_layer_gap",
    "fit_boosting",
    "fit_by_seed",
    "fit_logistic",
    "fit_matrix_irm",
    "fit_references",
    "fit_ridge",
    "fit_without_held_out",
    "gap_along_gradient",
    "gaussian_kernel",
    "hold_out",
    "independence_weights",
    "infer_environments",
    "invariant_by_gradient",
    "invariant_by_scale",
    "invariant_columns",
    "labels_of",
    "last_layer_variances",
    "leading_projection",
    "least_squares",
    "linear_model",
    "logit_variance",
    "masked_mean",
    "mean_kernels",
    "mean_over_pairs",
    "mean_risk",
    "mixed_losses",
    "moments",
    "multiply",
    "needs_of_groups",
    "needs_of_weights",
    "net_flow",
    "one_thread",
    "random_labels",
    "require",
    "restrict_moments",
    "reverse_gradient",
    "row_groups",
    "scale_penalty",
    "sign_agreement",
    "signed_targets",
    "smoothing_flows",
    "solve",
    "span_projection",
    "split_slopes",
    "squared_means",
    "stacked_targets",
    "stopping_parts",
    "sub_populations",
    "tangent_features",
    "training_entropy",
    "unit_first_layer",
    "variances",
    "without_largest",
    "worst_chi_square",
    "worst_kl",
    "worst_mechanism",
    "worst_share",
]
