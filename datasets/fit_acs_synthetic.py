"""Fit the synthetic census sample to census rows: writes oodbench_datasets/acs/synthetic.npz, the same bytes each time.

Example: python datasets/fit_acs_synthetic.py travel_time.parquet

The table holds the persons of the 2024 ACS 1-year files that pass the filter of folktables' ACSTravelTime (AGEP > 16,
PWGTP >= 1, ESR == 1), with the columns ST PUMA AGEP SCHL MAR SEX DIS MIG RAC1P CIT OCCP POVPIP JWTRNS JWMNP as in the
files, and RELP3: 1 a householder, 2 another member of a household, 3 group quarters.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from oodbench_datasets.acs.states import FIPS, FITTED

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

PARAMETERS = Path(__file__).parent / "oodbench_datasets" / "acs" / "synthetic.npz"
COLUMNS = ("AGEP", "SCHL", "MAR", "SEX", "DIS", "MIG", "RELP", "RAC1P", "CIT", "OCCP", "JWTR", "POVPIP", "JWMNP")
BINS = {"AGEP": 24, "OCCP": 60, "POVPIP": 24}  # of about equal size; the other columns keep every code
MINUTES = (5, 10, 15, 20, 25, 30, 45, 60, 90)  # last minute of each bin; 20 is the label's
ROWS_PER_CLASS, MOST_CLASSES = 300, 30  # of one state and label
SMOOTHING = 5.0  # rows of the state's and label's own distribution, added to each class
STEPS = 25  # of expectation maximization
SHARE_TOTAL, WEIGHT_TOTAL = 2**12, 2**20

RELP_OF_RELP3 = {1: 0, 2: 1, 3: 17}
JWTR_OF_JWTRNS = {3: 4, 4: 5, 5: 3}  # subway, commuter rail, streetcar; the other codes are the same in both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="the census rows, a parquet file")
    fit(parser.parse_args().table, PARAMETERS)
    print(f"{PARAMETERS}: {PARAMETERS.stat().st_size / 1e6:.2f} MB")


def fit(table: Path, target: Path) -> None:
    people = read_people(table)
    parameters: dict[str, Any] = {}
    binned = {}
    for name in COLUMNS:
        codes, counts = np.unique(people[name], return_counts=True)
        bin_of_code = bin_codes(name, codes, counts)
        binned[name] = bin_of_code[np.searchsorted(codes, people[name])]
        parameters[f"{name}_codes"] = codes.astype(np.int16)
        parameters[f"{name}_within"] = np.concatenate(
            [to_integers(counts[bin_of_code == i], SHARE_TOTAL) for i in range(bin_of_code[-1] + 1)]
        )
    sizes = [int(binned[name].max()) + 1 for name in COLUMNS]
    label = np.where(people["JWMNP"] < 0, 0, np.where(people["JWMNP"] <= 20, 1, 2))

    pumas, classes, labels, weights, shares, puma_shares = [], [], [], [], [], []
    for state in FITTED:
        here = people["ST"] == FIPS[state]
        codes, puma = np.unique(people["PUMA"][here], return_inverse=True)
        columns = np.stack([*(binned[name][here] for name in COLUMNS), puma], axis=1)  # [row, column]
        fitted = [
            fit_classes(columns[label[here] == kind], [*sizes, len(codes)], np.random.default_rng([FIPS[state], kind]))
            for kind in range(3)
        ]
        pumas.append(codes)
        labels.append(np.bincount(label[here], minlength=3))
        classes.append(sum(len(weight) for weight, _ in fitted))
        weights.append(to_integers(np.concatenate([weight for weight, _ in fitted]), WEIGHT_TOTAL))
        by_column = np.split(np.concatenate([share for _, share in fitted]), np.cumsum(sizes), axis=1)
        shares.append([to_integers(share, SHARE_TOTAL) for share in by_column[:-1]])
        puma_shares.append(to_integers(by_column[-1], SHARE_TOTAL).ravel())

    for name, of_states in zip(COLUMNS, zip(*shares, strict=True), strict=True):
        parameters[f"{name}_bins"] = np.concatenate(of_states)  # [class, bin]
    parameters["PUMA_codes"] = np.concatenate(pumas).astype(np.uint32)
    parameters["PUMA_bins"] = np.concatenate(puma_shares)
    parameters["pumas"] = np.array([len(codes) for codes in pumas], dtype=np.int32)
    parameters["classes"] = np.array(classes, dtype=np.int32)
    parameters["class_weights"] = np.concatenate(weights).astype(np.uint32)
    parameters["labels"] = np.stack(labels).astype(np.int32)  # [state, (home, up to 20 minutes, longer)]
    parameters["rows"] = parameters["labels"].sum(axis=1, dtype=np.int32)
    np.savez_compressed(target, **parameters)


def read_people(table: Path) -> dict[str, Integers]:
    """The columns in the 2018 coding, -1 for missing, without the District of Columbia."""
    frame = pd.read_parquet(table)
    frame = frame[frame["ST"].isin(FIPS.values())]
    frame["RELP"] = frame["RELP3"].map(RELP_OF_RELP3)
    frame["JWTR"] = frame["JWTRNS"].replace(JWTR_OF_JWTRNS)
    return {name: frame[name].to_numpy(np.int64, na_value=-1) for name in ("ST", "PUMA", *COLUMNS)}


def bin_codes(name: str, codes: Integers, counts: Integers) -> Integers:
    """The bin of each code, from 0, without gaps; missing has a bin of its own."""
    if name == "JWMNP":
        raw = np.searchsorted(MINUTES, codes)
    elif name in BINS:
        middle = np.cumsum(counts) - counts / 2
        raw = (middle / counts.sum() * BINS[name]).astype(np.int64)
    else:
        raw = np.arange(len(codes))
    return np.unique(np.where(codes < 0, -1, raw), return_inverse=True)[1]


def fit_classes(columns: Integers, sizes: list[int], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Latent classes by expectation maximization: the rows of each, and its shares [class, bin of any column]."""
    rows = len(columns)
    classes = min(max(rows // ROWS_PER_CLASS, 1), MOST_CLASSES)
    position = columns + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ends = np.arange(0, position.size + 1, position.shape[1])
    shown = sparse.csr_matrix((np.ones(position.size, np.float32), position.ravel(), ends), shape=(rows, sum(sizes)))
    overall = np.asarray(shown.sum(axis=0), dtype=np.float64).ravel() / rows  # [bin of any column]
    if classes == 1:
        return np.array([float(rows)]), overall[None]
    shares = 0.6 * overall + 0.4 * shown[rng.choice(rows, classes, replace=False)].toarray()  # [class, bin]
    weight = np.full(classes, rows / classes)
    for _ in range(STEPS):
        belongs = shown @ np.log(np.maximum(shares, 1e-12)).T.astype(np.float32)  # [row, class], log up to a constant
        belongs += np.log(weight).astype(np.float32)
        belongs = np.exp(belongs - belongs.max(axis=1, keepdims=True))
        belongs /= belongs.sum(axis=1, keepdims=True)
        weight = belongs.sum(axis=0, dtype=np.float64)
        seen = (shown.T @ belongs).T.astype(np.float64)  # [class, bin]
        shares = (seen + SMOOTHING * overall) / (weight[:, None] + SMOOTHING)
        weight = np.maximum(weight, 1e-3)
    return weight * rows / weight.sum(), shares


def to_integers(shares: NDArray[np.number], total: int) -> NDArray[np.unsignedinteger]:
    """Whole numbers in proportion to the shares, with exactly this total along the last axis (largest remainders)."""
    exact = shares * (total / shares.sum(axis=-1, keepdims=True))
    whole = np.floor(exact).astype(np.int64)
    missing = total - whole.sum(axis=-1, keepdims=True)
    order = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1, kind="stable")
    weights: NDArray[np.unsignedinteger] = (whole + (order < missing)).astype(np.uint16 if total < 2**16 else np.uint32)
    return weights


if __name__ == "__main__":
    main()
