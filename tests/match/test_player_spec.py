"""Who is meant by a text, and which game two players have in common."""

from pathlib import Path

import pytest
from flax import nnx

from tengen import games, nets
from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError, TengenError
from tengen.match import player_spec, players
from tengen.match.engines.engine import Terms
from tengen.match.engines.pool import EnginePool
from tengen.nets import saving


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with networks: of two games of Go, and one of tic-tac-toe; and a run."""
    folder = tmp_path_factory.mktemp("nets")
    for name, game in (
        ("go5", games.make("go", size=5, komi=6.5)),
        ("go7", games.make("go", size=7)),
        ("other/go5", games.make("go", size=5, komi=6.5)),
        ("run/models/s10", games.make("tic_tac_toe")),
    ):
        saving.save(nets.build(nets.spec("b1c8"), game, nnx.Rngs(0)), folder / name, game, {"seconds": 1.0, "step": 1})
    return folder


def read(*texts: object) -> tuple[player_spec.PlayerSpec, player_spec.PlayerSpec]:
    a, b = (player_spec.parse(str(text)) for text in texts)
    return player_spec.pair(a, b)


def test_who_is_meant(saved: Path) -> None:
    kinds = [player_spec.parse(text).kind for text in ("random", "mcts:20", "gtp:gnugo --mode gtp", "uci:stockfish")]
    assert kinds == ["plain", "plain", "engine", "engine"]
    assert player_spec.parse(str(saved / "go5")).name == "go5"
    assert player_spec.parse(str(saved / "run")).name == "s10"
    told = (("Skill Level", "3"),)
    assert player_spec.parse("uci:stockfish", told).name == "uci:stockfish Skill Level=3"
    assert player_spec.parse("uci@100:stockfish", told).name == "uci@100:stockfish Skill Level=3"
    for wrong in ("uci@:stockfish", "uci@0:stockfish", "uci@x:stockfish", "gtp@100:gnugo"):
        with pytest.raises(TengenError, match="as in uci@100:stockfish"):
            player_spec.parse(wrong)
    assert player_spec.parse("gtp:gnugo", told).name == "gtp:gnugo"


@pytest.mark.parametrize("text", ["", "nothing/there", "randm", "katago"])
def test_nobody_is_meant(text: str) -> None:
    with pytest.raises(TengenError, match="expected a network, a run, random, mcts:200"):
        player_spec.parse(text)


def test_gnu_go_is_given_the_rules_of_the_game() -> None:
    options = vars(games.make("go", ko="situational").options)
    found = player_spec.parse("gtp:gnugo --mode gtp").told_rules("go", options)
    assert found.added == "--chinese-rules --capture-all-dead --situational-superko"
    assert found.name == found.text == f"gtp:gnugo --mode gtp {found.added}"
    assert found.added in found.explanation
    assert found.told_rules("go", options) == found
    for text in ("random", "uci:stockfish", "gtp:katago gtp"):
        assert player_spec.parse(text).told_rules("go", options) == player_spec.parse(text)


def test_names_differ(saved: Path) -> None:
    assert [one.name for one in read("random", "random")] == ["random", "random#2"]
    assert [one.name for one in read(saved / "go5", saved / "go5")] == ["go5", "go5#2"]
    assert [one.name for one in read(saved / "go5", saved / "other/go5")] == [
        str(saved / "go5"),
        str(saved / "other/go5"),
    ]


def test_the_game_is_that_of_the_networks(saved: Path) -> None:
    game = player_spec.common_game(*read(saved / "go5", "random"), None, {})
    assert (game.name, game.options.size, game.options.komi) == ("go", 5, 6.5)
    game = player_spec.common_game(*read(saved / "go5", saved / "other/go5"), None, {"komi": 0.5})
    assert (game.options.size, game.options.komi) == (5, 0.5)
    game = player_spec.common_game(*read(saved / "go5", saved / "go7"), "go9", {"ko": "simple"})
    assert (game.options.size, game.options.ko) == (9, "simple")
    assert player_spec.common_game(*read("random", "mcts:2"), "hex", {"size": 4}).name == "hex"


@pytest.mark.parametrize(
    ("a", "b", "name", "words"),
    [
        ("random", "mcts:2", None, "neither player is a network, so say what they play"),
        ("go5", "go7", None, "trained on different games .*size: expected 5, got 7.*--game"),
        ("go5", "run", None, "expected the game go, got tic_tac_toe"),
        ("go5", "random", "connect_four", "a network for go, and the game is connect_four"),
        ("random", "mcts:0", "go", "expected 1 to"),
        ("random", "mcts:many", "go", "number of playouts"),
        ("random", "random", "no_such_game", "--game no_such_game: neither a game .* nor a configuration"),
        ("random", "gtp:no-such-engine", "go", "no such program"),
        ("run", "gtp:gnugo", None, "play Go .* and this is tic_tac_toe"),
        ("random", "uci:stockfish", "go", "play chess .* and this is go"),
    ],
)
def test_no_game_in_common(a: str, b: str, name: str | None, words: str, saved: Path) -> None:
    there = [saved / text if (saved / text).exists() else text for text in (a, b)]
    with pytest.raises(TengenError, match=words):
        player_spec.common_game(*read(*there), name, {})


def test_the_rules_have_changed_since_the_network_was_trained(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(games.make("go")), "version", 99)
    for other in ("random", saved / "other/go5"):
        a, b = read(saved / "go5", other)
        game = player_spec.common_game(a, b, None, {})
        with pytest.raises(TengenError, match="made for version 1 of go; the rules .* have changed"):
            a.player(game, players.strongest(SearchSettings(), 2))


def test_options_that_are_none() -> None:
    with pytest.raises(TengenError, match="size"):
        player_spec.common_game(*read("random", "random"), "go", {"size": 99})


def test_those_who_play(saved: Path) -> None:
    game = games.make("go", size=5)
    a, b = read(saved / "go5", "gtp:true")
    settings = players.strongest(SearchSettings(), 2)
    net = a.side(game, settings, "float32", Terms())
    assert isinstance(net, players.Player)
    assert (net.name, net.on_host) == ("go5", False)
    assert isinstance(b.side(game, settings, "float32", Terms()), EnginePool)
    _, second = read("random", "random")
    assert second.player(game).name == "random#2"
    with pytest.raises(TengenError, match="a network for go, expected one for tic_tac_toe"):
        a.player(games.make("tic_tac_toe"), settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mcts", "mcts: expected the number of playouts per move, as in mcts:200"),
        ("mcts:", "expected the number of playouts"),
        ("mcts:many", "expected the number of playouts"),
        ("mcts:-3", "expected the number of playouts"),
        ("mcts:1.5", "expected the number of playouts"),
        ("mcts:٣", "expected the number of playouts"),
        ("mcts:0", "mcts: expected 1 to 16000 playouts per move, got 0"),
        ("mcts:99999", "got 99999"),
        ("random:3", "random:3: random takes no number"),
        ("x" * 900, "there is no such file or folder"),
    ],
)
def test_names_of_players_without_a_network_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        player_spec.parse(text).player(games.make("tic_tac_toe"))


def test_players_without_a_network() -> None:
    game = games.make("tic_tac_toe")
    made = {text: player_spec.parse(text).player(game) for text in (" random ", "mcts:0200", "mcts:200", "mcts:100")}
    assert [player.name for player in made.values()] == ["random", "mcts:200", "mcts:200", "mcts:100"]
    assert made["mcts:200"].rule == made["mcts:0200"].rule != made["mcts:100"].rule


def test_players_of_a_role(saved: Path) -> None:
    game = games.make("hironaka", max_points=3)
    for text, role in (("zeillinger", "host"), ("first", "agent"), ("random", "agent")):
        assert player_spec.parse_role(text, role, game).player(game).name == text
    with pytest.raises(OptionError, match='"all": no agent has that name, expected one of random, first, last, or the'):
        player_spec.parse_role("all", "agent", game)
    found = player_spec.parse_role(str(saved / "run"), "host", games.make("tic_tac_toe"))
    assert (found.name, found.kind) == ("s10", "network")
