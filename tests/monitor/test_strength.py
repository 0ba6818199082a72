"""What is said of a network at the end of a run."""

from tengen import match
from tengen.match.results import MatchResult
from tengen.monitor import strength
from tengen.monitor.strength import RatedStrength

FIRST = [MatchResult("untrained", "random", 28, 0, 12), MatchResult("untrained", "mcts:50", 2, 0, 38)]
MIDDLE = [
    MatchResult("n1", "random", 38, 0, 2),
    MatchResult("n1", "mcts:50", 16, 0, 24),
    MatchResult("n1", "untrained", 36, 0, 4),
]
LAST = [
    MatchResult("n2", "random", 40, 0, 0),
    MatchResult("n2", "mcts:50", 34, 2, 4),
    MatchResult("n2", "n1", 34, 0, 6),
]


def rated(*results: MatchResult, names: tuple[str, ...] = ("untrained", "n1", "n2")) -> RatedStrength:
    networks = [(100.0 * number, name) for number, name in enumerate(names)]
    return RatedStrength(match.fit(results, "random").centred(), results, networks)


def told(found: RatedStrength | None) -> list[str]:
    return strength.hints(found, "tengen play R --visits 3200", "tengen run larger", ["random", "mcts:50"])


def test_strength_in_words() -> None:
    found = rated(*FIRST, *MIDDLE, *LAST)
    text = strength.in_words(found, 200.0)
    assert text.startswith(
        "After 00:03:20 the network scores 88 % against mcts:50 (74 to 95 %, 40 games), "
        "100 % against random (91 to 100 %, 40 games). It is "
    )
    gap, error = found.ratings.difference("n2", "random")
    assert f"{gap:.0f} +-{error:.0f} Elo above random play" in text
    gap, error = found.ratings.difference("n2", "untrained")
    assert f"{gap:.0f} +-{error:.0f} Elo above the untrained network" in text


def test_a_network_weaker_than_random_play() -> None:
    text = strength.in_words(rated(MatchResult("n1", "random", 2, 0, 18), names=("n1",)), 60.0)
    assert "Elo below random play" in text


def test_a_network_that_met_only_networks_still_has_a_place() -> None:
    text = strength.in_words(rated(*FIRST, *MIDDLE, LAST[2]), 200.0)
    assert text.startswith("It is ")


def test_a_curve_that_rises_asks_for_time() -> None:
    hints = told(rated(*FIRST, *MIDDLE, *LAST))
    assert hints[0].startswith("train it further (the command is below): it still improves, by ")
    assert hints[0].endswith("Elo since 00:01:40")
    assert hints[1] == "let it search more when it plays: tengen play R --visits 3200"
    assert hints[2].endswith("tengen run larger")
    assert len(hints) == 3


def test_a_curve_that_is_flat_asks_for_something_else_first() -> None:
    same = [MatchResult("n2", one.b, one.wins, one.draws, one.losses) for one in MIDDLE[:2]]
    hints = told(rated(*FIRST, *MIDDLE, *same, MatchResult("n2", "n1", 20, 0, 20)))
    assert hints[0].startswith("let it search more")
    assert hints[-1].startswith("train it further (the command is below); it is not certain that this helps: ")


def test_who_has_learned_next_to_nothing_needs_time() -> None:
    weak = [MatchResult("n1", "random", 15, 0, 5), MatchResult("n1", "mcts:50", 3, 0, 17)]
    hints = told(rated(*FIRST, *weak, names=("untrained", "n1")))
    assert hints[0].startswith("train it further (the command is below): it has not learned enough yet")


def test_too_few_ratings_to_see_anything() -> None:
    assert "too few ratings" in told(rated(MatchResult("n1", "random", 12, 0, 8), names=("n1",)))[0]
    assert told(None) == told(rated(*FIRST, names=("untrained",))) == ["train it further (the command is below)"]


def test_who_beats_everybody_needs_a_stronger_opponent() -> None:
    hints = told(
        rated(*FIRST, MatchResult("n1", "random", 40, 0, 0), MatchResult("n1", "mcts:50", 39, 0, 1), names=("n1",))
    )
    assert hints[-1].endswith("add a stronger opponent: --set 'rating.references=[random, mcts:50, mcts:200]'")


def test_references_that_it_did_not_meet_are_named() -> None:
    hints = told(rated(*FIRST, MatchResult("n1", "random", 40, 0, 0), names=("untrained", "n1")))
    assert hints[-1].endswith("there was none for matches against mcts:50")


def test_larger_networks() -> None:
    from tengen import nets

    for name in ("b2c16", "b4c32", "b6c96-se-mish", "b18c384nbt", "mlp3x256"):
        larger = strength.larger_network(name)
        assert larger != name
        assert nets.spec(larger)
    assert strength.larger_network("b4c32") == "b6c56"
    assert strength.larger_network("what") == ""
