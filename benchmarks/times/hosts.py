"""What PyTorch's own Python and C++ take on the host: models so small that the card is always done first.

Each has the three phases of a step in it; how many operators, modules and parameters they are of says the virtual card.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 64
Make = Callable[[], tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]]


class Block(nn.Module):
    """A transformer's block, written by hand."""

    def __init__(self) -> None:
        """All of the same width."""
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pre-norm, four heads."""
        q, k, v = (t.view(*t.shape[:-1], 4, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).split(WIDTH, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.drop(self.out(attended))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Convolution(nn.Sequential):
    """One with its norm and activation."""

    def __init__(self) -> None:
        """Few channels."""
        super().__init__(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())


def _of_tokens(model: nn.Module) -> torch.Tensor:
    return model(torch.randn(2, 32, WIDTH, device="cuda")).square().mean()


def _blocks() -> tuple[nn.Module, Callable]:
    return nn.Sequential(*(Block() for _ in range(24))), _of_tokens


def _linears() -> tuple[nn.Module, Callable]:
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(150))), _of_tokens


def _activations() -> tuple[nn.Module, Callable]:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *(nn.Tanh() for _ in range(300))), _of_tokens


def _identities() -> tuple[nn.Module, Callable]:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *(nn.Identity() for _ in range(500))), _of_tokens


def _norms() -> tuple[nn.Module, Callable]:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *(nn.LayerNorm(WIDTH) for _ in range(150))), _of_tokens


def _convolutions() -> tuple[nn.Module, Callable]:
    return nn.Sequential(
        *(Convolution() for _ in range(50))
    ), lambda model: model(torch.randn(2, 16, 8, 8, device="cuda")).square().mean()


def _views() -> tuple[nn.Module, Callable]:
    class Views(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = super().forward(x)
            for _ in range(200):
                x = x.transpose(0, 1)
            return x

    return Views(WIDTH, WIDTH), _of_tokens


def _encoder() -> tuple[nn.Module, Callable]:
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
    return nn.TransformerEncoder(layer, 16), _of_tokens


def _of_transformers(name: str, **options: object) -> Make:
    """A tiny model of a library whose Python between operators is like that of many."""

    def make() -> tuple[nn.Module, Callable]:
        import transformers

        config = getattr(transformers, f"{name}Config")(**options)
        model = transformers.AutoModelForCausalLM.from_config(config)

        def loss(model: nn.Module) -> torch.Tensor:
            ids = torch.randint(0, 100, (2, 32), device="cuda")
            return model(input_ids=ids, labels=ids).loss

        return model, loss

    return make


MODELS: dict[str, Make] = {
    "blocks": _blocks,
    "linears": _linears,
    "activations": _activations,
    "identities": _identities,
    "norms": _norms,
    "convolutions": _convolutions,
    "views": _views,
    "encoder": _encoder,
    "opt": _of_transformers(
        "OPT", hidden_size=64, ffn_dim=256, num_hidden_layers=12, num_attention_heads=4, vocab_size=128,
        word_embed_proj_dim=64,
    ),
    "phi": _of_transformers(
        "Phi", hidden_size=64, intermediate_size=256, num_hidden_layers=12, num_attention_heads=4, vocab_size=128
    ),
}  # fmt: skip
OPTIMIZERS: dict[str, dict[str, bool]] = {
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "loop": {"foreach": False},
}
# Model, optimizer and whether autocast is on.
HOSTS = [(name, "foreach", amp) for name in MODELS for amp in (False, True)]
HOSTS += [("blocks", name, False) for name in ("fused", "loop")]


def phases(name: str, optimizer_name: str, amp: bool) -> dict[str, Callable[[], None]]:
    """The phases of a step of a model of `MODELS`, to be called one after the other."""
    torch.manual_seed(0)
    model, loss_of = MODELS[name]()
    model = model.to("cuda").train()
    optimizer = torch.optim.AdamW(model.parameters(), **OPTIMIZERS[optimizer_name])
    state: dict[str, torch.Tensor] = {}

    def forward() -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            state["loss"] = loss_of(model)

    return {
        "forward": forward,
        "backward": lambda: state["loss"].backward(),
        "optimizer": lambda: optimizer.step(),
        "zero_grad": lambda: optimizer.zero_grad(),
    }
