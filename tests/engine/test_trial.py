from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from oodbench import Linear, Mlp, Recipe
from oodbench.engine.trial import Setup, Trial, seeds_that_fit, training_entropy, trials_that_fit
from oodbench.study.pack import divide


@given(
    configurations=st.integers(1, 30), seeds=st.integers(1, 12), capacity=st.integers(1, 70), most=st.integers(1, 12)
)
def test_packs_hold_every_trial_once_in_blocks_that_fit(
    configurations: int, seeds: int, capacity: int, most: int
) -> None:
    trials = [Trial(c, {"kind": "ab"[c % 2]}, s, 0) for s in range(seeds) for c in range(configurations)]
    packs = divide("study", trials, lambda trial: trial.hparams["kind"], lambda trial: capacity, lambda trial: most)
    assert Counter((t.configuration, t.seed) for pack in packs for t in pack.trials) == Counter(
        (t.configuration, t.seed) for t in trials
    )
    assert [pack.index for pack in packs] == list(range(len(packs)))
    for pack in packs:
        assert len(pack.trials) <= capacity
        assert len(pack.seeds) <= most
        assert len({t.hparams["kind"] for t in pack.trials}) == 1
        assert len({Counter(t.seed for t in pack.trials)[seed] for seed in pack.seeds}) == 1


def test_trials_of_one_seed_share_a_pack_first() -> None:
    trials = [Trial(c, {}, s, 0) for s in range(4) for c in range(6)]
    packs = divide("study", trials, lambda trial: 0, lambda trial: 12, lambda trial: 4)
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


def test_packs_of_a_gpu_are_as_large_as_its_page_says() -> None:
    recipe, models = Recipe(), (Linear(), Mlp(width=(20, 10)), Mlp(width=(256, 256)))
    sizes = {
        device: [trials_that_fit(Setup(model, recipe, device), rows=2000, outputs=2) for model in models]
        for device in ("cpu", "cuda")
    }
    assert sizes == {"cpu": [64, 15, 1], "cuda": [1024, 1024, 124]}


def test_a_pack_holds_the_rows_of_as_many_seeds_as_memory_has_room_for() -> None:
    setup = Setup(Linear(), Recipe())
    assert seeds_that_fit(setup, 16_384, 10_000) == 1024  # full batches are not divided
    assert [seeds_that_fit(setup, 1_000_000, features) for features in (8, 80, 800)] == [11, 1, 1]


def test_every_training_has_entropy_of_its_own() -> None:
    entropies = {training_entropy(method, c, s) for method in ("erm", "fdro") for c in range(50) for s in range(20)}
    assert len(entropies) == 2000
