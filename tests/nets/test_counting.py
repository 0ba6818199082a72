"""Sizes counted by hand."""

from tengen import games, nets


def test_b6c96_by_hand() -> None:
    """Go 9x9: 12 planes, 11 scalars."""
    game = games.make("go", size=9)
    c, r, g = 96, 64, 32
    stem = 9 * 12 * c + 11 * c
    ordinary = 2 * (2 * c) + 2 * 9 * c * c
    pooling = 2 * c + 9 * c * (r + g) + 2 * g + 3 * g * r + 2 * r + 9 * r * c
    policy = 2 * c * 32 + 2 * 32 + 3 * 32 * 32 + 2 * 32 + 32 * 1 + 3 * 32 * 1
    value = c * 32 + 2 * 32 + 3 * 32 * 64 + 64 + 64 * 3 + 3
    expected = stem + 4 * ordinary + 2 * pooling + 2 * c + policy + value
    spec = nets.spec("b6c96")
    assert nets.parameter_count(nets.shapes(spec, game)) == expected == 985_251

    once = 11 * c + 2 * 3 * g * r + 3 * 32 * 32 + 3 * 32 + 3 * 32 * 64 + 64 * 3
    each_point = 9 * 12 * c + 4 * 2 * 9 * c * c + 2 * (9 * c * c + 9 * r * c) + c * 96 + 32
    assert nets.operations(spec, game) == 2 * (once + 81 * each_point)


def test_columns_and_layers_by_hand() -> None:
    connect_four = games.make("connect_four")
    spec = nets.spec("b1c8-nogp")  # heads of 3 channels, 6 hidden units
    trunk, heads = 9 * 3 * 8 + 2 * 9 * 8 * 8 + 8 * 9, 9 * 3 + 9 * 6 + 6 * 3
    assert nets.operations(spec, connect_four) == 2 * (42 * trunk + heads + 7 * (6 * 3))
    hironaka = games.make("hironaka", dimension=3, max_points=5)
    spec = nets.spec("mlp2x8", ("moves_left",))
    actions = hironaka.num_actions
    assert nets.operations(spec, hironaka) == 2 * (19 * 8 + 8 * 8 + 8 * actions + 8 * 3 + 8 * 1)


def test_parts_sum_to_the_whole_and_grouping_saves() -> None:
    game = games.make("othello")
    net = nets.shapes(nets.spec("b2c16"), game)
    parts = dict(nets.parts(net))
    assert list(parts) == ["stem", "blocks.1", "blocks.2", "heads"]
    assert sum(parts.values()) == nets.parameter_count(net)
    plain, grouped = (nets.operations(nets.spec(name), game) for name in ("b2c16-nogp", "b2c16-nogp-xt4"))
    assert grouped < plain / 3
