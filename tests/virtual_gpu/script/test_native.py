"""Libraries that open files in C: those in the table get the redirected name."""

import importlib
import sys
from pathlib import Path

import pytest

from peaksight.virtual_gpu.script import Scratch

OPENCV = """
import ctypes

libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]


def imwrite(filename, image):
    file = libc.fopen(filename.encode(), b"w")
    if file:
        libc.fputs(image.encode(), file)
        libc.fclose(file)
    return bool(file)


def imread(filename):
    file = libc.fopen(filename.encode(), b"r")
    return bool(file) and libc.fclose(file) == 0


class VideoWriter:
    def __init__(self, filename):
        imwrite(filename, "video")

    @staticmethod
    def fourcc():
        return 1
"""


@pytest.fixture
def opencv(tmp_path, monkeypatch):
    """A stand-in for OpenCV that writes with C's own functions; not imported yet."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "cv2.py").write_text(OPENCV)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    yield
    sys.modules.pop("cv2", None)


@pytest.mark.parametrize("imported_before", [True, False])
def test_native_writes_are_redirected(imported_before, opencv, home):
    """The library writes to the scratch and reads what the run sees, whenever it was imported."""
    if imported_before:
        importlib.import_module("cv2")
    with Scratch() as scratch:
        import cv2

        assert cv2.imwrite("new.png", "new")
        assert cv2.imwrite(filename="best.pt", image="over the person's")
        assert (True, True, False) == (cv2.imread("new.png"), cv2.imread("notes.txt"), cv2.imread("missing.png"))
        cv2.VideoWriter("video.mp4")
        assert "over the person's" == Path("best.pt").read_text()

    assert ["best.pt", "new.png", "video.mp4"] == [write.path for write in scratch.writes()]
    assert 1 == cv2.VideoWriter.fourcc()
