"""What methods are made of: sub-populations, mechanisms, clusters, stages. Importing it does not import torch."""

from oodbench.engine.coding import signed_targets
from oodbench.engine.trial import MOST_TRIALS, training_entropy
from oodbench.kit.clustering import (
    check_clusters,
    cluster_mechanisms,
    moments,
    restrict_moments,
    solve,
    sub_populations,
)
from oodbench.kit.mechanism import worst_mechanism
from oodbench.kit.stages import fit_references
from oodbench.kit.subpopulation import worst_chi_square, worst_share

__all__ = [
    "MOST_TRIALS",
    "check_clusters",
    "cluster_mechanisms",
    "fit_references",
    "moments",
    "restrict_moments",
    "signed_targets",
    "solve",
    "sub_populations",
    "training_entropy",
    "worst_chi_square",
    "worst_mechanism",
    "worst_share",
]
