"""gymnasium, or an error that says how to install it."""

from tengen.errors import TengenError

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as missing:
    raise TengenError(f"{missing}: tengen.gym needs gymnasium; install it with: pip install gymnasium") from None

__all__ = ["AutoresetMode", "batch_space", "gymnasium", "seeding", "spaces"]
