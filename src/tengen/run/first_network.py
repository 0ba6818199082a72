"""The network that a run begins with, if `net.start_from` names one.

It is grown to the run's architecture and kept in RUN/train/<trainer>/start, so that a resumed run no longer needs the
original, and copied to RUN/models, so that it plays the first games.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tengen import files
from tengen.config.sections import Config
from tengen.config.settings.net import NetSection, RoleNetSettings
from tengen.config.trainers import ROLES, TrainerConfig
from tengen.errors import TengenError
from tengen.nets.specs import FILE_NAME
from tengen.run import networks

_MAIN = "main"
_COPY = "start"  # the folder, in the trainer's


def check(config: Config | TrainerConfig, base: Path) -> None:
    """TengenError if a network that the run in `base` is to begin with does not exist or does not fit."""
    for key, net in sections(config).items():
        if net.start_from is not None and not (base / _COPY / FILE_NAME).exists():  # a trainer that begins anew
            from tengen.nets import growing

            found, where = _find(key, net.start_from), f"{key}.start_from: {net.start_from}"
            if config.game is not None and config.game.name != found.saved.game:
                game = config.game.name
                raise TengenError(f"{where}: a network for {found.saved.game} cannot be the start of one for {game}")
            problem = growing.unfit(found.saved.spec, net.architecture())
            if not problem and config.game is not None:
                problem = growing.unfit_inputs(found.saved.make_game(), config.game.make())
            if problem:
                raise TengenError(f"{where}: cannot be the start of this network: {problem}")
    if isinstance(config, Config):
        _check_growth(config.net)


def _check_growth(net: NetSection) -> None:
    """TengenError if a network that is to take over cannot grow from the one before it."""
    for number, text in enumerate(net.growth):
        from tengen.nets import growing

        small, large = net.grown(number), net.grown(number + 1)
        if problem := growing.unfit(small.architecture(), large.architecture()):
            raise TengenError(f"net.growth: {text}: {small.label} cannot grow into it: {problem}")


def local(config: Any, base: Path, trainer: str = _MAIN) -> Any:
    """The configuration with the run's own copies in place of `start_from`. They are made if they are not there yet."""
    if isinstance(config, Config):
        return replace(config, net=_local("net", config.net, config, base, trainer, trainer == _MAIN))
    for field, (name, settings) in zip(ROLES, config.roles.items(), strict=False):
        if settings is not None:
            earlier = (base / "train" / field / _COPY / FILE_NAME).exists()  # in runs of earlier versions
            net = _local(f"{name}.net", settings.net, config, base, field if earlier else name, True)
            config = replace(config, **{field: replace(settings, net=net)})
    return config


def sections(config: Config | TrainerConfig) -> dict[str, RoleNetSettings]:
    """The settings of all networks of a run, by their keys."""
    if isinstance(config, Config):
        return {"net": config.net}
    return {f"{role}.net": settings.net for role, settings in config.roles.items() if settings is not None}


def _find(key: str, text: str) -> networks.FoundNetwork:
    try:
        return networks.find(text)
    except TengenError as error:
        raise TengenError(f"{key}.start_from: {error}") from None


def _local(key: str, net: Any, config: Any, base: Path, trainer: str, plays: bool) -> Any:
    if net.start_from is None:
        return net
    folder = base / "train" / trainer / _COPY
    if not (folder / FILE_NAME).exists():
        _grow(key, net, config, folder, trainer)
    shown = base / networks.ACCEPTED / networks.name_of(config.run.name, trainer, 0, 0)
    if plays and not shown.exists() and networks.newest(base) is None:

        def fill(place: Path) -> None:
            files.write_bytes(place / FILE_NAME, files.read_bytes(folder / FILE_NAME))
            entry = networks.NetworkEntry(place, trainer, 0, 0)
            networks.write_verdict(
                entry, {"accepted": True, "number": 1, "why": f"the run starts from {net.start_from}"}
            )

        files.write_folder(shown, fill)
    return replace(net, start_from=str(folder))


def _grow(key: str, net: NetSection | RoleNetSettings, config: Any, folder: Path, trainer: str) -> None:
    from flax import nnx

    from tengen import nets
    from tengen.nets import growing, saving

    assert net.start_from is not None
    found = _find(key, net.start_from)
    if config.game is None:
        raise TengenError(f"{key}.start_from: the configuration has no game; give the program's trainer the network")
    game = config.game.make()
    fresh = nets.build(net.architecture(), game, nnx.Rngs(config.run.seed))
    grown, lost = growing.start_from(found.path, fresh, game)
    origin = {
        "path": str(found.path.resolve()),
        "name": found.name,
        "without_place": list(lost),
        "info": found.saved.info,
    }
    info = {"run": config.run.name, "trainer": trainer, "step": 0, "seconds": 0.0, "samples": 0, "start_from": origin}
    if isinstance(config, TrainerConfig):
        info["role"] = trainer
    files.write_folder(folder, lambda place: saving.save(grown, place, game, info))
