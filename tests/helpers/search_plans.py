"""The programs that test files share."""

from typing import Any

from tengen.config.settings.search import SearchSettings
from tests.helpers.game_recording import make
from tests.helpers.recorded_search import Plan
from tests.helpers.search_positions import DOUBLE_MOVE

NO_FRILLS: dict[str, Any] = {
    "c_init": 1.0, "c_base": 1e9, "fpu_reduction": 0.0, "noise_share": 0.0, "forced_playouts": 0.0, "lower_bound": 0.0,
}  # fmt: skip
ALL_FRILLS: dict[str, Any] = {
    "c_init": 1.7, "c_base": 50.0, "fpu_reduction": 0.4, "root_fpu_reduction": 0.15, "root_temperature": 1.6,
    "noise_share": 0.3, "noise_total": 4.0, "forced_playouts": 2.0, "lower_bound": 0.3,
}  # fmt: skip
STRANGE_GUMBEL: dict[str, Any] = {"gumbel_scale": 2.5, "value_scale": 0.7, "visit_offset": 3.0, "value_range": 0.6}

TIC_TAC_TOE = make("tic_tac_toe")
PUCT = Plan(TIC_TAC_TOE, SearchSettings(algorithm="puct", simulations=24, **NO_FRILLS))
FULL_PUCT = Plan(DOUBLE_MOVE, SearchSettings(algorithm="puct", simulations=24, score_weight=0.4, **ALL_FRILLS))
LEAFY_PUCT = Plan(
    TIC_TAC_TOE, SearchSettings(algorithm="puct", simulations=24, leaves=3, virtual_loss=0.7, **ALL_FRILLS)
)
GUMBEL = Plan(TIC_TAC_TOE, SearchSettings(algorithm="gumbel", simulations=24, considered=4))
LEAFY_GUMBEL = Plan(
    DOUBLE_MOVE,
    SearchSettings(algorithm="gumbel", simulations=24, considered=1, leaves=3, score_weight=0.4, **STRANGE_GUMBEL),
)
