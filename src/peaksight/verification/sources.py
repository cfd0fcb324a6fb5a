"""What a script is made of: itself and what it imported of its repository."""

import sys
from hashlib import blake2b
from pathlib import Path


def digest_of_sources(script: str) -> str:
    """Equal for two runs of the same code, wherever it lies; `script` is a path, or the name of a module."""
    path = Path(script).resolve()
    folder = _root_of(path.parent if path.is_file() else Path.cwd())
    files = {path} if path.is_file() else set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and not Path(file).is_relative_to(sys.prefix) and Path(file).resolve().is_relative_to(folder):
            files.add(Path(file).resolve())
    contents = sorted(file.read_bytes() for file in files if file.is_file() and file.suffix == ".py")
    return blake2b(b"\0".join(contents), digest_size=16).hexdigest()


def _root_of(folder: Path) -> Path:
    """The repository that `folder` is in, or what was exported of one; `folder` itself without."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
