"""Names the card in this machine without touching CUDA."""

from pathlib import Path

from peaksight.errors import UsageError
from peaksight.gpus.cards import Card
from peaksight.gpus.names import find_card

_DRIVER = Path("/proc/driver/nvidia/gpus")


def installed_card(driver: Path = _DRIVER) -> Card | None:
    """The first card that the Linux driver lists under `driver`; None without one, or when the table lacks it.

    UsageError for a card that is sold in several sizes under one name. Reading the driver's files creates no CUDA
    context, so a busy card is not disturbed.
    """
    for information in sorted(driver.glob("*/information")):
        try:
            return find_card(_model(information.read_text(encoding="utf-8")))
        except OSError:
            continue
        except UsageError as error:
            if error.slug != "unknown-gpu":
                raise
    return None


def _model(information: str) -> str:
    """The product name in the driver's description of a card, empty if it names none."""
    fields = (line.partition(":") for line in information.splitlines())
    return next((value.strip() for key, _, value in fields if key.strip() == "Model"), "")
