"""What methods are made of: sub-populations, mechanisms, clusters, stages. Importing it does not import torch."""

from oodbench.engine.coding import signed_targets
from oodbench.engine.trial import MOST_TRIALS, training_entropy
from oodbench.kit.balance import GROUPINGS, balanced_draw, balanced_weights, check_groups, row_groups
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
from oodbench.kit.mechanism import worst_mechanism
from oodbench.kit.stages import fit_references
from oodbench.kit.subpopulation import worst_chi_square, worst_share

__all__ = [
    "GROUPINGS",
    "MOST_TRIALS",
    "annealed",
    "balanced_draw",
    "balanced_weights",
    "bottleneck",
    "check_clusters",
    "check_environments",
    "check_groups",
    "cluster_mechanisms",
    "covariances",
    "equal_shares",
    "fit_references",
    "gaussian_kernel",
    "mean_kernels",
    "mean_over_pairs",
    "mean_risk",
    "moments",
    "restrict_moments",
    "row_groups",
    "scale_penalty",
    "signed_targets",
    "solve",
    "squared_means",
    "sub_populations",
    "training_entropy",
    "variances",
    "worst_chi_square",
    "worst_mechanism",
    "worst_share",
]
