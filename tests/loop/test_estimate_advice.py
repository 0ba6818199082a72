"""Which of the shipped runs are too much for a CPU, by their own settings."""

from tengen.config import load
from tengen.config.loading import load_any
from tengen.config.sections import Config
from tengen.config.source import shipped
from tengen.loop import estimate

KNOWN = [(name, config) for name in shipped() if isinstance(config := load_any(name), Config)]


def test_shipped_ones() -> None:
    assert {name for name, config in KNOWN if estimate.is_too_much(config, 2)} == {
        "chess",
        "connect_four_gpu",
        "go9",
        "go19",
    }


def test_it_follows_from_the_settings() -> None:
    small = load("go9", ["net.name=b2c16", "data.first_rows=1000"])
    assert not estimate.is_too_much(small, 2)
    assert estimate.is_too_much(load("tic_tac_toe", ["net.name=b20c256", "data.first_rows=100000"]), 2)
    long = estimate.seconds_until_learning(load("go9"), 1)
    assert long == 4 * estimate.seconds_until_learning(load("go9"), 4)
    half = "selfplay.full_share=0.5"
    few, all_moves = (
        estimate.seconds_until_learning(load("go9", [half, *more]), 1) for more in ([], ["selfplay.cheap_weight=0.5"])
    )
    assert all_moves < few, "all moves give rows"


def test_what_is_said() -> None:
    searches = ["search.simulations=64", "selfplay.cheap_simulations=8", "selfplay.full_share=0.25"]
    text = estimate.advice(load("go9", searches), 2, KNOWN)
    assert text.startswith(
        "go9 is a job for a GPU, and JAX finds none here: on 2 CPU cores self-play would take about 3 h"
    )
    assert "What suits a CPU: tengen run go5\n" in text, "the same game"
    assert "\nIt plays 64 games at once here instead of 4,096, so that the first ones end sooner.\n" in text
    other = estimate.advice(load("go9"), 1, [one for one in KNOWN if one[0] in ("tic_tac_toe", "hironaka", "go19")])
    assert "What suits a CPU: tengen run hironaka, tengen run tic_tac_toe\n" in other


def test_a_smaller_relative_of_the_game_comes_first_and_runs_for_gpus_are_left_out() -> None:
    assert "What suits a CPU: tengen run minichess\n" in estimate.advice(load("chess"), 2, KNOWN)
    few = [one for one in KNOWN if one[0] in ("hironaka3", "hironaka3_gpu")]
    assert "What suits a CPU: tengen run hironaka3\n" in estimate.advice(load("go9"), 2, few)
