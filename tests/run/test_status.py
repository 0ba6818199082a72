"""The status of a run: speeds, losses, and what goes to the metrics."""

from tengen.run.goals import RunCounts
from tengen.run.part_status import NODE, PartStatus
from tengen.run.status import NetworkCounts, RatedNetwork, RunStatus, losses

FIGURES = {"loss": 2.5, "policy_loss": 1.5, "score_mean_loss": 3.0, "policy_accuracy": 0.5, "rows": 9.0}


def test_losses_by_name() -> None:
    assert losses(FIGURES) == {"loss": 2.5, "policy": 1.5, "score_mean": 3.0}
    assert losses({}) == {}


def test_speeds() -> None:
    then = RunStatus(RunCounts(games=10, rows=100, evaluations=1000.0), steps=5, samples=80)
    now = RunStatus(RunCounts(games=14, rows=180, evaluations=5000.0), steps=9, samples=144)
    assert now.speeds_since(then, 4.0) == {
        "games": 1.0,
        "rows": 20.0,
        "evaluations": 1000.0,
        "steps": 1.0,
        "samples": 16.0,
    }
    assert RunStatus(RunCounts(games=1)).speeds_since(RunStatus(), 2.0)["evaluations"] is None


def test_values_for_the_metrics() -> None:
    status = RunStatus(
        RunCounts(games=1204, seconds=130.0),
        steps=310,
        figures={**FIGURES, "learning_rate": 0.01},
        stage="playing",
        speeds={"games": 9.1},
        rating=RatedNetwork(412.3, 38),
    )
    values = status.values()
    assert (values["stage"], values["games"], values["steps"], values["games_per_second"]) == (
        "playing",
        1204,
        310,
        9.1,
    )
    assert (values["loss"], values["losses"]) == (2.5, {"policy": 1.5, "score_mean": 3.0})
    assert values["figures"] == {
        "loss": 2.5,
        "policy_loss": 1.5,
        "score_mean_loss": 3.0,
        "policy_accuracy": 0.5,
        "learning_rate": 0.01,
    }
    assert not {"elapsed", "rating", "goal", "time", "kind"} & set(values)


def test_values_of_a_run_in_parts() -> None:
    values = RunStatus(RunCounts(rows=21400), networks=NetworkCounts(accepted=3)).values()
    assert (values["rows"], values["accepted"], values["candidates"]) == (21400, 3, 0)
    assert not {"parts", "networks", "waiting", "figures"} & set(values)
    # On a cluster, a gate does not hide the nodes.
    node = PartStatus(NODE, "node1", words="playing", figures={"actors": 2})
    values = RunStatus(samples=5, networks=NetworkCounts(accepted=3), parts=(node,), appetite=7.0).values()
    assert (values["accepted"], values["samples"], values["appetite_rows_per_second"]) == (3, 5, 7.0)
    assert values["parts"]["node node1"]["figures"] == {"actors": 2}


def test_networks_in_words() -> None:
    assert str(NetworkCounts(3, 0, 1)) == "3 accepted, 1 at the gate"
    assert str(NetworkCounts()) == ""


def test_the_share_of_a_part() -> None:
    def share(done: float | None, of: float | None) -> float | None:
        return PartStatus("train", "main", done=done, of=of).share

    assert [share(5, 20), share(30, 20), share(-1, 20)] == [0.25, 1.0, 0.0]
    assert {share(*pair) for pair in ((None, 20), (5, 0), (5, None))} == {None}
