"""Many small worlds at once, in numpy: an agent looks for food by its colour."""

import numpy as np


class ForagingEnv:
    """Observations (num_envs, 3, 64, 64) as uint8; actions are left, right, up and down."""

    MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])

    def __init__(self, num_envs, size=64, seed=0):
        self.num_envs, self.size = num_envs, size
        self.rng = np.random.default_rng(seed)
        self.observation_shape, self.num_actions = (3, size, size), 4

    def reset(self):
        self.agent = self.rng.integers(0, self.size, (self.num_envs, 2))
        self.food = self.rng.integers(0, self.size, (self.num_envs, 2))
        self.age = np.zeros(self.num_envs, dtype=int)
        return self._observe()

    def step(self, actions):
        self.agent = np.clip(self.agent + self.MOVES[actions], 0, self.size - 1)
        distance = np.abs(self.agent - self.food).sum(axis=1)
        reward = np.where(distance == 0, 1.0, -0.01).astype(np.float32)
        self.age += 1
        done = (distance == 0) | (self.age >= 100)
        self.agent[done] = self.rng.integers(0, self.size, (done.sum(), 2))
        self.age[done] = 0
        return self._observe(), reward, done

    def _observe(self):
        image = np.zeros((self.num_envs, 3, self.size, self.size), dtype=np.uint8)
        every = np.arange(self.num_envs)
        image[every, 0, self.agent[:, 1], self.agent[:, 0]] = 255
        image[every, 1, self.food[:, 1], self.food[:, 0]] = 255
        return image
