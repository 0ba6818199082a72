"""From speeds to times, by hand."""

from dataclasses import replace

import pytest

from tengen.config.settings.parts import ClusterSettings
from tengen.errors import OptionError
from tengen.loop.estimate import ClusterPlan, Estimate, describe, describe_cluster, describe_disk, describe_memory
from tests.helpers.tiny_runs import tiny

# A game takes 0.1 s to play, and gives 5 rows, of which 20 samples take another 0.1 s.
FOUND = Estimate(
    compiling=30.0,
    moves_per_second=100.0,
    evaluations_per_second=2500.0,
    samples_per_second=200.0,
    moves_per_game=10.0,
    guessed=False,
    rows_per_game=5.0,
    samples_per_row=4.0,
)


def test_playing_and_learning_add_up() -> None:
    assert FOUND.games_per_second == 10
    assert FOUND.seconds(1000) == pytest.approx(200)
    assert FOUND.learning_share == pytest.approx(0.5)


def test_one_of_several_cores_learns_while_the_others_play() -> None:
    assert replace(FOUND, waits=0.5).seconds(1000) == pytest.approx(150)
    assert replace(FOUND, waits=0.0).seconds(1000) == pytest.approx(100)
    assert replace(FOUND, waits=0.5, samples_per_second=50.0).seconds(1000) == pytest.approx(400), "learning decides"


@pytest.mark.parametrize(
    ("goal", "games"),
    [
        ((None, None, None, None), float("inf")),
        ((1.0, None, None, None), 150),  # half a minute is left after compiling
        ((0.1, None, None, None), 0),
        ((None, 70, None, None), 70),
        ((None, None, 500, None), 100),
        ((None, None, None, 400), 20),
        ((10.0, 70, 500, 400), 20),
    ],
)
def test_what_a_goal_needs(goal: tuple[float | None, ...], games: float) -> None:
    assert FOUND.games(*goal) == pytest.approx(games)


def test_a_network_that_grows_is_told_from_the_one_that_was_measured() -> None:
    *_, last = describe(FOUND, tiny("goal.rows=400", 'net.growth=["0.5:b2c16"]'))
    assert last.split("  ")[-1] == "b1c8 all the time; the run goes on with b2c16 (net.growth), slower"


def test_words() -> None:
    config = tiny("goal.games=600", "goal.steps=1000000")
    assert list(describe(FOUND, config)) == [
        "compiling      00:00:30, counted apart",
        "evaluations    2,500/s while playing",
        "games          10.0/s while playing (10 searched moves each)",
        "rows           50.0/s while playing",
        "samples        200/s while learning",
        "learning       50 % of the time",
        "1,000 games    00:03:20",
        "10,000 games   00:33:20",
        "100,000 games  05:33:20",
        "the goal       00:02:30 for 600 games or 1,000,000 steps, compiling included and matches not: "
        "about 600 games, 3,000 rows, 12,000 samples",
    ]
    *_, last = describe(replace(FOUND, guessed=True), tiny())
    assert last.endswith("none, the run goes on until it is stopped")
    assert "guessed from random games" in list(describe(replace(FOUND, guessed=True), tiny()))[2]


def test_memory_and_disk() -> None:
    assert list(describe_memory({"games": 3 * 2**20, "rows": 512}, 2**31)) == [
        "games     3.1 MB",
        "rows      512 bytes",
        "together  3.1 MB of 2.1 GB",
    ]
    assert list(describe_memory({"rows": 2**40}, None))[-1] == "together  1.1 TB"
    assert describe_disk(1024) == "100,000 rows take at most 102.4 MB on the disk"


def test_a_cluster_and_where_it_saturates() -> None:
    # A device plays 50 rows/s, and a learner uses 200 samples/s, 4 for a row: those of a single one.
    plan = ClusterPlan.of(ClusterSettings(), 2, 4, "gpu")
    lines = dict(line.split("  ", 1) for line in describe_cluster(FOUND, plan))
    assert {name: text.strip() for name, text in lines.items()} == {
        "2 x 4 GPUs": "7 for self-play, 1 for the learner",
        "self-play gives": "350 rows/s",
        "the learner uses": "at most 50.0 rows/s (train.samples_per_row: 4)",
        "it saturates at": "1 GPU for self-play: more GPUs for self-play would wait for the learner",
        "1,000,000 rows": "05:33:20",
    }
    hungry = replace(FOUND, samples_per_second=20_000.0)
    *_, saturates, time = describe_cluster(hungry, plan)
    assert saturates.endswith("100 GPUs for self-play: add GPUs for self-play")
    assert time.endswith("00:47:37")


def test_a_cluster_without_gpus_and_one_that_was_measured_without() -> None:
    of = ClusterPlan.of
    nodes = of(ClusterSettings(), 8, None, "cpu")
    assert (nodes.title, nodes.players, nodes.learner) == ("8 nodes, each like this machine", 7, 1)
    *_, saturates, _ = describe_cluster(replace(FOUND, samples_per_second=20_000.0), nodes)
    assert saturates.endswith("100 nodes for self-play: add nodes for self-play")
    assert "there is no GPU here" in "".join(describe_cluster(FOUND, of(ClusterSettings(), 8, 4, "cpu")))
    assert of(ClusterSettings(), 1, None, "gpu") == ClusterPlan("1 x 1 GPU", "GPU", 0.5, 0.5)
    assert of(replace(ClusterSettings(), learner_gpus=2), 2, 2, "gpu").players == 2
    for nodes, gpus in ((1, 2), (8, 1)):
        with pytest.raises(OptionError, match=r"^cluster.learner_gpus: the learner needs 2 GPUs of one node, and"):
            of(replace(ClusterSettings(), learner_gpus=2), nodes, gpus, "gpu")
