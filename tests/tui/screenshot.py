"""The picture in the documentation: `PYTHONPATH=tests .venv/bin/python -m tui.screenshot docs/images/tui.svg`."""

import asyncio
import sys
from pathlib import Path

from tengen.daemon.messages import Log, NetworkExported
from tengen.tui.app import Dashboard
from tengen.tui.model import Said
from tui.samples import status
from tui.test_app import Silent, settle

SIZE = (120, 34)


async def main(path: Path) -> None:
    app = Dashboard(Silent(), "go9")
    async with app.run_test(size=SIZE) as pilot:
        for step in range(-60_000, 3211, 30):
            app.client.hear(status(step))
        app.client.hear(Log("info", "network 12: validation loss 1.8 (before: 1.85)"))
        app.client.hear(
            NetworkExported("go9-main-s49152-d12000", "runs/go9/models/go9-main-s49152-d12000", 6000, 49152, 1.8)
        )
        app.client.hear(Log("warning", "upload of go9-main-s45056-d11000: 503 Service Unavailable; again in 8 s"))
        app.client.hear(Said("12:01:07 chunk-00412.npz: the file ends too early; passed over"))
        app.client.hear(Log("info", "410 of 1,000 new chunks; training network 13 for 5,000 steps"))
        await settle(app, pilot)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(app.export_screenshot(title="tengen tui go9"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
