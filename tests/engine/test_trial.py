from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from oodbench import Linear, Mlp, Recipe
from oodbench.engine.trial import Setup, Trial, training_entropy, trials_that_fit
from oodbench.study.pack import divide


@given(configurations=st.integers(1, 30), seeds=st.integers(1, 12), capacity=st.integers(1, 70))
def test_packs_hold_every_trial_once_in_blocks_that_fit(configurations: int, seeds: int, capacity: int) -> None:
    trials = [Trial(c, {"kind": "ab"[c % 2]}, s, 0) for s in range(seeds) for c in range(configurations)]
    packs = divide("study", trials, alike=lambda trial: trial.hparams["kind"], capacity=lambda trial: capacity)
    assert Counter((t.configuration, t.seed) for pack in packs for t in pack.trials) == Counter(
        (t.configuration, t.seed) for t in trials
    )
    assert [pack.index for pack in packs] == list(range(len(packs)))
    for pack in packs:
        assert len(pack.trials) <= capacity
        assert len({t.hparams["kind"] for t in pack.trials}) == 1
        assert len({Counter(t.seed for t in pack.trials)[seed] for seed in pack.seeds}) == 1


def test_trials_of_one_seed_share_a_pack_first() -> None:
    trials = [Trial(c, {}, s, 0) for s in range(4) for c in range(6)]
    packs = divide("study", trials, alike=lambda trial: 0, capacity=lambda trial: 12)
    assert [len(pack.seeds) for pack in packs] == [2, 2]


def test_larger_models_make_smaller_packs() -> None:
    sizes = [
        trials_that_fit(Setup(model, Recipe(batch=batch)), rows=2200, outputs=1)
        for model, batch in (
            (Linear(), 0),
            (Mlp(width=(20, 10)), 0),
            (Mlp(width=(512, 512)), 0),
            (Mlp(width=(512,)), 64),
        )
    ]
    assert sizes[0] > sizes[1] > sizes[2] >= 1
    assert sizes[3] > sizes[2]


def test_every_training_has_entropy_of_its_own() -> None:
    entropies = {training_entropy(method, c, s) for method in ("erm", "fdro") for c in range(50) for s in range(20)}
    assert len(entropies) == 2000
