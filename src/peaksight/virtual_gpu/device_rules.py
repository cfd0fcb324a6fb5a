"""The build whose device rules are simulated: kernel choice, workspaces, allocator defaults."""

import re
from dataclasses import dataclass

from peaksight.errors import UsageError
from peaksight.gpus import Card

DEFAULT_CUDA = "13.0"
# The cuDNN that the wheels of each release pin; those for CUDA 12.6 stayed with 9.10.2.
CUDNN = {(2, 11): 91900, (2, 12): 92000, (2, 13): 92000, (2, 14): 92400}
CUDNN_OF_CUDA_12_6 = 91002
OLDEST, NEWEST = (2, 11), (2, 14)
# CUDA 13 has no code for cards before Turing, so its wheels do not run on them; those for CUDA 12.6 do.
OLDEST_CAPABILITY_OF_CUDA_13 = (7, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRules:
    """What decides between kernels: torch release, CUDA release and the card's compute capability."""

    torch: tuple[int, int]
    cuda: str
    capability: tuple[int, int]
    multi_processor_count: int

    @property
    def build(self) -> str:
        """As `--torch` takes it: `2.11+cu130`."""
        return f"{self.torch[0]}.{self.torch[1]}+cu{self.cuda.replace('.', '')}"

    @property
    def cudnn(self) -> int:
        """The version of cuDNN that the build brings, as `torch.backends.cudnn.version()` says it."""
        return CUDNN_OF_CUDA_12_6 if self.cuda.startswith("12.6") else CUDNN[self.torch]

    @property
    def warning(self) -> str | None:
        """What to tell the person when this build does not run on the card at all."""
        if int(self.cuda.partition(".")[0]) < 13 or self.capability >= OLDEST_CAPABILITY_OF_CUDA_13:
            return None
        major, minor = self.capability
        return (
            f"torch {self.build} does not run on a card of compute capability {major}.{minor}, for CUDA 13 begins with "
            f"7.5; for a build that does, pass --torch {self.torch[0]}.{self.torch[1]}+cu126"
        )


def rules_for(build: str, card: Card) -> DeviceRules:
    """The rules of `build` (`2.11`, `2.14.1+cu130`, `2.13.0+cpu`) on `card`; without CUDA, +cu130 is assumed."""
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?(?:\S*?)(?:\+(?:cu(\d+)(\d)|cpu))?", build)
    release = (int(match[1]), int(match[2])) if match else None
    if release is None or not OLDEST <= release <= NEWEST:
        raise UsageError(
            f"No device rules for torch {build!r}: they are known for 2.11 to 2.14. "
            "Write for example --torch 2.11+cu130.",
            slug="unknown-torch",
        )
    cuda = f"{match[3]}.{match[4]}" if match and match[3] else DEFAULT_CUDA
    return DeviceRules(
        torch=release,
        cuda=cuda,
        capability=card.capability,
        multi_processor_count=card.multi_processor_count,
    )
