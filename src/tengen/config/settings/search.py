"""What a search is told."""

from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting


@dataclass(frozen=True)
class SearchSettings:
    """One search. The defaults are good for self-play; a configuration spells all of them out."""

    algorithm: Literal["gumbel", "puct"] = setting("gumbel", "how moves are chosen in the tree")
    simulations: int = setting(32, "simulations per move", low=1, high=30000)
    leaves: int = setting(1, "leaves of one tree evaluated at once, more when there are few games", low=1, high=256)
    c_init: float = setting(1.25, "PUCT: exploration", low=0, high=100)
    c_base: float = setting(19652.0, "PUCT: visits at which exploration has grown by log 2", low=1, high=1e9)
    fpu_reduction: float = setting(0.2, "PUCT: how much worse an unvisited move seems than its node", low=0, high=2)
    root_fpu_reduction: float = setting(0.0, "PUCT: the same at the root", low=0, high=2)
    root_temperature: float = setting(1.0, "PUCT: above 1 the root's prior is flattened", low=0.1, high=10)
    noise_share: float = setting(0.25, "PUCT: share of Dirichlet noise in the root's prior", low=0, high=1)
    noise_total: float = setting(
        10.83, "PUCT: concentration of that noise, shared by the legal moves", low=0.01, high=1e6
    )
    forced_playouts: float = setting(
        2.0, "PUCT: visits that the root's prior earns a move, 0 for none", low=0, high=100
    )
    considered: int = setting(16, "Gumbel: moves that the root considers", low=1, high=30000)
    gumbel_scale: float = setting(1.0, "Gumbel: strength of the noise, 0 for the best move", low=0, high=100)
    value_scale: float = setting(0.1, "Gumbel: weight of values against priors", low=0, high=100)
    visit_offset: float = setting(50.0, "Gumbel: visits added before values are weighed", low=0, high=1e6)
    virtual_loss: float = setting(1.0, "how much a leaf that is being evaluated counts as lost", low=0, high=100)
    kernels: Literal["auto", "plain", "gpu"] = setting("auto", "GPU programs where there is a GPU, or plain JAX")
