"""The model, in PyTorch: `python:nim_plugin.model:load` wherever a network's path may stand."""

import torch
from torch import nn


def load(game):
    """A model that knows how to win at Nim: it leaves a multiple of four."""
    layer = nn.Linear(game.num_scalars, 4)  # to [matches left % 4 == k], which is what counts
    with torch.no_grad():
        layer.bias.zero_()
        layer.weight.zero_()
        for place in range(game.num_scalars):  # the sums of a place's weights and those before it
            layer.weight[:, place] = torch.eye(4)[(place + 1) % 4] - torch.eye(4)[place % 4]
        layer.bias += torch.eye(4)[0]

    @torch.inference_mode()
    def evaluate(planes, scalars):
        rest = layer(torch.from_dlpack(scalars))  # [positions, 4]
        return 5 * rest[:, 1:], 1 - 2 * rest[:, 0]  # policy: take the rest; value: lost if there is none

    return evaluate
