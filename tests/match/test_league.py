"""Who is rated."""

from pathlib import Path

import pytest
from flax import nnx

from tengen import games, match, nets
from tengen.errors import TengenError
from tengen.match import league, player_spec
from tengen.match.league import LeagueRating, LeagueResults, RatingBudget
from tengen.match.ratings import players_in
from tengen.match.results import MatchResult
from tengen.nets import saving


@pytest.fixture(scope="module")
def net() -> tuple[nets.Network, games.Game]:
    game = games.make("tic_tac_toe")
    return nets.build(nets.spec("b1c8"), game, nnx.Rngs(0)), game


@pytest.fixture
def run(net: tuple[nets.Network, games.Game], tmp_path: Path) -> Path:
    """Three networks, one of them rejected; and one that is damaged."""
    folder = tmp_path / "run"
    for name, samples in (("models/late", 300), ("models/early", 100), ("rejected/between", 200)):
        saving.save(net[0], folder / name, net[1], {"samples": samples, "step": samples})
    (folder / "models" / "broken").mkdir()
    (folder / "models" / "broken" / "model.safetensors").write_bytes(b"no network")
    (folder / "models" / "note.txt").write_text("not a network")
    return folder


def zero(found: league.League) -> str:
    return LeagueRating(found, LeagueResults(found.run, 64, own=True)).zero


def test_networks_are_in_order_and_damaged_ones_are_named(run: Path) -> None:
    found = league.gather(run)
    assert [one.name for one in found.players] == ["early", "between", "late", "random"]
    assert len(found.notes) == 1
    assert "broken" in found.notes[0]
    assert (found.simulations, zero(found)) == (league.SIMULATIONS, "random")
    assert [one.name for one in league.gather(run, only="l*").networks] == ["late"]


def test_anchors_of_all_kinds_once(run: Path, net: tuple[nets.Network, games.Game], tmp_path: Path) -> None:
    saving.save(net[0], tmp_path / "early", net[1])
    saving.save(net[0], tmp_path / "other", net[1])
    texts = [
        "mcts:20",
        "mcts:20",
        "mcts:5",
        str(run / "models" / "late"),
        str(tmp_path / "other"),
        str(tmp_path / "early"),
    ]
    found = league.gather(run, [player_spec.parse(text) for text in texts])
    # A network of the run is no anchor; another of the same name is called by its path.
    assert [one.name for one in found.anchors] == ["mcts:20", "mcts:5", "other", str(tmp_path / "early")]
    assert zero(found) == "mcts:5"
    assert zero(league.gather(run, [])) == "early"
    assert found.game().name == "tic_tac_toe"


def test_whose_elo_is_0_has_played_if_nothing_more_is_played(run: Path) -> None:
    found = league.gather(run)
    known = LeagueResults(found.run, 64, own=True)
    known.mine = [MatchResult("early", "late", 3, 1, 2)]
    assert LeagueRating(found, known, plays=False).zero == "early"
    assert LeagueRating(found, known).zero == "random", "which plays soon"


def test_gnu_go_as_an_anchor_is_given_the_rules(tmp_path: Path) -> None:
    game = games.make("go", size=5, ko="simple")
    saving.save(nets.build(nets.spec("b1c8"), game, nnx.Rngs(0)), tmp_path / "models" / "net", game)
    (anchor,) = league.gather(tmp_path, [player_spec.parse("gtp:gnugo --mode gtp")]).anchors
    assert anchor.name == "gtp:gnugo --mode gtp --chinese-rules --capture-all-dead"


@pytest.mark.parametrize("anchor", ["gtp:cat", "uci:cat", "mcts:many"])
def test_anchors_who_cannot_play_are_refused(run: Path, anchor: str) -> None:
    with pytest.raises(TengenError, match=anchor.partition(":")[0]):
        league.gather(run, [player_spec.parse(anchor)]).game()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "not a run"),
        (lambda path: path.mkdir(), "not a run"),
        (lambda path: path.write_text("a file"), "not a run|cannot be read"),
        (lambda path: (path.mkdir(), (path / "config.yaml").write_text("{}")), "cannot be used; put it right"),
    ],
)
def test_what_is_no_run_is_named(make, words: str, tmp_path: Path) -> None:
    make(tmp_path / "here")
    with pytest.raises(TengenError, match=words) as caught:
        league.gather(tmp_path / "here")
    assert "here" in str(caught.value)


def test_all_networks_damaged(run: Path) -> None:
    for path in run.glob("*/*/model.safetensors"):
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(TengenError, match="none of its networks can be used") as caught:
        league.gather(run)
    assert str(caught.value).count("model.safetensors") == 4


def test_a_configuration_of_no_use_can_be_done_without(run: Path) -> None:
    (run / "config.yaml").write_text("game: chess?\n")
    with pytest.raises(TengenError, match="--anchors and --simulations"):
        league.gather(run)
    found = league.gather(run, [player_spec.parse("random")], configured=False)
    assert found.config is None
    assert any("config.yaml" in note for note in found.notes)


def test_the_ledger_counts_what_belongs_together(run: Path, tmp_path: Path) -> None:
    own = MatchResult("late", "early", 3, 0, 1)
    match.append(run / "ratings" / "results.jsonl", own)
    match.append(tmp_path / "match" / "results.jsonl", MatchResult("late", "x", 1, 0, 1))
    assert LeagueResults(run, 64, own=True).all == [own]
    assert LeagueResults(run, 800, own=False).all == []
    ledger = LeagueResults(run, 64, True, [tmp_path / "match"])
    assert players_in(ledger.all) == ["late", "early", "x"]
    ledger.put(0, MatchResult("late", "random", 1, 0, 0))
    ledger.put(0, MatchResult("late", "random", 5, 1, 2))  # the same match, later
    ledger.put(1, MatchResult("late", "random", 0, 0, 0))  # nothing was played
    assert match.read(run / "ratings" / "rate-s64.jsonl") == [MatchResult("late", "random", 5, 1, 2)]
    match.append(run / "ratings" / "results.jsonl", own)
    ledger.refresh()
    assert len(ledger.all) == 4
    (run / "ratings" / "rate-s64.jsonl").write_text("nonsense\n")
    with pytest.raises(TengenError, match="line 1"):
        LeagueResults(run, 64, own=True)


def test_networks_come_first_the_newer_before_the_older(run: Path) -> None:
    ledger = LeagueResults(run, 64, own=True)
    ledger.put(0, MatchResult("early", "random", 10, 0, 10))
    rating = LeagueRating(league.gather(run), ledger)
    chosen = rating.choice(20)
    assert chosen is not None
    order = ["late", "between", "early", "random"]
    assert order.index(chosen.a) < order.index(chosen.b)
    with pytest.raises(TengenError, match="--zero nobody: .*early"):
        LeagueRating(league.gather(run), ledger, "nobody")
    assert LeagueRating(league.gather(run), ledger, "late").ratings["late"].elo == 0


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (RatingBudget(), None),
        (RatingBudget(matches=3), "3 matches"),
        (RatingBudget(matches=4), None),
        (RatingBudget(games=60), "60 games"),
        (RatingBudget(seconds=120), "2 minutes"),
        (RatingBudget(error=50), "at most 50 Elo"),
        (RatingBudget(error=49, games=61), None),
    ],
)
def test_budgets(budget: RatingBudget, spent: str | None) -> None:
    found = budget.spent(matches=3, games=60, seconds=120.0, most=50.0)
    assert found is None if spent is None else spent in (found or "")
