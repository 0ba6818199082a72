"""Any game against a chosen opponent as a gymnasium environment (docs/gym.md). Needs the extra `gym`."""

import contextlib

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)

with contextlib.suppress(ModuleNotFoundError):  # the classes say what is missing
    import gymnasium

    # gymnasium.make("tengen.gym:tengen/Game-v0", game="go"), and make_vec.
    gymnasium.register(
        "tengen/Game-v0",
        entry_point="tengen.gym.vector:GameEnv",
        vector_entry_point="tengen.gym.vector:GameVectorEnv",
    )
