"""What is rendered is read back as the same configuration."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen import games, schema
from tengen.config import load, render
from tengen.config.reader import parse
from tengen.config.rendering import render_value
from tengen.config.sections import Config
from tengen.config.settings.data import DaemonSettings, DataSection, UploadSettings, WindowSettings
from tengen.config.settings.match import RatingSection
from tengen.config.settings.net import NetSection
from tengen.config.settings.parts import ClusterSettings, GateSettings, PipelineSettings, ShuffleSettings
from tengen.config.settings.run import GameSection, GoalSection, RunSection
from tengen.config.settings.search import SearchSettings as SearchSettings
from tengen.config.settings.selfplay import SelfplaySettings
from tengen.config.settings.train import LossSettings, OptimizerSettings, ScheduleSettings, TrainSettings

# All characters but halves of surrogate pairs, which no file can hold.
_characters = st.characters(exclude_categories=("Cs",))
_lines = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=200)
_odd_words = st.sampled_from(
    [
        "true",
        "No",
        "null",
        "~",
        "9",
        "1e-3",
        ".5",
        "0x1",
        "- a",
        "a: b",
        "a #b",
        "&a",
        "*a",
        "!a",
        "%a",
        " a",
        "a ",
    ]
)


def _game(name: str, **options: object) -> GameSection:
    return GameSection(name, schema.from_options(games.options_class(name), options, name))


_games = st.one_of(
    st.just(_game("othello")),
    st.builds(_game, st.just("hex"), size=st.integers(3, 13), swap=st.booleans()),
    st.builds(
        _game,
        st.just("go"),
        size=st.integers(2, 19),
        komi=st.integers(-40, 40).map(lambda halves: halves / 2),
        ko=st.sampled_from(["simple", "positional", "situational"]),
        suicide=st.booleans(),
        max_moves=st.none() | st.integers(50, 2000),
    ),
)
_runs = st.builds(
    RunSection,
    name=st.from_regex(re.compile("[A-Za-z0-9_-]{1,60}", re.ASCII), fullmatch=True) | st.just("1e5"),
    about=_lines | _odd_words,
    seed=st.integers(0, 2**32 - 1),
)
_nets = st.builds(
    NetSection,
    name=st.sampled_from(["b6c96", "b1c8-se-mish", "b2c16nbt"]),
    heads=st.lists(st.sampled_from(["opponent_policy", "moves_left"]), unique=True).map(tuple),
    dtype=st.sampled_from(["bfloat16", "float32"]),
    spec=st.none(),
    options=st.none(),
    start_from=st.sampled_from([None, "runs/go9"]),
    growth=st.just(()),  # which need a goal
)
_shares = st.floats(0, 1, allow_subnormal=False)
_counts = st.integers(1000, 10**6)


def _or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


_searches = st.builds(
    SearchSettings,
    algorithm=st.sampled_from(["gumbel", "puct"]),
    simulations=st.integers(8, 30000),
    fpu_reduction=st.floats(0, 2),
)
_selfplays = st.builds(
    SelfplaySettings,
    games=st.integers(1, 1_000_000),
    full_share=st.floats(0.01, 1),
    cheap_weight=_shares,
    surprise_share=_shares,
    value_horizon=_shares,
    reuse=st.booleans(),
    last_temperature=_shares,
)
_datas = st.builds(
    DataSection,
    window=st.builds(WindowSettings, min_rows=st.integers(1, 1000), max_rows=_or_none(_counts)),
    ring_rows=_counts,
    first_rows=st.integers(1, 1000),
    chunk_rows=_counts,
    max_chunk_rows=st.integers(10_000, 10**8),
    format=st.just("tengen"),
    record_share=_shares,
)
_trains = st.builds(
    TrainSettings,
    batch=_counts,
    samples_per_row=st.floats(0.01, 1000),
    optimizer=st.builds(OptimizerSettings, kind=st.sampled_from(["sgd", "muon"]), clip=_or_none(st.floats(1e-6, 1e6))),
    schedule=st.builds(ScheduleSettings, boundaries=st.sets(_counts, max_size=4).map(lambda x: tuple(sorted(x)))),
    loss=st.builds(LossSettings, policy=st.floats(0, 1000)),
)
_ratings = st.builds(
    RatingSection,
    minutes=st.floats(0.05, 1e5),
    games=st.integers(1, 50_000).map(lambda pairs: 2 * pairs),
    simulations=st.integers(1, 30000),
    opening_moves=st.integers(0, 100),
    references=st.lists(st.just("random") | st.integers(1, 9999).map("mcts:{}".format), max_size=4).map(tuple),
    earlier=st.integers(0, 10),
)
_goals = st.builds(
    GoalSection,
    minutes=_or_none(st.floats(0.01, 1e7)),
    games=_or_none(_counts),
    rows=_or_none(_counts),
    steps=_or_none(_counts),
)
_daemons = st.builds(
    DaemonSettings,
    data=_or_none(st.sampled_from(["/data/chunks", "a b", "~", "- x: #"])),
    end_with_input=_or_none(st.booleans()),
    upload=st.sampled_from([UploadSettings(), UploadSettings("http", "https://x.org/{name}?a=b#c", "TOKEN")]),
)
_configs = st.builds(
    Config,
    run=_runs,
    game=_games,
    net=_nets,
    search=_searches,
    selfplay=_selfplays,
    data=_datas,
    train=_trains,
    shuffle=st.builds(ShuffleSettings),
    ring=st.builds(PipelineSettings, selfplay_games=_or_none(_counts), switch_in_game=st.booleans()),
    gate=st.builds(GateSettings, kind=st.sampled_from(["none", "share", "sprt"])),
    cluster=st.builds(ClusterSettings, actors=st.just("auto") | st.integers(1, 10_000), gpus=st.floats(0, 1)),
    daemon=_daemons,
    rating=_ratings,
    goal=_goals,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("render") / "config.yaml"


@given(_configs)
def test_load_gives_back_what_was_rendered(file: Path, config: Config) -> None:
    file.write_bytes(render(config).encode())
    assert load(file) == config


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**290), 10**290)
        | st.text(_characters)
        | _odd_words
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4).map(tuple),
        max_leaves=6,
    )
)
def test_any_value_is_written_on_one_line_and_read_back(value: Any) -> None:
    def as_lists(value: Any) -> Any:
        return [as_lists(item) for item in value] if isinstance(value, tuple) else value

    text = f"key: {render_value(value)}  # comment"
    assert len(text.splitlines()) == 1
    document = parse(text)
    assert document.problems == []
    assert document.data == {"key": as_lists(value)}
    assert type(document.data["key"]) is type(as_lists(value))


_OPTIONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | st.text(_characters, max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(_characters, max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(_characters, max_size=9), _OPTIONS, max_size=4))
def test_options_are_read_back(options: dict[str, Any]) -> None:
    text = f"key: {render_value(options)}  # comment"
    assert len(text.splitlines()) == 1
    document = parse(text)
    assert document.problems == []
    assert document.data == {"key": options}


def test_every_key_is_explained_in_one_column() -> None:
    config = load("hex7")
    text = render(config)
    sections: list[Any] = [config]
    for section in sections:
        for setting, value in schema.values(section):
            if dataclasses.is_dataclass(value):
                sections.append(value)
                assert f"# {setting.help}\n" in text
            else:
                assert f"# {setting.help}: {setting.expected}\n" in text
    assert len(sections) == 23  # Config, its fourteen, data.window, four of train, ring.devices, two of daemon
    game = text.partition("\ngame:\n")[2].partition("\n\n")[0].splitlines()
    assert len({line.index("#") for line in game}) == 1


def test_a_long_value_has_its_explanation_above() -> None:
    lines = render(load("go9", [f"run.about={'long ' * 20}"])).splitlines()
    about = next(index for index, line in enumerate(lines) if line.startswith("  about: "))
    assert lines[about - 1].startswith("  # purpose of the run: ")
