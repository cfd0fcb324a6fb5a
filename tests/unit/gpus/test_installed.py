"""The card of this machine, read from the driver's files."""

import pytest

from peaksight.errors import UsageError
from peaksight.gpus import installed_card


def driver_with(tmp_path, *models):
    for number, model in enumerate(models):
        folder = tmp_path / f"0000:0{number}:00.0"
        folder.mkdir()
        (folder / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 31\n")
    return tmp_path


def test_the_first_known_card_is_named(tmp_path):
    """The driver's model is torch's device name."""
    driver = driver_with(tmp_path, "NVIDIA GeForce RTX 4090", "Tesla T4")

    assert installed_card(driver).name == "rtx-4090"


def test_a_card_outside_the_table_is_passed_over(tmp_path):
    """An unknown display adapter does not hide the card that computes."""
    driver = driver_with(tmp_path, "Quadro K600", "Tesla T4")

    assert installed_card(driver).name == "t4"


def test_a_card_of_two_sizes_is_not_guessed(tmp_path):
    """The driver's file does not say which RTX 4060 Ti it is."""
    with pytest.raises(UsageError, match="rtx-4060ti-16gb or rtx-4060ti-8gb"):
        installed_card(driver_with(tmp_path, "NVIDIA GeForce RTX 4060 Ti"))


def test_no_driver_means_no_card(tmp_path):
    """A laptop without a card has no such folder."""
    assert installed_card(tmp_path / "absent") is None
