"""Evaluations of a trainer's roles: games without exploration against the other role and against named players."""

from collections.abc import Mapping
from typing import Any

import jax
from jax import Array

from tengen.config.settings.roles import EvaluationSection
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.roles import rules
from tengen.roles.games import FusedGame, Reward
from tengen.roles.role import Role
from tengen.train.base import Metrics


class RoleEvaluation:
    """Plays each learning role against the other role and the players that the settings name."""

    def __init__(self, game: Game, roles: Mapping[str, Role], settings: EvaluationSection) -> None:
        """Players are parsed now, so that a misspelt one is found at once and not after hours."""
        self._game, self._roles, self._settings = game, roles, settings
        learning = {name for name, role in roles.items() if role.settings is not None}
        others = [name for name in roles if learning - {name}]
        self._opponents: dict[str, dict[str, Player]] = {}  # by text and by the role that it plays
        for text in settings.against if others else ():
            problems: list[TengenError] = []
            self._opponents[text] = {}
            for name in others:
                try:
                    self._opponents[text][name] = rules.parse(text, game, name)
                except TengenError as error:  # in Hironaka's game, the other role may be able to play it
                    problems.append(error)
            if not self._opponents[text]:
                raise OptionError(f"evaluation.against: {problems[0]}")

    def play(self, reward: Reward, key: Array) -> Metrics:
        """{"black_vs_random": mean result, "black_vs_random_length": mean moves, "black_vs_random_lost": share}."""
        found: Metrics = {}
        for name in [name for name, role in self._roles.items() if role.settings is not None]:
            index = self._game.roles.index(name)
            for label, fused, params in self.pairings(name, reward):
                outcome = jax.device_get(fused.play(self._settings.games, params, key))
                results = outcome.returns[:, index]
                found[label] = float(results.mean())
                found[f"{label}_length"] = float(outcome.length.mean())
                found[f"{label}_lost"] = float((results < 0).mean())
        return found

    def pairings(self, name: str, reward: Reward) -> list[tuple[str, FusedGame, dict[str, Any]]]:
        """The games of a learning role: (label, game, parameters of its players)."""
        both = FusedGame.of(self._game, {role: each.rule for role, each in self._roles.items()}, reward)
        params = {role: each.params for role, each in self._roles.items()}
        if len(self._roles) == 1:
            return [(name, both, params)]
        (other,) = (role for role in self._roles if role != name)
        mine, seated = self._roles[name], self._roles[other].player
        found = [(f"{name}_vs_{other}", both, params)]
        for text in self._settings.against:
            player = self._opponents.get(text, {}).get(other)
            if player is None or (seated is not None and seated.name == text):
                continue
            fused = FusedGame.of(self._game, {name: mine.rule, other: player.rule}, reward)
            label = player.name if text not in rules.NAMES else text
            label = f"{label}_action" if label == other else label  # the role `first`, and the player of that name
            found.append((f"{name}_vs_{label}", fused, {name: mine.params, other: player.params}))
        return found
