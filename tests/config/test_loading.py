"""A configuration is complete and right, or every problem is named with its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.config import load, render
from tengen.config.loading import load_any
from tengen.config.settings.data import WindowSettings
from tengen.config.settings.match import RatingSection
from tengen.config.settings.run import GoalSection
from tengen.config.settings.selfplay import SelfplaySettings
from tengen.config.source import find, shipped
from tengen.errors import ConfigError

GO5 = """\
run:
  name: mine
  about: a test
  seed: 3
game:
  name: go
  size: 5
  komi: 7
  ko: positional
  suicide: false
  max_moves: null
  observation: tengen
net:
  name: b2c16
  heads: [ownership, score]
  dtype: float32
  spec: null
  options: {}
  start_from: null
  growth: []
selfplay:
  games: 8
  sizes: []
  decided_value: 0.9
  decided_full_share: 0.5
  full_share: 0.5
  cheap_simulations: 4
  cheap_weight: 0
  surprise_share: 0
  value_horizon: 0
  reuse: true
  opening_moves: 2
  temperature: 1
  last_temperature: 0.25
  halving_plies: 5
  komi_spread: 0.5
  opponents: []
  stages: []
search:
  {algorithm: puct, simulations: 12, leaves: 1, c_init: 1.5, c_base: 1e4, fpu_reduction: 0.2, root_fpu_reduction: 0,
   root_temperature: 1.1, noise_share: 0.25, noise_total: 10, forced_playouts: 2, lower_bound: 0, considered: 16,
   considered_visits: 1, gumbel_scale: 1, value_scale: 0.1, visit_offset: 50, value_range: 0, score_weight: 0,
   virtual_loss: 1, kernels: plain}
data:
  window: {min_rows: 1000, max_rows: null, exponent: 0.65, growth: 0.4, scale: 500}
  ring_rows: 5000
  first_rows: 200
  chunk_rows: 300
  max_chunk_rows: 100000
  format: tengen
  record_share: 0.1
train:
  batch: 32
  lr_scale: 1
  samples_per_row: 4
  largest_debt: 1000
  average_decay: 0.99
  symmetries: true
  optimizer:
    {kind: sgd, learning_rate: 0.02, momentum: 0.9, square_momentum: 0.99, weight_decay: 1e-4, clip: null}
  schedule:
    {kind: steps, warmup: 10, boundaries: [100, 200], factor: 0.3, length: 1000, lowest: 0.1, patience: 5, better: 0.01}
  loss:
    {policy: 1, value: 1, search_share: 0.1, opponent_policy: 0.1, ownership: 0.5, score_mean: 0.01, score_spread: 0.01,
     moves_left: 0, extra: []}
  checkpoints: {interval: 50, keep: 2, long_term_interval: null}
shuffle:
  {keep_target_rows: 5000, rows_per_file: 1000, validation_share: 0.1, compress: false, memory_bytes: 100000000,
   workers: 1, scratch: null, keep_shuffles: 2, lease_minutes: 5}
ring:
  {selfplay_rows: 100, selfplay_games: null, switch_in_game: true, shuffle_rows: 100, samples_per_epoch: 1000,
   passes_per_shuffle: 1, epochs_per_export: 1, devices: {selfplay: [], train: []},
   validation_rows: 100, poll_seconds: 1}
gate:
  {kind: share, games: 20, round_games: 12, simulations: 8, opening_moves: 2, share: 0.5, sprt_low: 0, sprt_high: 20,
   sprt_error: 0.05, newest_first: false, most_waiting: 8}
cluster: {actors: auto, cores: 2, gpus: auto, learner_gpus: auto, stale_steps: 50, waiting_chunks: 32, gate: false}
daemon:
  {data: null, chunks_per_network: 10, steps_per_network: 100, validation: 0.1, test: 0, validation_rows: 100,
   loader: {pool_chunks: 50, chunk_share: 1, reservoir_rows: 0, readers: 1, diff_focus: null}, poll_seconds: 1,
   keep_networks: null, end_with_input: null,
   upload: {kind: http, target: "https://x.org/", token_variable: TOKEN, timeout: 60, deadline: 90, first_pause: 1}}
rating:
  minutes: 0.5
  games: 10
  simulations: 8
  opening_moves: 2
  references: [random, "mcts:20"]
  earlier: 1
goal:
  minutes: 2.5
  games: null
  rows: 4000
  steps: null
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("load") / "mine.yaml"


def problems(file: Path, text: str, *overrides: str) -> list[str]:
    """The problems of a file with this text, without the file's folder."""
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, overrides)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [problem.replace(str(file), "mine.yaml") for problem in caught.value.problems]


def problems_or_none(file: Path) -> tuple[str, ...]:
    try:
        load(file)
    except ConfigError as error:
        return error.problems
    return ()


def test_a_good_file(file: Path) -> None:
    file.write_text(GO5)
    config = load(file)
    assert (config.run.name, config.run.about, config.run.seed) == ("mine", "a test", 3)
    assert config.game.name == "go"
    assert config.game.options.size == 5
    assert config.game.options.komi == 7.0
    assert config.game.options.max_moves is None
    assert (config.net.name, config.net.heads, config.net.dtype) == ("b2c16", ("ownership", "score"), "float32")
    assert config.selfplay == SelfplaySettings(8, (), 0.5, 4, 0.9, 0.5, 0, 0, 0, True, 2, 1, 0.25, 5, 0.5)
    assert (config.search.algorithm, config.search.simulations, config.search.kernels) == ("puct", 12, "plain")
    assert config.data.window == WindowSettings(1000, None, 0.65, 0.4, 500)
    assert (config.data.ring_rows, config.data.first_rows, config.data.chunk_rows) == (5000, 200, 300)
    assert (config.train.batch, config.train.optimizer.kind, config.train.optimizer.clip) == (32, "sgd", None)
    assert config.train.schedule.boundaries == (100, 200)
    assert config.train.loss.search_share == 0.1
    assert config.train.checkpoints.long_term_interval is None
    assert config.rating == RatingSection(0.5, 10, 8, 2, ("random", "mcts:20"), 1)
    assert config.goal == GoalSection(2.5, None, 4000, None)


@pytest.mark.parametrize("name", shipped())
def test_shipped_files_are_exactly_what_show_prints(name: str) -> None:
    config = load_any(name)
    assert config.run.name == name
    assert find(name).text == render(config)


def line(text: str, fragment: str) -> str:
    """The place of a fragment in the file."""
    return f"(mine.yaml, line {text[: text.index(fragment)].count(chr(10)) + 1})"


def test_all_problems_in_the_order_of_the_file(file: Path) -> None:
    text = (
        GO5.replace("seed: 3", "sead: 3\n  name: again")
        .replace("size: 5", "size: many")
        .replace("ko: positional", "ko: super")
        .replace("dtype: float32", "dtype: float")
        .replace("games: 8", "games: 0")
        .replace("clip: null", "clip: 0")
        .replace('"mcts:20"', '"mcts:x"')
        .replace("goal:", "nett:\n  x: 1\ngoal:")
    )
    assert problems(file, text) == [
        "run.seed: missing, expected a whole number from 0 to 4294967295 (mine.yaml, line 1)",
        "run.sead: unknown key, did you mean seed? (mine.yaml, line 4)",
        "run.name: given twice, first on line 2 (mine.yaml, line 5)",
        f'game.size: expected a whole number from 2 to 19, got "many" {line(text, "size: many")}',
        f'game.ko: expected one of simple, positional, situational, got "super" {line(text, "ko: super")}',
        f'net.dtype: expected one of bfloat16, float32, got "float" {line(text, "dtype: float")}',
        f"selfplay.games: expected a whole number from 1 to 1000000, got 0 {line(text, 'games: 0')}",
        f"train.optimizer.clip: expected a number from 1e-06 to 1000000.0 or null, got 0 {line(text, 'clip: 0')}",
        "rating.references[1]: expected random, or mcts:N for plain tree search with N playouts a move, at most 9999, "
        f'got "mcts:x" {line(text, "mcts:x")}',
        f"nett: unknown key, did you mean net? {line(text, 'nett:')}",
    ]


def test_a_missing_section(file: Path) -> None:
    assert problems(file, GO5.partition("goal:")[0]) == [
        "goal: missing, expected a section with the keys minutes, games, rows, steps (mine.yaml)"
    ]
    assert problems(file, GO5.replace("  checkpoints: {interval: 50, keep: 2, long_term_interval: null}\n", "")) == [
        "train.checkpoints: missing, expected a section with the keys interval, keep, long_term_interval "
        + line(GO5, "train:")
    ]


def test_an_empty_section(file: Path) -> None:
    assert problems(file, GO5.partition("goal:")[0] + "goal:\n") == [
        f"goal: expected a section with the keys minutes, games, rows, steps, got null {line(GO5, 'goal:')}"
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("last_temperature: 0.25", "last_temperature: 2", "selfplay.last_temperature: expected at most temperature, 1"),
        ("max_rows: null", "max_rows: 9", "data.window.max_rows: expected at least min_rows, which is 1000, got 9"),
        ("[100, 200]", "[200, 100]", "train.schedule.boundaries: expected rising steps, got 200, 100"),
        ("batch: 32", "batch: 2000", "train.largest_debt: expected at least one batch of 2000, got 1000"),
        ("games: 10", "games: 9", "rating.games: expected a multiple of 2 from 2 to 100000, got 9"),
        ("simulations: 12", "simulations: 3", "selfplay.cheap_simulations: expected at most search.simulations, 3"),
        ("first_rows: 200", "first_rows: 5001", "data.first_rows: expected at most data.ring_rows, 5000"),
        ("format: tengen", "format: katago", "data.format: expected tengen, because KataGo trains on go with"),
        ("format: tengen", "format: lc0", "data.format: expected tengen, because Lc0 trains on chess with"),
    ],
)
def test_settings_that_do_not_go_together(file: Path, old: str, new: str, problem: str) -> None:
    assert old in GO5
    (found,) = problems(file, GO5.replace(old, new))
    assert found.startswith(problem)


def test_komi_is_drawn_only_where_there_is_one(file: Path) -> None:
    file.write_text(find("hex7").text)
    assert load(file, ["selfplay.komi_spread=0"]).selfplay.komi_spread == 0
    with pytest.raises(ConfigError) as caught:
        load(file, ["selfplay.komi_spread=1"])
    assert caught.value.problems == (
        "selfplay.komi_spread: expected 0, because hex has no komi (--set selfplay.komi_spread=1)",
    )


def test_an_unknown_game_says_nothing_about_its_options(file: Path) -> None:
    (problem,) = problems(file, GO5.replace("name: go", "name: gow"))
    assert problem.startswith("game.name: ")
    assert "gow" in problem
    assert problem.endswith("(mine.yaml, line 6)")


@pytest.mark.parametrize("name", ["", "a.b", "a b", "x" * 61, "é", "../up"])
def test_names_that_make_bad_file_names(file: Path, name: str) -> None:
    (problem,) = problems(file, GO5.replace("name: mine", f'name: "{name}"'))
    assert problem.startswith("run.name: expected letters, digits, - and _, at most 60 of them, got ")


def test_about_is_one_line(file: Path) -> None:
    (problem,) = problems(file, GO5.replace("about: a test", 'about: "a\\nb"'))
    assert problem.startswith("run.about: expected one line of text")


def test_a_network_that_does_not_exist(file: Path) -> None:
    (problem,) = problems(file, GO5.replace("b2c16", "b2x16"))
    assert problem.startswith('net.name: "b2x16": no network has that name, expected one like b6c96 ')
    assert problem.endswith("(mine.yaml, line 14)")
    assert problems(file, GO5.replace("ownership, score", "score, score")) == [
        "net.heads: expected each head once, got score, score (mine.yaml, line 15)"
    ]


def test_a_network_that_cannot_play_the_game(file: Path) -> None:
    assert problems(file, GO5.replace("b2c16", "mlp3x256")) == [
        "net.name: go is played on a 5x5 board, expected a tower such as b6c96 (mine.yaml, line 14)"
    ]
    file.write_text(find("tic_tac_toe").text)
    with pytest.raises(ConfigError) as caught:
        load(file, ["net.heads=[moves_left, ownership]"])
    assert caught.value.problems == (
        "net.heads: tic_tac_toe has no ownership to learn from, expected some of opponent_policy, moves_left "
        "(--set net.heads=[moves_left, ownership])",
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "nothing"), ("# x\n", "nothing"), ("go", '"go"'), ("- run", "a list"), ("3", "3")],
)
def test_not_a_configuration_at_all(file: Path, text: str, found: str) -> None:
    assert problems(file, text, "game.size=5") == [
        "expected the sections run, game, net, search, selfplay, data, train, shuffle, ring, gate, "
        "cluster, daemon, rating, goal, "
        f"found {found} (mine.yaml, line 1)"
    ]


def test_what_is_not_yaml_is_the_only_problem(file: Path) -> None:
    assert problems(file, "run: [\n") == [
        "not valid YAML: expected the node content, but found '<stream end>' while parsing a flow node "
        "(mine.yaml, line 2)"
    ]


def test_an_alias_is_reported_once_and_the_rest_still_checked(file: Path) -> None:
    text = GO5.replace("size: 5", "size: *x").replace("games: 8", "games: no")
    assert problems(file, text) == [
        'game.size: the alias "x" is not supported, write the value (mine.yaml, line 7)',
        'selfplay.games: expected a whole number from 1 to 1000000, got "no" (mine.yaml, line 22)',
    ]


@pytest.mark.parametrize(("text", "step"), [(GO5[: GO5.index("selfplay:")], 3), (GO5, 23), (find("hex7").text, 97)])
def test_every_prefix_is_good_or_refused_in_words(file: Path, text: str, step: int) -> None:
    for length in range(0, len(text), step):
        file.write_text(text[:length])
        assert all(problems_or_none(file))


@given(st.integers(0, len(GO5)), st.integers(0, 12), st.text(max_size=6) | st.sampled_from("{}[]&*!|%@`\"'-?:"))
def test_every_damaged_file_is_good_or_refused_in_words(file: Path, at: int, length: int, text: str) -> None:
    file.write_text(GO5[:at] + text + GO5[at + length :], "utf-8")
    assert all(len(problem.splitlines()) == 1 for problem in problems_or_none(file))


@given(st.binary(max_size=60))
def test_every_garbage_is_refused_in_words(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(ConfigError):
        load(file)


def test_settings_that_have_moved(file: Path) -> None:
    new = "loader: {pool_chunks: 50, chunk_share: 1, reservoir_rows: 0, readers: 1, diff_focus: null}"
    old = "pool_chunks: 50, chunk_share: 1, reservoir_rows: 0, readers: 1"
    moved = GO5.replace(new, old)
    assert moved != GO5
    found = [text for text in problems(file, moved) if "is now" in text]
    assert found[0].startswith("daemon.pool_chunks: is now daemon.loader.pool_chunks (mine.yaml, line ")
    assert len(found) == 4
    file.write_text(f"# tengen 0.1.0\n{moved}")  # as a run of an earlier version has it
    assert load(file).daemon.loader.pool_chunks == 50
    assert load(file, ["daemon.loader.pool_chunks=60"]).daemon.loader.pool_chunks == 60
    with pytest.raises(
        ConfigError, match=r"daemon\.readers: is now daemon\.loader\.readers \(--set daemon\.readers=3\)"
    ):
        load("go9", ["daemon.readers=3"])


REMOVED = "selfplay.branch_share: was removed, because games that branched off others made no network stronger"


@pytest.mark.parametrize("head", ["", "# tengen 0.1.0\n"])
def test_settings_that_were_removed(head: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Files that people or runs wrote for earlier versions are read; `--set` is refused."""
    file = tmp_path / "mine.yaml"
    file.write_text(GO5)
    new = load(file)
    file.write_text(head + GO5.replace("  opening_moves: 2\n  temp", "  opening_moves: 2\n  branch_share: 0\n  temp"))
    assert load(file) == new
    assert not caplog.messages
    file.write_text(file.read_text().replace("branch_share: 0", "branch_share: 0.3"))
    assert load(file) == load(file) == new
    line = file.read_text().partition("branch_share")[0].count("\n") + 1
    assert caplog.messages == [f"{REMOVED}; 0.3 has no effect ({file}, line {line})"]
    assert "branch_share" not in render(load(file))
    assert problems(file, GO5, "selfplay.branch_share=0.3") == [f"{REMOVED} (--set selfplay.branch_share=0.3)"]
