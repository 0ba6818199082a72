"""The section `search`: tree search. See docs/search.md."""

from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting


@dataclass(frozen=True)
class SearchSettings:
    """The defaults suit self-play."""

    algorithm: Literal["gumbel", "puct"] = setting("gumbel", "search algorithm")
    simulations: int = setting(32, "simulations per move", low=1, high=30000)
    leaves: int = setting(1, "leaves of one tree evaluated at once; more help if there are few games", low=1, high=256)
    c_init: float = setting(1.25, "PUCT: exploration constant", low=0, high=100)
    c_base: float = setting(19652.0, "PUCT: visits at which exploration has grown by log 2", low=1, high=1e9)
    fpu_reduction: float = setting(0.2, "PUCT: first-play urgency, as a reduction of the parent's value", low=0, high=2)
    root_fpu_reduction: float = setting(0.0, "PUCT: reduction of first-play urgency at the root", low=0, high=2)
    root_temperature: float = setting(1.0, "PUCT: policy temperature at the root; above 1 is flatter", low=0.1, high=10)
    noise_share: float = setting(0.25, "PUCT: share of Dirichlet noise in the root policy", low=0, high=1)
    noise_total: float = setting(
        10.83, "PUCT: total Dirichlet concentration, divided among the legal moves", low=0.01, high=1e6
    )
    forced_playouts: float = setting(2.0, "PUCT: forced playouts at the root (0: none)", low=0, high=100)
    lower_bound: float = setting(
        0.2,
        "PUCT: the move to play has the largest value minus this over the square root of its visits (0: most visits)",
        low=0,
        high=100,
        before=0.0,
    )
    considered: int = setting(16, "Gumbel: most moves considered at the root", low=1, high=30000)
    considered_visits: int = setting(
        1,
        "Gumbel: fewer moves are considered if the simulations do not suffice for so many each",
        low=1,
        high=1000,
        before=1,
    )
    gumbel_scale: float = setting(1.0, "Gumbel: scale of the noise (0: the best move)", low=0, high=100)
    value_scale: float = setting(0.1, "Gumbel: weight of values against the policy", low=0, high=100)
    visit_offset: float = setting(50.0, "Gumbel: visits added when values are weighted", low=0, high=1e6)
    value_range: float = setting(
        0.0, "Gumbel: smallest range of values that is rescaled to 1 (2: none is)", low=0, high=2, before=0.0
    )
    score_weight: float = setting(
        0.0, "weight of points next to winning, for games with a score (0: none)", low=0, high=2, before=0.0
    )
    virtual_loss: float = setting(1.0, "virtual loss of a leaf under evaluation", low=0, high=100)
    kernels: Literal["auto", "plain", "gpu"] = setting("auto", "GPU programs if there is a GPU, or plain JAX")
