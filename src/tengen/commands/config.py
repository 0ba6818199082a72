"""`tengen config`: list, show and check configurations."""

import sys

from tengen import config as configuration
from tengen import schema
from tengen.commands.arguments import CONFIG, Namespace, Subcommand
from tengen.words import counted

HELP = "list, show and check configurations"
ABOUT = "Lists, shows and checks configurations: YAML files that say everything about a run."
EXAMPLE = "tengen config show go9"
NOUN = "action"
COMMANDS = {
    "list": Subcommand(
        "list the configurations that ship with Tengen",
        "Lists the configurations that ship with Tengen. Their names can be used wherever CONFIG is expected.",
        "tengen config list",
    ),
    "show": Subcommand(
        "print a complete, commented configuration to start from",
        "Prints a configuration with every setting and what it means. Redirect it to a file and "
        "edit that to make one of your own.",
        "tengen config show go9 --set net.name=b10c128 > mine.yaml",
        CONFIG,
    ),
    "check": Subcommand(
        "say whether a configuration is good, or all that is wrong with it",
        "Checks a configuration without running it. All mistakes are listed with their file and "
        "line, and the exit code is 2 if there are any.",
        "tengen config check go9 --set game.size=13",
        CONFIG,
    ),
}


def run_list(args: Namespace) -> None:
    rows = [("name", "game", "about")]
    for name in configuration.shipped():
        config = configuration.load_any(name)
        rows.append((name, config.game.name if config.game else "", config.run.about))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, game, about in rows:
        print(f"{name:{widths[0]}}  {game:{widths[1]}}  {about}")


def run_show(args: Namespace) -> None:
    print(configuration.render(configuration.load_any(args.config, args.overrides)), end="")


def run_check(args: Namespace) -> int:
    try:
        config = configuration.load_any(args.config, args.overrides)
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        print(f"{args.config}: {counted(len(error.problems), 'problem')}", file=sys.stderr)
        return 2
    print(f"{args.config}: good ({_summary(config)})")
    return 0


def _summary(config: configuration.Config | configuration.TrainerConfig) -> str:
    settings = schema.values(config.game) if config.game else ()
    game = [f"{setting.name} {configuration.render_value(value)}" for setting, value in settings]
    words = [", ".join(game).removeprefix("name ") or "a game of the program"]
    if isinstance(config, configuration.Config):
        words += [config.net.label, f"{config.selfplay.games} games at once"]
    else:
        for name, role in config.roles.items():
            if role is not None:
                words.append(f"{config.trainer} for {name}, {role.net.label}, {role.games} games at once")
    return "; ".join(words)
