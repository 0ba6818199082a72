from tengen.config.settings.selfplay import SelfplaySettings as SelfplaySettings

from .collector import on_host as on_host
from .history import Finished as Finished
from .playing import Actor as Actor
from .playing import Selfplay as Selfplay
