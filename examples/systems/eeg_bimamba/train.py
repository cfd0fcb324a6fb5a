"""Trains a seizure detector on made-up EEG: which samples of a recording belong to a seizure?

Dilated convolutions read the signal at its full rate. One state-space model follows each electrode, another one the
similarity of each pair of electrodes, and a graph network mixes electrodes over the graph that these give.
"""

import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

STRIDE = 16


@dataclass(frozen=True)
class Scale:
    electrodes: int = 19
    length: int = 15360
    widths: tuple[int, ...] = (64, 128, 256, 512) * 2
    node_width: int = 64
    node_layers: int = 6
    edge_width: int = 16
    vectors: int = 16
    chunk: int = 256
    slice_rows: int = 171


@dataclass(frozen=True)
class Recipe:
    batch: int = 8
    interval: int = 1
    checkpoint_model: bool = False
    checkpoint_blocks: bool = False


SCALES = {"full": Scale(), "small": Scale(9, 1920, (8, 16, 32, 64) * 2, 16, 2, 8, 6, 32, 36)}
VARIANTS = {
    "before": Recipe(),
    "note": Recipe(batch=6, interval=10, checkpoint_model=True),
    "fixed": Recipe(checkpoint_blocks=True),
}


def scan(values: Tensor, log_decay: Tensor, keys: Tensor, queries: Tensor, chunk: int) -> Tensor:
    """The linear recurrence over the length of `values` (rows, length, width), in chunks.

    Within a chunk it is a product with a matrix (rows, chunks, chunk, chunk); from chunk to chunk goes a state.
    """
    length = values.shape[1]
    missing = -length % chunk
    values, keys, queries = (F.pad(x, (0, 0, 0, missing)).unflatten(1, (-1, chunk)) for x in (values, keys, queries))
    decay = F.pad(log_decay, (0, missing)).unflatten(1, (-1, chunk)).cumsum(-1)

    future = torch.ones(chunk, chunk, dtype=torch.bool, device=values.device).triu(1)
    kept = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).masked_fill(future, -torch.inf).exp()
    within = (queries @ keys.mT * kept) @ values

    added = (keys * (decay[..., -1:] - decay).exp().unsqueeze(-1)).mT @ values
    state, states = torch.zeros_like(added[:, 0]), []
    for part in range(added.shape[1]):
        states.append(state)
        state = state * decay[:, part, -1, None, None].exp() + added[:, part]
    before = (queries * decay.exp().unsqueeze(-1)) @ torch.stack(states, 1)
    return (within + before).flatten(1, 2)[:, :length]


class StateSpace(nn.Module):
    """A Mamba-2 layer in one direction, with one decay for all heads."""

    def __init__(self, width: int, state: int, head: int, chunk: int) -> None:
        super().__init__()
        inner, heads, self.chunk = 2 * width, 2 * width // head, chunk
        self.sizes, self.mixed_sizes = (inner, inner + 2 * state, heads), (inner, state, state)
        self.project = nn.Linear(width, sum(self.sizes), bias=False)
        self.conv = nn.Conv1d(self.sizes[1], self.sizes[1], 4, groups=self.sizes[1], padding=3)
        self.step_bias = nn.Parameter(torch.full((heads,), -3.0))
        self.log_rate = nn.Parameter(torch.arange(1.0, heads + 1).log())
        self.skip = nn.Parameter(torch.ones(heads))
        self.norm = nn.RMSNorm(inner)
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, mixed, step = self.project(x).split(self.sizes, -1)
        mixed = F.silu(self.conv(mixed.mT)[..., : x.shape[1]].mT)
        values, keys, queries = mixed.split(self.mixed_sizes, -1)
        step = F.softplus(step + self.step_bias)
        heads = values.unflatten(-1, (step.shape[-1], -1))
        log_decay = -(step * self.log_rate.exp()).mean(-1)
        y = scan((heads * step.unsqueeze(-1)).flatten(-2), log_decay, keys, queries, self.chunk)
        return self.out(self.norm((y + (heads * self.skip.unsqueeze(-1)).flatten(-2)) * F.silu(gate)))


class BidirectionalLayer(nn.Module):
    """Both directions, joined and added to the input; with `slice_rows`, for that many sequences at a time."""

    def __init__(self, width: int, state: int, head: int, chunk: int, slice_rows: int | None) -> None:
        super().__init__()
        self.ahead, self.behind = (StateSpace(width, state, head, chunk) for _ in range(2))
        self.join = nn.Linear(2 * width, width)
        self.dropout, self.norm = nn.Dropout(0.1), nn.LayerNorm(width)
        self.slice_rows = slice_rows

    def both(self, x: Tensor) -> Tensor:
        return self.join(torch.cat([self.ahead(x), self.behind(x.flip(1)).flip(1)], -1))

    def forward(self, x: Tensor) -> Tensor:
        if self.slice_rows:
            parts = [checkpoint(self.both, part, use_reentrant=False) for part in x.split(self.slice_rows)]
            return self.norm(x + self.dropout(torch.cat(parts)))
        return self.norm(x + self.dropout(self.both(x)))


def stream(num_layers: int, width: int, *sizes: int | None) -> nn.Sequential:
    """Bidirectional layers over sequences (rows, length, width)."""
    return nn.Sequential(*(BidirectionalLayer(width, *sizes) for _ in range(num_layers)))


class ConvolutionBlock(nn.Module):
    """A dilated convolution that keeps the length."""

    def __init__(self, channels: int, width: int, dilation: int) -> None:
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(channels, width, 7, padding=3 * dilation, dilation=dilation))
        self.dropout = nn.Dropout(0.15)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(F.relu(self.conv(x)))


class GraphLayer(nn.Module):
    """Simple spectral graph convolution: features averaged over walks of up to two edges."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.linear, self.norm, self.dropout = nn.Linear(channels, width), nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, x: Tensor, walk: Tensor, alpha: float = 0.05) -> Tensor:
        once = walk @ x
        averaged = alpha * x + (1 - alpha) / 2 * (once + walk @ once)
        return self.dropout(F.relu(self.norm(self.linear(averaged))))


class Detector(nn.Module):
    """A logit for each sample of recordings (batch, electrodes, length)."""

    def __init__(self, scale: Scale, recipe: Recipe, threshold: float) -> None:
        super().__init__()
        self.scale, self.recipe, self.threshold = scale, recipe, threshold
        top, nodes = scale.widths[-1], scale.electrodes * scale.node_width
        channels = zip((scale.electrodes, *scale.widths), scale.widths, strict=False)
        self.blocks = nn.ModuleList(ConvolutionBlock(*each, 2**depth) for depth, each in enumerate(channels))
        self.mix = nn.Sequential(nn.Conv1d(top, top, 1), nn.Conv1d(top, top, 1))
        self.shrink = nn.Conv1d(top, top, STRIDE, stride=STRIDE)

        rows = scale.slice_rows if recipe.checkpoint_blocks else None
        self.sequence = stream(scale.node_layers, top, 16, 64, scale.chunk, rows)
        self.to_nodes, self.from_nodes = nn.Conv1d(top, nodes, 1), nn.Conv1d(nodes, top, 1)
        self.node_stream = stream(scale.node_layers, scale.node_width, 16, 8, scale.chunk, rows)
        self.to_edges, self.from_edges = nn.Linear(1, scale.edge_width), nn.Linear(scale.edge_width, 1)
        self.edge_stream = stream(2, scale.edge_width, 8, 4, scale.chunk, rows)

        first = GraphLayer(scale.node_width + scale.vectors, scale.node_width)
        self.graph_layers = nn.ModuleList([first, GraphLayer(scale.node_width, scale.node_width)])
        self.head, self.out = nn.Conv1d(top, scale.electrodes, 1), nn.Conv1d(scale.electrodes, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recipe.checkpoint_blocks else block(x)
        nodes = self.to_nodes(self.shrink(self.mix(x))).unflatten(1, (self.scale.electrodes, -1)).mT
        followed = self.node_stream(nodes.flatten(0, 1)).unflatten(0, nodes.shape[:2])
        graphs = self.graphs(nodes)
        features = torch.cat([followed.transpose(1, 2).flatten(0, 1), self.positions(graphs)], -1)
        walk = normalised(graphs).flatten(0, 1)
        for layer in self.graph_layers:
            features = layer(features, walk)
        features = self.from_nodes(features.flatten(1).unflatten(0, graphs.shape[:2]).mT)
        return self.out(F.interpolate(self.head(features), scale_factor=STRIDE)).squeeze(1)

    def graphs(self, nodes: Tensor) -> Tensor:
        """Weights between electrodes (batch, time, electrodes, electrodes): of each electrode its three strongest."""
        units = F.normalize(nodes.transpose(1, 2), dim=-1)
        first, second = torch.triu_indices(self.scale.electrodes, self.scale.electrodes, 1, device=nodes.device)
        similar = (units @ units.mT)[:, :, first, second].mT.flatten(0, 1)
        edges = self.edge_stream(self.to_edges(similar.unsqueeze(-1)))
        weights = F.softplus(self.from_edges(edges)).unflatten(0, (len(nodes), -1)).squeeze(-1).mT
        full = weights.new_zeros(*weights.shape[:2], self.scale.electrodes, self.scale.electrodes)
        full[:, :, first, second] = weights
        full = full + full.mT
        strongest = torch.zeros_like(full, dtype=torch.bool).scatter(-1, full.topk(3).indices, True)
        full = torch.where(strongest & (full > self.threshold), full, 0.0)
        return (full + full.mT) / 2

    def positions(self, graphs: Tensor) -> Tensor:
        """Where in its graph each electrode is: the first eigenvectors of the Laplacian, signs made the same."""
        laplacians = torch.eye(self.scale.electrodes, device=graphs.device) - normalised(graphs)
        _, vectors = torch.linalg.eigh(laplacians)
        some = vectors[:, :: self.recipe.interval, :, : self.scale.vectors]
        some = some * some.sum(-2, keepdim=True).sign()
        return some.repeat_interleave(self.recipe.interval, 1)[:, : graphs.shape[1]].flatten(0, 1)


def normalised(graphs: Tensor) -> Tensor:
    """Each weight over the square root of both degrees."""
    scale = graphs.sum(-1).clamp(min=1e-6).rsqrt()
    return graphs * scale.unsqueeze(-1) * scale.unsqueeze(-2)


def focal_loss(logits: Tensor, labels: Tensor, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    """Cross-entropy in which samples that are easy count little."""
    entropy = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    weight = alpha * labels + (1 - alpha) * (1 - labels)
    return (weight * (1 - (-entropy).exp()) ** gamma * entropy).mean()


def recordings(scale: Scale, count: int) -> TensorDataset:
    """Noise, in each recording with a seizure: a stretch in which all electrodes swing together."""
    time, starts = torch.arange(scale.length), torch.randint(scale.length // 2, (count, 1))
    labels = ((time >= starts) & (time < starts + scale.length // 4)).float()
    swing = 3 * (labels * (time / 20).sin()).unsqueeze(1)
    return TensorDataset(torch.randn(count, scale.electrodes, scale.length) + swing, labels)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=VARIANTS, default="before")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threshold", type=float, default=0.1, help="edges that weigh less are left out")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    scale, recipe = SCALES[args.scale], VARIANTS[args.variant]
    model = Detector(scale, recipe, args.threshold).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.05)
    for step, (signals, labels) in enumerate(DataLoader(recordings(scale, recipe.batch * args.steps), recipe.batch), 1):
        signals, labels = signals.to(device), labels.to(device)
        logits = checkpoint(model.forward, signals, use_reentrant=False) if recipe.checkpoint_model else model(signals)
        loss = focal_loss(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
