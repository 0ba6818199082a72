"""The host of Hironaka's game learns in a gymnasium environment, in the style of stable-baselines3.

    pip install gymnasium
    python examples/gym_hironaka.py

`Reinforce` below is a policy gradient in a few lines, called as stable-baselines3's algorithms are. With sb3-contrib
installed, its MaskablePPO takes the same place:

    from sb3_contrib import MaskablePPO
    env = gym.GameEnv("hironaka", "random", **OPTIONS)
    model = MaskablePPO("MlpPolicy", env).learn(100_000)
    observation, info = env.reset()
    action, _ = model.predict(observation, action_masks=env.action_masks())

It asks `env.action_masks()` for the legal actions, which `GameEnv` and `GameVectorEnv` both have.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tengen import gym

OPTIONS = {"dimension": 3, "max_points": 5, "max_value": 20, "max_moves": 40}


class Reinforce:
    """REINFORCE with the mean return as its baseline, for a vector environment."""

    def __init__(self, env: gym.GameVectorEnv, hidden: int = 64, learning_rate: float = 3e-3, seed: int = 0) -> None:
        self.env, self._key = env, jax.random.key(seed)
        sizes = [env.single_observation_space.shape[0], hidden, int(env.single_action_space.n)]
        keys = jax.random.split(jax.random.key(seed), 2)
        self.params = [jax.random.normal(k, (a, b)) / a**0.5 for k, a, b in zip(keys, sizes, sizes[1:], strict=False)]
        self._optimizer = optax.adam(learning_rate)
        self._state = self._optimizer.init(self.params)
        self._observation, info = env.reset(seed=seed)
        self._mask = info["action_mask"]
        self._update, self._choose = jax.jit(self._step), jax.jit(_choose)

    def predict(self, observation: Any, action_masks: Any, deterministic: bool = False) -> np.ndarray:
        """The actions for a batch of observations."""
        key, self._key = jax.random.split(self._key)
        return np.asarray(self._choose(self.params, key, observation, action_masks, deterministic))

    def learn(self, total_timesteps: int, moves: int = 64) -> "Reinforce":
        """Learn from that many moves, `moves` of every game at a time."""
        for _ in range(max(total_timesteps // (moves * self.env.num_envs), 1)):
            batch = self._collect(moves)
            self.params, self._state = self._update(self.params, self._state, *batch)
        return self

    def _collect(self, moves: int) -> tuple[np.ndarray, ...]:
        seen, masks, chosen, rewards, ends = [], [], [], [], []
        for _ in range(moves):
            actions = self.predict(self._observation, self._mask)
            seen.append(self._observation)
            masks.append(self._mask)
            chosen.append(actions)
            self._observation, reward, terminated, _, info = self.env.step(actions)
            self._mask = info["action_mask"]
            rewards.append(reward)
            ends.append(terminated)
        returns, later = np.zeros((moves, self.env.num_envs), np.float32), np.zeros(self.env.num_envs, np.float32)
        known = np.zeros((moves, self.env.num_envs), bool)  # whether the game ended within these moves
        ended = np.zeros(self.env.num_envs, bool)
        for move in reversed(range(moves)):
            later = np.where(ends[move], rewards[move], later)
            ended |= ends[move]
            returns[move], known[move] = later, ended
        return np.stack(seen), np.stack(masks), np.stack(chosen), returns, known

    def _step(self, params: Any, state: Any, seen: Any, masks: Any, chosen: Any, returns: Any, known: Any) -> Any:
        def loss(params: Any) -> Any:
            logits = jax.nn.log_softmax(_logits(params, seen, masks))
            played = jnp.take_along_axis(logits, chosen[..., None], -1)[..., 0]
            baseline = jnp.sum(returns * known) / jnp.maximum(known.sum(), 1)
            return -jnp.sum(known * (returns - baseline) * played) / jnp.maximum(known.sum(), 1)

        change, state = self._optimizer.update(jax.grad(loss)(params), state)
        return optax.apply_updates(params, change), state


def _logits(params: Any, observation: Any, mask: Any) -> Any:
    first, second = params
    return jnp.where(mask, jnp.tanh(observation @ first) @ second, -1e9)


def _choose(params: Any, key: Any, observation: Any, mask: Any, deterministic: Any) -> Any:
    logits = _logits(params, observation, mask)
    return jnp.where(deterministic, jnp.argmax(logits, -1), jax.random.categorical(key, logits))


def evaluate(model: Reinforce, games: int = 256) -> float:
    """The mean result of new games, without exploration."""
    env = gym.GameVectorEnv("hironaka", games, "random", autoreset_mode="Disabled", **OPTIONS)
    observation, info = env.reset(seed=1)
    total, done = np.zeros(games), np.zeros(games, bool)
    while not done.all():
        actions = model.predict(observation, info["action_mask"], deterministic=True)
        observation, reward, terminated, _, info = env.step(actions)
        total += np.where(done, 0, reward)
        done |= terminated
        if terminated.any() and not done.all():
            observation, info = env.reset(options={"reset_mask": terminated})
    return float(total.mean())


def main(total_timesteps: int = 200_000, games: int = 256) -> tuple[float, float]:
    # In the same step: every observation is one in which the learner is to move.
    model = Reinforce(gym.GameVectorEnv("hironaka", games, "random", autoreset_mode="SameStep", **OPTIONS))
    before = evaluate(model, games)
    model.learn(total_timesteps)
    after = evaluate(model, games)
    print(f"mean result of the host against a random agent: {before:+.3f} before, {after:+.3f} after")
    return before, after


if __name__ == "__main__":
    main()
