"""What may be varied, how it is written, and what is said about what may not."""

import random
from collections import Counter
from typing import Any

import pytest

from tengen import schema
from tengen.config import load
from tengen.config.sections import Config
from tengen.errors import ConfigError
from tengen.sweep import space
from tengen.sweep.space import Space, ValueChoice, ValueRange


@pytest.fixture(scope="module")
def config() -> Config:
    return load("tic_tac_toe")


def test_lists_are_yaml_and_ranges_have_two_ends(config: Config) -> None:
    axes = space.parse(
        ["train.batch=16,32", "net.name=b1c8,b2c16", "net.heads=[],[moves_left]", "train.optimizer.clip=null,1.0"],
        ["train.optimizer.learning_rate=1e-4..1e-2:log", "search.simulations=16..64", "rating.games=10..21"],
        config,
    )
    assert axes == (
        ValueChoice("train.batch", (16, 32)),
        ValueChoice("net.name", ("b1c8", "b2c16")),
        ValueChoice("net.heads", ([], ["moves_left"])),
        ValueChoice("train.optimizer.clip", (None, 1.0)),
        ValueRange("train.optimizer.learning_rate", 1e-4, 1e-2, log=True),
        ValueRange("search.simulations", 16, 64, step=1),
        ValueRange("rating.games", 10, 21, step=2),
    )


def test_a_short_name_that_can_mean_one_setting_alone(config: Config) -> None:
    assert space.parse(["train.lr=1e-3"], [], config)[0].key == "train.optimizer.learning_rate"
    assert space.parse(["train.learning_rate=1e-3"], [], config)[0].key == "train.optimizer.learning_rate"


@pytest.mark.parametrize(
    ("grid", "drawn", "said"),
    [
        ("train.batsh=16", "", "train.batsh: unknown key, did you mean train.batch?"),
        (
            "net.width=8,16",
            "",
            "net.width: unknown key, expected one of net.name, net.spec, net.options, net.start_from, net.dtype",
        ),
        ("trian.batch=1", "", "trian.batch: unknown key, did you mean train.batch?"),
        ("zzz.qqq=1", "", "zzz.qqq: unknown key, expected one of run, game, net,"),
        ("train.learning_rat=1", "", "did you mean train.optimizer.learning_rate?"),
        ("train.optimizer=1", "", "train.optimizer: is a section, expected one of train.optimizer.kind"),
        ("train.kind=adamw", "", "train.kind: could be any of train.optimizer.kind, train.schedule.kind"),
        ("train.batch", "", "expected --grid section.key=values"),
        ("train.batch=", "", "expected --grid section.key=values"),
        ("=3", "", "expected --grid section.key=values"),
        ("train.batch=16,16", "", "train.batch: 16 is given twice"),
        ("train.batch=[1", "", "train.batch: not valid YAML"),
        ("train.batch=16..64", "", "--grid takes a list of values; for a range write --random train.batch=16..64"),
        ("goal.steps=10,20", "", "goal.steps: the length of a trial is set by --minutes"),
        ("", "train.batch=64..16", "train.batch: expected LOW..HIGH with the lower number first"),
        ("", "train.batch=a..b", "train.batch: expected LOW..HIGH, two numbers"),
        ("", "train.batch=1..inf", "train.batch: expected LOW..HIGH, two numbers"),
        ("", "train.batch=1..8:exp", "train.batch: expected LOW..HIGH or LOW..HIGH:log, got :exp"),
        ("", "train.batch=0..8", "train.batch: expected a whole number from 1 to 1000000, got 0..8"),
        ("", "search.c_init=0..8:log", "search.c_init: a logarithmic range must begin above 0"),
        ("", "rating.games=10.5..11.5", "rating.games: there is no a multiple of 2"),
        ("", "net.name=1..2", "net.name: is not a number but"),
        ("", "", "nothing to vary"),
    ],
)
def test_what_cannot_be_varied(config: Config, grid: str, drawn: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        space.parse([grid] if grid else [], [drawn] if drawn else [], config)
    assert said in str(caught.value)


def test_every_problem_is_said_at_once_and_a_setting_is_given_once(config: Config) -> None:
    with pytest.raises(ConfigError) as caught:
        space.parse(["a.b=1", "train.batch=1", "train.batch=2"], [], config)
    assert len(caught.value.problems) == 2
    assert caught.value.problems[1] == "train.batch: given twice (--grid train.batch=2)"


def test_what_is_written_for_set_is_read_back_as_it_was(config: Config) -> None:
    for key, value in {"train.optimizer.learning_rate": 3e-7, "net.heads": ["moves_left"], "net.name": "b1c8"}.items():
        changed = load("tic_tac_toe", [space.override(key, value)])
        read = {schema.dotted(each.path): each.value for each in schema.flat(changed)}[key]
        assert (list(read) if isinstance(read, tuple) else read) == value


def test_all_combinations_in_order() -> None:
    found = list(Space((ValueChoice("a", (1, 2)), ValueChoice("b", ("x", "y")))).all())
    assert found == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]


def test_draws_stay_inside_and_are_even_on_their_scale() -> None:
    source = random.Random(1)
    log = [ValueRange("a", 1e-4, 1e-2, log=True).draw(source) for _ in range(2000)]
    assert all(1e-4 <= value <= 1e-2 for value in log)
    assert 900 < sum(value < 1e-3 for value in log) < 1100  # one of two decades
    whole = Counter(ValueRange("a", 1, 4, step=1).draw(source) for _ in range(2000))
    assert set(whole) == {1, 2, 3, 4}
    assert all(isinstance(value, int) for value in whole)
    assert all(ValueRange("a", 3, 11, step=4).draw(source) in (4, 8) for _ in range(100))


def test_drawn_settings_differ_while_there_are_others() -> None:
    choices = Space((ValueChoice("a", (1, 2, 3)), ValueChoice("b", (1, 2))))
    found = choices.draw(6, random.Random(3))
    assert sorted(map(str, found)) == sorted(map(str, choices.all()))
    again = Counter(map(str, choices.draw(12, random.Random(3))))
    assert set(again.values()) == {2}
    ranges = Space((ValueRange("a", 0, 1), ValueChoice("b", (1, 2)))).draw(50, random.Random(3))
    assert len({str(each) for each in ranges}) == 50


def test_settings_that_do_not_go_together_are_not_drawn() -> None:
    def problems(settings: dict[str, Any]) -> list[str]:
        return ["b: expected at most a"] if settings["b"] > settings["a"] else []

    for axes in (
        (ValueRange("a", 1, 9, step=1), ValueRange("b", 1, 9, step=1)),
        (ValueChoice("a", (1, 2)), ValueChoice("b", (1, 2))),
    ):
        assert all(not problems(each) for each in Space(axes, problems).draw(20, random.Random(0)))
    for axes in ((ValueRange("a", 1, 2), ValueRange("b", 3, 4)), (ValueChoice("a", (1,)), ValueChoice("b", (3,)))):
        with pytest.raises(ConfigError) as caught:
            Space(axes, problems).draw(2, random.Random(0))
        assert "b: expected at most a" in str(caught.value)
        assert "narrow the ranges" in str(caught.value)


def test_a_perturbed_number_is_a_fifth_less_or_a_quarter_more_or_drawn_anew() -> None:
    axis, source = ValueRange("a", 0.001, 1000.0), random.Random(0)
    found = Counter(round(axis.perturb(10.0, source), 3) for _ in range(1000))
    assert found[8.0] + found[12.5] > 700
    assert found[8.0] > 300
    assert found[12.5] > 300
    assert sum(count for value, count in found.items() if value not in (8.0, 12.5)) > 200
    assert {ValueRange("a", 9.0, 11.0).perturb(10.0, source) for _ in range(50)} >= {9.0, 11.0}  # kept inside
    assert {ValueRange("a", 1, 100, step=1).perturb(2, source) for _ in range(60)} >= {1, 3}  # never stuck


def test_a_perturbed_choice_moves_to_a_neighbour() -> None:
    source = random.Random(0)
    assert {ValueChoice("a", (4, 1, 2)).perturb(2, source) for _ in range(50)} == {1, 4}
    assert {ValueChoice("a", (4, 1, 2)).perturb(1, source) for _ in range(50)} == {1, 2}
    assert {ValueChoice("a", ("x", "y")).perturb("x", source) for _ in range(50)} == {"x", "y"}


def test_what_is_kept_is_not_perturbed() -> None:
    both = Space((ValueChoice("net.name", ("x", "y")), ValueRange("b", 1, 100)))
    for number in range(20):
        moved = both.perturb({"net.name": "x", "b": 10.0}, random.Random(number), kept=["net.name"])
        assert moved["net.name"] == "x"
    never = Space((ValueRange("b", 1, 100),), lambda settings: ["no"])
    assert never.perturb({"b": 10.0}, random.Random(0)) == {"b": 10.0}


def test_json_and_back() -> None:
    axes = (ValueChoice("a", (None, 1.5, "x", [1])), ValueRange("b", 1, 5, log=True, step=1))
    assert space.restored([schema.to_dict(axis) for axis in axes], lambda settings: ()).axes == axes
