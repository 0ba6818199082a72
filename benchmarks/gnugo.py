"""A network against GNU Go: how strong is it really?

    python benchmarks/gnugo.py NET --games 100 --simulations 64 --level 10

GNU Go (Debian package `gnugo`) plays by area scoring with all dead stones taken off; Tengen's rules are the referee.
All games run side by side: the network looks at the positions of all games in which it is to move at once, GNU Go
answers in processes of its own, several at a time. Colours alternate; openings are a few random moves per pair.
"""

import argparse
import collections
import concurrent.futures
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import arena, games, search
from tengen.arena import players
from tengen.arena.evaluators import saved
from tengen.arena.players import Player
from tengen.games.go import Go
from tengen.nets import saving


class GnuGo:
    """One process that follows one game."""

    def __init__(self, program: str, game: Go, level: int, seed: int) -> None:
        options = ["--mode", "gtp", "--level", str(level), "--chinese-rules", "--capture-all-dead", "--seed", str(seed)]
        self._process = subprocess.Popen(
            [program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.ask(f"boardsize {game.size}")
        self.ask("clear_board")
        self.ask(f"komi {game.options.komi}")

    def ask(self, command: str) -> str:
        """The answer to a GTP command."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(command + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        while (line := process.stdout.readline()).strip():
            answer += line
        if not answer.startswith("="):
            raise RuntimeError(f"gnugo: {command}: {answer.strip() or 'no answer'}")
        return answer[1:].strip()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("net", type=Path)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--level", type=int, default=10)
    parser.add_argument("--opening-moves", type=int, default=2)
    parser.add_argument("--algorithm", choices=("puct", "gumbel"), default="puct")
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="GNU Go processes, or shares of the network's games, that think at once: a core for each",
    )
    args = parser.parse_args()
    program = shutil.which("gnugo") or shutil.which("/usr/games/gnugo")
    if program is None:
        print("gnugo is not installed; on Debian and Ubuntu: apt install gnugo", file=sys.stderr)
        return 1
    about = saving.read(args.net)
    game = games.make(about.game, **about.options)
    if not isinstance(game, Go):
        print(f"{args.net}: a network for {about.game}, and GNU Go plays only Go", file=sys.stderr)
        return 1
    results = play(game, args, program)
    print(f"{args.net.name} against GNU Go level {args.level}: {arena.scores.score(results)}")
    return 0


def play(game: Go, args: argparse.Namespace, program: str) -> np.ndarray:
    """Float32[G]: results of the network."""
    evaluate, params = saved(args.net, game, "float32")
    settings = players.strongest(search.Settings(algorithm=args.algorithm), args.simulations)
    player = players.network("net", evaluate, game, settings, params)
    step = jax.jit(jax.vmap(game.step))
    look = jax.jit(jax.vmap(lambda state: (game.legal_actions(state), game.is_over(state), game.returns(state))))
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), args.games))
    engines = [GnuGo(program, game, args.level, seed) for seed in range(args.games)]
    colour = np.arange(args.games) % 2  # the network's
    draw = np.random.default_rng(0)
    ends: collections.Counter[str] = collections.Counter()
    given_up = np.zeros(args.games, bool)  # by GNU Go, or ended by a move of its that Tengen's rules forbid
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for ply in range(game.max_moves):
                legal, over, returns = (np.asarray(x) for x in look(states))
                over = over | given_up
                if over.all():
                    break
                mover = ply % 2
                ours = ~over & (colour == mover)
                actions = np.full(args.games, game.points, np.int32)
                if ply < args.opening_moves:
                    pair = [
                        int(draw.choice(np.flatnonzero(legal[2 * k, : game.points]))) for k in range(args.games // 2)
                    ]
                    actions = np.repeat(np.asarray(pair, np.int32), 2)
                    told = np.ones(args.games, bool)
                else:
                    parts = np.array_split(np.flatnonzero(colour == mover), args.jobs)
                    chosen = pool.map(lambda part: choose(player, ply, states, ours, part), parts)  # noqa: B023
                    for part, found in zip(parts, chosen, strict=True):
                        actions[part] = np.where(ours[part], found, actions[part])
                    theirs = np.flatnonzero(~over & ~ours)
                    answers = pool.map(lambda k: engines[k].ask(f"genmove {'bw'[mover]}"), theirs)  # noqa: B023
                    for k, answer in zip(theirs, answers, strict=True):
                        actions[k] = read(game, answer)
                        given_up[k] = actions[k] < 0 or not legal[k, actions[k]]
                        if given_up[k]:
                            ends[answer.lower() if actions[k] < 0 else "a move that the rules forbid"] += 1
                    actions[given_up] = game.points
                    told = ours
                names = [game.action_name(None, int(action)) for action in actions]  # type: ignore[arg-type]
                list(pool.map(lambda k: engines[k].ask(f"play {'bw'[mover]} {names[k]}"), np.flatnonzero(told)))  # noqa: B023
                states = step(states, jnp.asarray(actions))
                if ply % 10 == 0:
                    won = int((results_so_far(returns, given_up, colour)[over] > 0).sum())
                    print(f"ply {ply}: {int((~over).sum())} games running, {won} of {int(over.sum())} won", flush=True)
        scores = [engine.ask("final_score") for engine in engines]
    finally:
        for engine in engines:
            engine.close()
    _, _, returns = (np.asarray(x) for x in look(states))
    played_out = int((~given_up).sum())
    print(f"{played_out} games played out; GNU Go ended others by: {dict(ends) or 'none'}")
    same = sum(sign(score) == np.sign(found[0]) for score, found in zip(scores, returns, strict=True))
    print(
        f"GNU Go says of {same} of {args.games} final positions that the same player has won; its scores: {scores[:8]}"
    )
    return results_so_far(returns, given_up, colour)


def results_so_far(returns: np.ndarray, given_up: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Float32[G] for the network: what each game gave."""
    return np.where(given_up, 1.0, returns[np.arange(len(colour)), colour])


def sign(score: str) -> int:
    """1 if Black has won, by GNU Go's words."""
    return {"B": 1, "W": -1}.get(score[:1], 0)


def choose(player: Player, ply: int, states: Any, ours: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Int32[N]: the network's moves in the games with the numbers `part`; anything where it is not `ours` to move."""
    if not ours[part].any():
        return np.zeros(len(part), np.int32)
    some = jax.tree.map(lambda leaf: leaf[part], states)
    return np.asarray(player.ask(jax.random.key(ply), some, ours[part]))


def read(game: Go, answer: str) -> int:
    """The action that GNU Go named, -1 if none."""
    names: dict[str, int] = {game.action_name(None, a).lower(): a for a in range(game.num_actions)}  # type: ignore[arg-type]
    return names.get(answer.lower(), -1)


if __name__ == "__main__":
    sys.exit(main())
